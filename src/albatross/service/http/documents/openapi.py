"""The OpenAPI 3.1 description of the service, made from the table of routes."""

from http import HTTPStatus
from typing import Any

import msgspec

from albatross.core.version import VERSION
from albatross.service.api.answers import Problem
from albatross.service.api.requests import Feedback, SetRewards, Suppose
from albatross.service.api.route import EVENTS, JSON, TEXT, Route
from albatross.service.api.routes import ROUTES, example_of
from albatross.service.api.rules import Where, schema_of_where
from albatross.service.http.problems import MEANINGS, MEDIA_TYPE, problem

TEMPLATE = "#/components/schemas/{name}"
EVERY_READER, EVERY_GUARDED, EVERYBODY = (408, 413), (401, 429, 503), (400, 403)
"""Statuses of any request with a body, any request that needs a key, and any request at all."""

_HEADERS: dict[int, dict[str, tuple[str, dict[str, Any]]]] = {
    401: {"WWW-Authenticate": ("How to show a key", {"type": "string"})},
    429: {"Retry-After": ("Seconds to wait", {"type": "integer", "minimum": 0})},
}
_DESCRIPTION = "Recommendation from nothing, which learns from every rating, at once. Ids stand in bodies, never in paths."


def describe(scale: tuple[float, float], key_needed: bool, prefix: str = "") -> dict[str, Any]:
    """The description of a service whose ratings are on this scale. `prefix`: stands before all its paths."""
    kinds = [kind for route in ROUTES for kind in (route.reads, route.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components([*dict.fromkeys(kinds), Problem], ref_template=TEMPLATE)
    references = dict(zip([*dict.fromkeys(kinds), Problem], schemas, strict=True))
    _refine_feedback(components[Feedback.__name__], scale)
    components[Where.__name__] = schema_of_where(TEMPLATE.format(name=Where.__name__))
    _refine_rewards(components[SetRewards.__name__], scale)
    components[Suppose.__name__]["properties"]["rating"] |= {"minimum": scale[0], "maximum": scale[1]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "albatross", "version": VERSION, "description": _DESCRIPTION},
        **({"servers": [{"url": prefix}]} if prefix else {}),
        "paths": {route.path: {route.method.lower(): _operation(route, references, key_needed)} for route in ROUTES},
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _refine_feedback(schema: dict[str, Any], scale: tuple[float, float]) -> None:
    """Add what the type cannot say: the scale; a rating or an event; for a decision, or for a user and an item."""
    low, high = scale
    schema["properties"]["rating"] |= {"minimum": low, "maximum": high}
    some, none = {"not": {"type": "null"}}, {"type": "null"}
    schema["anyOf"] = [
        {"required": [*whom, told], "properties": {**dict.fromkeys(whom, some), told: some, untold: none}}
        for whom in (["decision_id"], ["user", "item"])
        for told, untold in (("rating", "event"), ("event", "rating"))
    ]


def _refine_rewards(schema: dict[str, Any], scale: tuple[float, float]) -> None:
    schema["properties"]["events"]["additionalProperties"] |= {"minimum": scale[0], "maximum": scale[1]}


def _operation(route: Route, references: dict[Any, dict[str, Any]], key_needed: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary.partition(". ")[0].rstrip("."),
        "description": route.summary,
        "operationId": route.path.strip("/").replace("/", "_"),
        "responses": {"200": _answered(route, references), **_refusals(route, references)},
    }
    if route.reads is not None:
        operation["requestBody"] = _body(route, references)
    if route.scope is not None:
        operation["security"] = [{"key": []}] if key_needed else [{}, {"key": []}]
        operation["description"] += f" Where keys are needed: one with the scope {route.scope}."
    return operation


def _body(route: Route, references: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    examples = {f"example-{number}": {"summary": summary, "value": value} for number, (summary, value) in enumerate(route.examples, 1)}
    if route.takes == JSON:
        return {"required": True, "content": {JSON: {"schema": references[route.reads], "examples": examples}}}
    # Lines may also be sent as text/plain: the header is not checked, and not every program knows the NDJSON type.
    schema = {"type": "string", "pattern": "\\S"}
    return {"required": True, "content": {route.takes: {"schema": schema}, TEXT: {"schema": schema, "examples": examples}}}


def _answered(route: Route, references: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if route.gives == EVENTS:
        text = {"type": "string"}
        content["schema"] = {"type": "object", "properties": {"id": text, "event": {"enum": ["version", "series"]}, "data": text}}
    elif route.gives != JSON:
        content["schema"] = {"type": "string"}
    elif route.answer is not None:
        content["schema"] = references[route.answer]
    else:
        content["schema"] = {"type": "object"}
    example = example_of(route)
    if example is not None:
        content["example"] = example if route.gives == JSON else msgspec.json.encode(example).decode() + "\n"
    return {"description": HTTPStatus.OK.phrase, "content": {route.gives: content}}


def _refusals(route: Route, references: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    statuses = {*EVERYBODY, *route.statuses}
    if route.reads is not None:
        statuses |= {*EVERY_READER}
    if route.scope is not None or route.answer is not None:
        statuses |= {*EVERY_GUARDED} if route.scope is not None else {503}
    return {str(status): _refusal(status, references) for status in sorted(statuses)}


def _refusal(status: int, references: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    kind, meaning = MEANINGS[status]
    example = msgspec.to_builtins(problem(status, kind.code, meaning))
    headers = {name: {"description": text, "schema": schema} for name, (text, schema) in _HEADERS.get(status, {}).items()}
    found = {"description": meaning, "content": {MEDIA_TYPE.decode(): {"schema": references[Problem], "example": example}}}
    return {**found, "headers": headers} if headers else found
