"""Rows of the log that lose their bodies: all of a user who is forgotten, and decisions that nobody answered in time."""

import time
from collections.abc import Sequence
from typing import cast

from albatross.service.api.errors import BadValue, DiskFull, UnknownUser
from albatross.service.api.values import check_id
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.retention import expired
from albatross.service.storage.events import Arrived, Decided, Erase, Forget, Genesis, Joined, Passed, Rated, Reacted, encode
from albatross.service.storage.handles import handles_of
from albatross.service.storage.placing import shard_of
from albatross.service.storage.reading import Sum, less, read_events
from albatross.service.storage.store import FollowingStore, Parcel, Row, Store

Erased = list[tuple[int, list[bytes]]]
"""Rows to erase, each with its handles."""


def names_of(user: str, model: Model) -> list[str]:
    """A user and the visitors joined with them. Refuses one of these visitors."""
    check_id("user", user)
    if model.visitors.known_as(user) != user:
        raise BadValue("this visitor was joined with a user; accepted: that user, who is forgotten with all their visitors")
    return [user, *model.visitors.of(user)]


def rows_of(names: Sequence[str], store: Store) -> Erased:
    """All rows of these users."""
    wanted = set(names)
    return [
        (seq, handles_of(event))
        for seq, event in read_events(store, checked=False)
        if (isinstance(event, Rated | Reacted | Decided | Arrived | Passed) and event.user in wanted)
        or (isinstance(event, Joined) and event.visitor in wanted)
    ]


def forget(names: Sequence[str], store: Store, genesis: Genesis, taken: Parcel | None = None) -> tuple[int, list[int]]:
    """Erase all rows of these users. The model is then to be rebuilt from the log.

    Returns the number of rows, and the other shards that are told to do the same: those of visitors who have moved here. `taken` is the
    message of the shard that has told this one.
    """
    rows = rows_of(names, store)
    shards = sorted({shard_of(name, genesis.shards) for name in names[1:]} - {genesis.shard}) if taken is None else []
    parcels = [(shard, encode(Erase(list(names)))) for shard in shards]
    tombstone = Row(encode(Forget(time.time(), [seq for seq, _ in rows])), parcels=parcels)
    if not rows and taken is None:
        raise UnknownUser("this user is not in the log; accepted: a user who is")
    if genesis.shards == 1:
        store.erase(rows, tombstone)
    elif rows:
        cast(FollowingStore, store).forget(rows, tombstone, names, taken)
    elif taken is not None:
        cast(FollowingStore, store).take(taken, [])
    return len(rows), shards


def expire(seconds: float, model: Model, store: Store, handles: Sum) -> Sum:
    """Drop decisions without an answer after this time, a few at a time. Returns the sum of the handles that are left."""
    before = model.expired
    due = expired(model, store, seconds)
    if due is None:
        return handles
    rows = [(dropped.seq, own) for dropped, own in zip(due.event.decisions, due.handles, strict=True)]
    try:
        store.erase(rows, Row(encode(due.event)), private=False)
    except DiskFull:
        model.expired = before
        return handles
    model.fold_all([store.head.seq], [due.event])
    return less(handles, [(handle, seq) for seq, own in rows for handle in own])
