"""A route: what can be asked at a path, by whom, and what is answered."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from albatross.service.api.answers import Answer
from albatross.service.api.requests import Request

Scope = Literal["recommend", "feedback", "read", "admin"]
"""Scopes of a key: ask for items; send ratings; read the model and its metrics; change the catalogue and the folder."""

JSON, NDJSON, EVENTS, TEXT, HTML = "application/json", "application/x-ndjson", "text/event-stream", "text/plain", "text/html"
BATCH, STREAM, METRICS, SCHEMA, HEALTH, READY = "/v1/feedback/batch", "/v1/stream", "/metrics", "/schema", "/healthz", "/readyz"
PAGE, ACCESS, ITEM_BATCH = "/", "/v1/access", "/v1/items/batch"
"""Paths whose answers need more than one request to the engine."""


class Route(NamedTuple):
    method: Literal["GET", "POST"]
    path: str
    scope: Scope | None
    """None: no key is needed."""
    summary: str
    reads: type[Request[Any]] | None = None
    """The type of the body, which is sent to the engine. For a batch, the type of each line."""
    asks: Request[Any] | None = None
    """The request to the engine if there is no body."""
    answer: type[Answer] | None = None
    statuses: Sequence[int] = ()
    """Error statuses, besides those of every request."""
    examples: Sequence[tuple[str, Any]] = ()
    """Examples of bodies, each with a summary."""
    answered: Any = None
    """An example of an answer."""
    takes: str = JSON
    gives: str = JSON
