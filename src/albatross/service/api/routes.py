"""The table of routes: it is what is served, what OpenAPI says, and what the tests walk through.

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
"""What a key may allow: ask for items, send ratings, read the model and its metrics, change the catalogue and the folder."""

JSON, NDJSON, EVENTS, TEXT, HTML = "application/json", "application/x-ndjson", "text/event-stream", "text/plain", "text/html"
BATCH, STREAM, METRICS, SCHEMA, HEALTH, READY = "/v1/feedback/batch", "/v1/stream", "/metrics", "/schema", "/healthz", "/readyz"
PAGE, ACCESS, ITEM_BATCH = "/", "/v1/access", "/v1/items/batch"
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


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/recommend",
        "recommend",
        "Ask for items to show a user. New users and items appear by themselves, unless the catalogue is closed. With user null, it is a "
        "visitor whom nobody knows: an id is made for them.",
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
        "Send a rating, or an event such as click, of a decision or by itself. It is on disk when this answers; the same event_id "
        "counts once, for ever. A later event of the same item of a decision replaces the earlier one.",
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
        "Send many ratings, one JSON document a line. Each line gets a status line, in order; a bad line does not hold up the others.",
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
        "Say which events there are, and what they are worth, from now on. What came before stays as it was.",
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
        "There is such an item, with these attributes, in this time, in stock or not. What is not said stays as it was.",
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
        "Many items, one JSON document a line. Each line gets a status line, in order; a bad line does not hold up the others.",
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
        "Items whose vectors point in the direction of this one's.",
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
        "Never show this item again; what was learned of it stays.",
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
        "A retired item may be shown again.",
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
        "What is believed of a user: mean vector, ellipsoid, the items with the best scores, their latest ratings.",
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
        "A visitor turned out to be a user: what they said, and what is sent in their name later, is the user's, as if all had come from "
        "the one. This cannot be undone.",
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
        "Erase a user and rebuild the model as if they had never come. This takes as long as a replay of the log.",
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
        "Users who have rated something, in the order in which they came.",
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
        "What a user would be shown after one more rating. Nothing is learned and nothing is written.",
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
        "Items in the order in which they came: ratings, what is expected of them, and their vectors on the two leading axes.",
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
        "A decision by its id: what was shown, what else was close, and what came of it.",
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
        "What stands in the log, the newest first.",
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
        "The model as it was at an event, rebuilt from the log while the service goes on. One at a time; later than the last is the last.",
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
        "Write the model beside the log now, so that the next start is quick. It is also done at the end and from time to time.",
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
        "Policy, parameters, the head of the log and the state id: a name for exactly what was learned.",
        asks=AskVersion("cheap"),
        answer=Version,
        answered=examples.VERSION,
    ),
    Route(
        "GET",
        "/v1/disk",
        "read",
        "What the folder takes on disk, what is left there, and the newest snapshot.",
        asks=AskDisk(),
        answer=Disk,
        answered=examples.DISK,
    ),
    Route(
        "GET",
        "/v1/series",
        "read",
        "How it went so far: reward, calibration and optimism over groups of ratings.",
        asks=AskSeries(),
        answer=Series,
        answered=examples.SERIES,
    ),
    Route("GET", STREAM, "read", "Version and series as server-sent events, whenever there is something new.", gives=EVENTS),
    Route("GET", METRICS, "read", "For Prometheus. No user and no item is named.", gives=TEXT),
    Route(
        "GET",
        ACCESS,
        None,
        "Whether a key is needed, and what the one that is shown allows.",
        answer=Access,
        statuses=(401, 429),
        answered=examples.ACCESS,
    ),
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
    Route(
        "GET",
        PAGE,
        None,
        "The page: watch it learn, see why, try it. Where a key is needed, it asks for one.",
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
"""Where a client sends a request."""


def example_of(route: Route) -> Any:
    return None if route.answered is None else msgspec.to_builtins(route.answered)
