"""Rows of the log that lose their bodies: all of a user who is forgotten, and decisions that nobody answered in time."""

import time

from albatross.service.api.errors import BadValue, DiskFull, UnknownUser
from albatross.service.api.values import check_id
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.retention import expired
from albatross.service.storage.events import Decided, Forget, Joined, Rated, Reacted, encode
from albatross.service.storage.handles import handles_of
from albatross.service.storage.reading import Sum, less, read_events
from albatross.service.storage.store import Row, Store

Erased = list[tuple[int, list[bytes]]]
"""Rows to erase, each with its handles."""


def rows_of(user: str, model: Model, store: Store) -> Erased:
    """All rows of a user, and of the visitors joined with them. Refuses a user without any."""
    check_id("user", user)
    if user in model.visitors.users:
        raise BadValue("this visitor was joined with a user; accepted: that user, who is forgotten with all their visitors")
    names = {user, *model.visitors.of(user)}
    found = [
        (seq, handles_of(event))
        for seq, event in read_events(store, checked=False)
        if isinstance(event, Rated | Reacted | Decided | Joined) and event.user in names
    ]
    if not found:
        raise UnknownUser("this user is not in the log; accepted: a user who is")
    return found


def forget(rows: Erased, store: Store) -> None:
    """Erase these rows. The model is then to be rebuilt from the log."""
    store.erase(rows, Row(encode(Forget(time.time(), [seq for seq, _ in rows]))))


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
