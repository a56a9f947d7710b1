"""The table of routes: it is what is served, what OpenAPI says, and what the tests walk through.

A new verb is a request type, a handler in the engine, and a line here.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from albatross.service.api.answers import (
    Accepted,
    Alive,
    Answer,
    BackupTaken,
    ConfidenceRegion,
    Decision,
    Forgotten,
    ItemAccepted,
    LineAnswer,
    Readiness,
    Series,
    ShownItem,
    SnapshotTaken,
    UserView,
    Version,
)
from albatross.service.api.requests import (
    AskSeries,
    AskVersion,
    Feedback,
    ForgetUser,
    Recommend,
    Request,
    RestoreItem,
    RetireItem,
    TakeBackup,
    TakeSnapshot,
    UpsertItem,
    ViewUser,
)

Scope = Literal["recommend", "feedback", "read", "admin"]
"""What a key may allow: ask for items, send ratings, read the model and its metrics, change the catalogue and the folder."""

JSON, NDJSON, EVENTS, TEXT = "application/json", "application/x-ndjson", "text/event-stream", "text/plain"
BATCH, STREAM, METRICS, SCHEMA, HEALTH, READY = "/v1/feedback/batch", "/v1/stream", "/metrics", "/schema", "/healthz", "/readyz"
"""What is answered by more than a question to the engine."""


class Route(NamedTuple):
    method: Literal["GET", "POST"]
    path: str
    scope: Scope | None
    """None: open to everybody."""
    summary: str
    reads: type[Request[Any]] | None = None
    """What the body is read as, and then asked of the engine. Of a batch, what each line is read as."""
    asks: Request[Any] | None = None
    """What is asked of the engine where there is no body."""
    answer: type[Answer] | None = None
    statuses: Sequence[int] = ()
    """What it may be refused with, beside what every request may be refused with."""
    examples: Sequence[tuple[str, Any]] = ()
    """Of bodies, each with a summary."""
    answered: Any = None
    """An example of an answer."""
    takes: str = JSON
    gives: str = JSON


_SHOWN = ShownItem("tea", 1, 4.75, 4.25, 0.5, 0.9625)
_REGION = ConfidenceRegion([0.5, 1.0], 1.5, [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
_ITEM = [("an item", {"item": "tea"})]
_USER = [("a user", {"user": "ann"})]
_ITEM_ACCEPTED = ItemAccepted("tea", False, True, 43, 43)
_VERSION = Version(
    "0.1.0", "mean-field", {"rank": 5, "refreshes": 1}, (1.0, 5.0), 0, 42, "9f86d081", "2c26b46b", 42, "fcde2b2e", 3, 3, 0, 4, 30, "commit"
)
_RECOMMEND = [
    ("one item of all", {"user": "ann"}),
    (
        "two of these, not seen before, and why",
        {"user": "ann", "n": 2, "candidates": ["tea", "coffee", "mate"], "exclude_seen": "rated", "explain": True, "request_id": "r-1"},
    ),
]
_FEEDBACK = [
    ("a rating by itself", {"event_id": "e-1", "user": "ann", "item": "tea", "rating": 4.5}),
    ("a rating of a decision", {"event_id": "e-2", "decision_id": "41-0c8e5f2a", "item": "tea", "rating": 4.5}),
]
_LINES = (
    '{"event_id": "e-3", "user": "ann", "item": "tea", "rating": 4.5}\n{"event_id": "e-4", "user": "bob", "item": "tea", "rating": 2}\n'
)

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/recommend",
        "recommend",
        "Ask for items to show a user. New users and items appear by themselves, unless the catalogue is closed.",
        reads=Recommend,
        answer=Decision,
        statuses=(400, 404, 422, 507),
        examples=_RECOMMEND,
        answered=Decision("41-0c8e5f2a", "ann", "mean-field", 40, [_SHOWN], 3),
    ),
    Route(
        "POST",
        "/v1/feedback",
        "feedback",
        "Send a rating, of a decision or by itself. It is on disk when this answers; the same event_id counts once, for ever.",
        reads=Feedback,
        answer=Accepted,
        statuses=(400, 404, 409, 422, 507),
        examples=_FEEDBACK,
        answered=Accepted(42, True, False, 42),
    ),
    Route(
        "POST",
        BATCH,
        "feedback",
        "Send many ratings, one JSON document a line. Each line gets a status line, in order; a bad line does not hold up the others.",
        reads=Feedback,
        answer=LineAnswer,
        statuses=(400, 409, 507),
        examples=[("two ratings", _LINES)],
        answered=LineAnswer(1, 200, 42, True, False, 42),
        takes=NDJSON,
        gives=NDJSON,
    ),
    Route(
        "POST",
        "/v1/items/upsert",
        "admin",
        "There is such an item.",
        reads=UpsertItem,
        answer=ItemAccepted,
        statuses=(400, 422, 507),
        examples=_ITEM,
        answered=_ITEM_ACCEPTED,
    ),
    Route(
        "POST",
        "/v1/items/retire",
        "admin",
        "Never show this item again; what was learned of it stays.",
        reads=RetireItem,
        answer=ItemAccepted,
        statuses=(400, 404, 422, 507),
        examples=_ITEM,
        answered=_ITEM_ACCEPTED,
    ),
    Route(
        "POST",
        "/v1/items/restore",
        "admin",
        "A retired item may be shown again.",
        reads=RestoreItem,
        answer=ItemAccepted,
        statuses=(400, 404, 422, 507),
        examples=_ITEM,
        answered=_ITEM_ACCEPTED,
    ),
    Route(
        "POST",
        "/v1/users/get",
        "read",
        "What is believed of a user: mean vector, ellipsoid, the items with the best scores.",
        reads=ViewUser,
        answer=UserView,
        statuses=(400, 404, 422),
        examples=_USER,
        answered=UserView("ann", 3, ["mate"], [0.5, 1.0], _REGION, [_SHOWN], 42),
    ),
    Route(
        "POST",
        "/v1/users/forget",
        "admin",
        "Erase a user and rebuild the model as if they had never come. This takes as long as a replay of the log.",
        reads=ForgetUser,
        answer=Forgotten,
        statuses=(400, 404, 422, 507),
        examples=_USER,
        answered=Forgotten("ann", 44, 7, 44),
    ),
    Route(
        "POST",
        "/v1/snapshot",
        "admin",
        "Write the model beside the log now, so that the next start is quick. It is also done at the end and from time to time.",
        reads=TakeSnapshot,
        answer=SnapshotTaken,
        statuses=(400, 422, 507),
        examples=[("nothing to say", {})],
        answered=SnapshotTaken(42, "2c26b46b", "shop.albatross/snapshots/42.npz"),
    ),
    Route(
        "POST",
        "/v1/backup",
        "admin",
        "Copy the whole folder to a new one below its folder `backups`, checked row by row. The newest three are kept.",
        reads=TakeBackup,
        answer=BackupTaken,
        statuses=(400, 409, 422, 507),
        examples=[("nothing to say", {})],
        answered=BackupTaken(42, "9f86d081", "shop.albatross/backups/000000000000042"),
    ),
    Route(
        "GET",
        "/v1/version",
        "read",
        "Policy, parameters, the head of the log and the state id: a name for exactly what was learned.",
        asks=AskVersion("cheap"),
        answer=Version,
        answered=_VERSION,
    ),
    Route(
        "GET",
        "/v1/series",
        "read",
        "How it went so far: reward, calibration and optimism over groups of ratings.",
        asks=AskSeries(),
        answer=Series,
        answered=Series(100, [100, 37], [3.5, 3.9], [0.9, 0.95], [0.6, 0.4]),
    ),
    Route("GET", STREAM, "read", "Version and series as server-sent events, whenever there is something new.", gives=EVENTS),
    Route("GET", METRICS, "read", "For Prometheus. No user and no item is named.", gives=TEXT),
    Route("GET", HEALTH, None, "Whether the process lives.", answer=Alive, answered=Alive(True)),
    Route(
        "GET",
        READY,
        None,
        "Whether questions are answered: not while the log is replayed, and not while the service ends.",
        answer=Readiness,
        answered=Readiness(True, "ready", 42, 42, 0),
    ),
    Route("GET", SCHEMA, None, "This description, as OpenAPI 3.1."),
)

BY_PATH: dict[str, Route] = {route.path: route for route in ROUTES}
BY_REQUEST: dict[type[Request[Any]], Route] = {
    kind: route
    for route in ROUTES
    for kind in (route.reads, None if route.asks is None else type(route.asks))
    if kind is not None and route.path != BATCH
}
"""Where a client sends a request."""


def example_of(route: Route) -> Any:
    return None if route.answered is None else msgspec.to_builtins(route.answered)
