"""A visitor is joined with a user of another shard: what this shard sends there, and what it takes from others.

The log of the visitor's shard keeps the visitor's decisions and all ids. What is learned about the visitor moves to the user's shard, and
what comes later for those decisions is passed on, in messages that count once.
"""

from collections import Counter
from collections.abc import Iterator
from typing import cast

from msgspec.structs import replace

from albatross.core.sharing.carrying import rows_of
from albatross.service.api.answers import Answer
from albatross.service.engine.learned.ledger import latest_of, rated_by
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Arrived, Message, Passed, Past, Rated, Reacted, decode, encode
from albatross.service.storage.placing import shard_of
from albatross.service.storage.store import FollowingStore, Parcel, ReadableLog, Row, Store

MOST_PAST = 200
"""Limit of ratings that can be shown after a move: the latest."""


class Forwarded(Answer, frozen=True):
    """An answer that is true only when other shards have taken what they were sent. A front sees to that; no client ever sees this."""

    answer: Answer
    shards: list[int]


def shard_of_user(model: Model, user: str) -> int:
    """The shard of a user."""
    return shard_of(user, model.genesis.shards)


def departure(at: float, visitor: str, user: str, model: Model, log: ReadableLog) -> Arrived:
    """All that is known here about a visitor."""
    row, visitors = model.users.numbers.get(visitor), list(model.visitors.of(visitor))
    pending = list(model.pending.get(visitor, {}))
    if row is None or not model.ledger.user_ratings[row]:
        return Arrived(at, visitor, user, visitors, b"", [], pending, [])
    items = rated_by(model.ledger, row)[::-1].tolist()
    past = [known for _, known in latest_ratings(model, log, row, MOST_PAST)]
    return Arrived(at, visitor, user, visitors, rows_of(model.agent, row), items, pending, past[::-1])


def latest_ratings(model: Model, log: ReadableLog, row: int, n: int) -> Iterator[tuple[int, Past]]:
    """The latest ratings of a user, latest first, each with the event that brought it here."""
    shown: Counter[tuple[int, int]] = Counter()
    for seq, item in latest_of(model.ledger, row, n):
        body = log.body(seq)
        event = None if body is None else decode(body)
        if isinstance(event, Rated | Reacted | Passed):
            yield seq, Past(event.item, event.rating, event.at)
        elif isinstance(event, Arrived):
            known = [past for past in reversed(event.past) if past.item == model.items.names[item]]
            if shown[seq, item] < len(known):
                yield seq, known[shown[seq, item]]
            shown[seq, item] += 1


def passed(rated: Rated | Reacted, visitor: str) -> Passed:
    """An answer to a decision of a visitor who has moved."""
    event, before = (rated.event, rated.before) if isinstance(rated, Reacted) else ("", None)
    return Passed(rated.at, visitor, rated.user, rated.item, rated.rating, rated.mean, rated.score, event, before)


def take_in(message: Message, parcel: Parcel, model: Model, store: Store) -> None:
    """Write what another shard has sent, and learn it; or pass it on, if the user has moved as well."""
    assert isinstance(message, Arrived | Passed)
    following = cast(FollowingStore, store)
    elsewhere = model.visitors.elsewhere.get(message.user)
    if elsewhere is not None:
        following.take(parcel, [], [(shard_of_user(model, elsewhere), encode(replace(message, user=elsewhere)))])
    elif isinstance(message, Passed) and model.visitors.known_as(message.visitor) != model.visitors.known_as(message.user):
        following.take(parcel, [])  # the user has been forgotten since, and the other shard is about to hear of it
    else:
        event = replace(message, user=model.visitors.known_as(message.user))
        following.take(parcel, [Row(encode(event))])
        model.fold_all([store.head.seq], [event])
        model.learn()
