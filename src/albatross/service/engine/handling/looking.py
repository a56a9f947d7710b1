"""Requests that only read, answered after the group is applied."""

from collections.abc import Callable
from typing import Any

from albatross.service.api.answers import Answer, Series, Version
from albatross.service.api.requests import (
    AskDisk,
    AskSeries,
    AskVersion,
    ListEvents,
    ListItems,
    ListUsers,
    SimilarItems,
    Suppose,
    ViewDecision,
    ViewUser,
)
from albatross.service.api.views import Disk
from albatross.service.engine.answering import disk_of, version_of
from albatross.service.engine.deciding.likeness import similar_items
from albatross.service.engine.deciding.supposing import suppose
from albatross.service.engine.group import Finish, Group, Handler, Handlers
from albatross.service.engine.learned.model import Model
from albatross.service.engine.sharing import AskSums, Sums
from albatross.service.engine.viewing.listing import list_items, list_users
from albatross.service.engine.viewing.logged import list_events
from albatross.service.engine.viewing.reading import read_decision, read_user
from albatross.service.storage.store import Store


def version(group: Group, request: AskVersion) -> Callable[[], Version]:
    engaged = group.engaged
    return lambda: version_of(group.model, group.store.head, engaged.durability, request.state, engaged.known_state)


def disk(group: Group, request: AskDisk) -> Callable[[], Disk]:
    return lambda: disk_of(group.engaged.folder, group.store, group.engaged.known_state)


def series(group: Group, request: AskSeries) -> Callable[[], Series]:
    return group.model.series.series


def sums(group: Group, request: AskSums) -> Callable[[], Sums]:
    keeper = group.model.series
    return lambda: Sums(keeper.width, keeper.count, keeper.sums.tolist())


def at_the_end(read: Callable[[Model, Store, Any], Answer]) -> Handler:
    """A handler that only reads, after the group is applied."""

    def look(group: Group, request: Any) -> Finish:
        return lambda: read(group.model, group.store, request)

    return look


READING: Handlers = {
    AskVersion: version,
    AskSeries: series,
    AskSums: sums,
    AskDisk: disk,
    ViewUser: at_the_end(read_user),
    ListUsers: at_the_end(list_users),
    ListItems: at_the_end(list_items),
    ListEvents: at_the_end(list_events),
    ViewDecision: at_the_end(read_decision),
    Suppose: at_the_end(suppose),
    SimilarItems: at_the_end(similar_items),
}
"""Requests that still work when the disk is full."""
