"""The table of routes. The service, the OpenAPI description and the tests are all made from it.

A new verb is a request type, a handler in the engine, and a line here.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from albatross.service.api import examples
from albatross.service.api.answers import (
    Accepted,
    Alive,
    Answer,
    BackupTaken,
    Decision,
    Forgotten,
    ItemAccepted,
    LineAnswer,
    Readiness,
    RewardsAccepted,
    Series,
    SnapshotTaken,
    UsersJoined,
    UserView,
    Version,
)
from albatross.service.api.requests import (
    AskDisk,
    AskSeries,
    AskVersion,
    Feedback,
    ForgetUser,
    JoinUsers,
    ListEvents,
    ListItems,
    ListUsers,
    LookBack,
    Recommend,
    Request,
    RestoreItem,
    RetireItem,
    SetRewards,
    SimilarItems,
    Suppose,
    TakeBackup,
    TakeSnapshot,
    UpsertItem,
    Verify,
    ViewDecision,
    ViewUser,
)
from albatross.service.api.views import (
    Access,
    DecisionView,
    Disk,
    EventList,
    ItemList,
    PastView,
    SimilarList,
    UserList,
    VerifyReport,
    WhatIf,
)

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


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/recommend",
        "recommend",
        "Ask for items to show a user. New users and items are added automatically, unless the catalogue is closed. With user null, it "
        "is an unknown visitor, and the answer contains a new id.",
        reads=Recommend,
        answer=Decision,
        statuses=(400, 404, 422, 507),
        examples=examples.RECOMMEND,
        answered=examples.DECISION,
    ),
    Route(
        "POST",
        "/v1/feedback",
        "feedback",
        "Send a rating, or an event such as click, with or without a decision. It is on disk when this answers. The same event_id "
        "counts once, for ever. A later event for the same item of a decision replaces the earlier one.",
        reads=Feedback,
        answer=Accepted,
        statuses=(400, 404, 409, 422, 507),
        examples=[*examples.FEEDBACK, examples.EVENT],
        answered=examples.ACCEPTED,
    ),
    Route(
        "POST",
        BATCH,
        "feedback",
        "Send many ratings, one JSON document per line. Each line gets a status line, in order; a bad line does not stop the others.",
        reads=Feedback,
        answer=LineAnswer,
        statuses=(400, 409, 507),
        examples=[("two ratings", examples.LINES)],
        answered=examples.LINE_ANSWER,
        takes=NDJSON,
        gives=NDJSON,
    ),
    Route(
        "POST",
        "/v1/rewards",
        "admin",
        "Set the named events and their rewards from now on. Earlier events keep their rewards.",
        reads=SetRewards,
        answer=RewardsAccepted,
        statuses=(400, 422, 507),
        examples=examples.REWARDS,
        answered=examples.REWARDS_ACCEPTED,
    ),
    Route(
        "POST",
        "/v1/items/upsert",
        "admin",
        "Add or change an item: attributes, time of availability, stock. Fields that are not given keep their values.",
        reads=UpsertItem,
        answer=ItemAccepted,
        statuses=(400, 422, 507),
        examples=examples.UPSERT,
        answered=examples.ITEM_ACCEPTED,
    ),
    Route(
        "POST",
        ITEM_BATCH,
        "admin",
        "Many items, one JSON document per line. Each line gets a status line, in order; a bad line does not stop the others.",
        reads=UpsertItem,
        answer=LineAnswer,
        statuses=(400, 409, 507),
        examples=[("two items", examples.ITEM_LINES)],
        answered=examples.ITEM_LINE,
        takes=NDJSON,
        gives=NDJSON,
    ),
    Route(
        "POST",
        "/v1/items/similar",
        "read",
        "Items whose vectors have a similar direction.",
        reads=SimilarItems,
        answer=SimilarList,
        statuses=(400, 404, 422),
        examples=examples.SIMILAR,
        answered=examples.SIMILAR_ITEMS,
    ),
    Route(
        "POST",
        "/v1/items/retire",
        "admin",
        "Stop showing an item. What was learned about it is kept.",
        reads=RetireItem,
        answer=ItemAccepted,
        statuses=(400, 404, 422, 507),
        examples=examples.ITEM,
        answered=examples.ITEM_ACCEPTED,
    ),
    Route(
        "POST",
        "/v1/items/restore",
        "admin",
        "Show a retired item again.",
        reads=RestoreItem,
        answer=ItemAccepted,
        statuses=(400, 404, 422, 507),
        examples=examples.ITEM,
        answered=examples.ITEM_ACCEPTED,
    ),
    Route(
        "POST",
        "/v1/users/get",
        "read",
        "The belief about a user: mean vector, ellipsoid, the items with the best scores, the latest ratings.",
        reads=ViewUser,
        answer=UserView,
        statuses=(400, 404, 422),
        examples=examples.VIEW_USER,
        answered=examples.USER_VIEW,
    ),
    Route(
        "POST",
        "/v1/users/join",
        "feedback",
        "A visitor is now known to be a user. The visitor's past and future events belong to the user, as if there had been one id. "
        "This cannot be undone.",
        reads=JoinUsers,
        answer=UsersJoined,
        statuses=(400, 404, 422, 507),
        examples=examples.JOIN,
        answered=examples.JOINED,
    ),
    Route(
        "POST",
        "/v1/users/forget",
        "admin",
        "Erase a user and rebuild the model without them. This takes as long as a replay of the log.",
        reads=ForgetUser,
        answer=Forgotten,
        statuses=(400, 404, 422, 507),
        examples=examples.USER,
        answered=examples.FORGOTTEN,
    ),
    Route(
        "POST",
        "/v1/users/list",
        "read",
        "Users with at least one rating, oldest first.",
        reads=ListUsers,
        answer=UserList,
        statuses=(400, 422),
        examples=examples.LIST,
        answered=examples.USERS,
    ),
    Route(
        "POST",
        "/v1/users/suppose",
        "read",
        "What a user would be shown after one more rating. Nothing is learned or written.",
        reads=Suppose,
        answer=WhatIf,
        statuses=(400, 404, 422),
        examples=examples.SUPPOSE,
        answered=examples.WHAT_IF,
    ),
    Route(
        "POST",
        "/v1/items/list",
        "read",
        "Items, oldest first: ratings, predictions, and their vectors on the two leading axes.",
        reads=ListItems,
        answer=ItemList,
        statuses=(400, 422),
        examples=examples.LIST_ITEMS,
        answered=examples.ITEMS,
    ),
    Route(
        "POST",
        "/v1/decisions/get",
        "read",
        "A decision by its id: the items shown, the items with the next best scores, and the feedback.",
        reads=ViewDecision,
        answer=DecisionView,
        statuses=(400, 404, 422),
        examples=examples.VIEW_DECISION,
        answered=examples.DECISION_VIEW,
    ),
    Route(
        "POST",
        "/v1/events/list",
        "read",
        "Events of the log, newest first.",
        reads=ListEvents,
        answer=EventList,
        statuses=(400, 404, 422),
        examples=examples.LIST_EVENTS,
        answered=examples.EVENTS,
    ),
    Route(
        "POST",
        "/v1/events/past",
        "admin",
        "The model at an event, rebuilt from the log while the service goes on. One at a time. Beyond the end means the last event.",
        reads=LookBack,
        answer=PastView,
        statuses=(400, 404, 409, 422),
        examples=examples.LOOK_BACK,
        answered=examples.PAST,
    ),
    Route(
        "POST",
        "/v1/verify",
        "admin",
        "Rebuild the model from the log alone, while the service goes on, and compare it with every snapshot. One at a time.",
        reads=Verify,
        answer=VerifyReport,
        statuses=(400, 409, 422),
        examples=examples.NOTHING,
        answered=examples.VERIFIED,
    ),
    Route(
        "POST",
        "/v1/snapshot",
        "admin",
        "Write a snapshot of the model now, for a quick next start. This is also done at the end and from time to time.",
        reads=TakeSnapshot,
        answer=SnapshotTaken,
        statuses=(400, 422, 507),
        examples=examples.NOTHING,
        answered=examples.SNAPSHOT_TAKEN,
    ),
    Route(
        "POST",
        "/v1/backup",
        "admin",
        "Copy the whole folder to a new one below its folder `backups`, checked row by row. The newest three are kept.",
        reads=TakeBackup,
        answer=BackupTaken,
        statuses=(400, 409, 422, 507),
        examples=examples.NOTHING,
        answered=examples.BACKUP_TAKEN,
    ),
    Route(
        "GET",
        "/v1/version",
        "read",
        "Policy, parameters, the head of the log and the state id, a digest of what was learned.",
        asks=AskVersion("cheap"),
        answer=Version,
        answered=examples.VERSION,
    ),
    Route(
        "GET",
        "/v1/disk",
        "read",
        "The size of the log on disk, free space, and the newest snapshot.",
        asks=AskDisk(),
        answer=Disk,
        answered=examples.DISK,
    ),
    Route(
        "GET",
        "/v1/series",
        "read",
        "Reward, calibration and optimism so far, over groups of ratings.",
        asks=AskSeries(),
        answer=Series,
        answered=examples.SERIES,
    ),
    Route("GET", STREAM, "read", "Version and series as server-sent events, when there is something new.", gives=EVENTS),
    Route("GET", METRICS, "read", "For Prometheus. No user and no item is named.", gives=TEXT),
    Route(
        "GET",
        ACCESS,
        None,
        "Whether a key is needed, and the scopes of the key in this request.",
        answer=Access,
        statuses=(401, 429),
        answered=examples.ACCESS,
    ),
    Route("GET", HEALTH, None, "Whether the process is alive.", answer=Alive, answered=Alive(True)),
    Route(
        "GET",
        READY,
        None,
        "Whether requests are answered: not while the log is replayed, and not while the service ends.",
        answer=Readiness,
        answered=Readiness(True, "ready", 42, 42, 0),
    ),
    Route("GET", SCHEMA, None, "This description, as OpenAPI 3.1."),
    Route(
        "GET",
        PAGE,
        None,
        "The page: watch it learn, see why, try it. If a key is needed, it asks for one.",
        gives=HTML,
    ),
)

BY_PATH: dict[str, Route] = {route.path: route for route in ROUTES}
BY_REQUEST: dict[type[Request[Any]], Route] = {
    kind: route
    for route in ROUTES
    for kind in (route.reads, None if route.asks is None else type(route.asks))
    if kind is not None and route.path not in (BATCH, ITEM_BATCH)
}
"""The route of each request, for a client."""


def example_of(route: Route) -> Any:
    return None if route.answered is None else msgspec.to_builtins(route.answered)
