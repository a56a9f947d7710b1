"""Requests of the exchange to an engine that is one shard of several: what its users have added, and what all shards have added.

They come from the process of the shard itself, never from a client.
"""

import time
from typing import Any, cast

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Answer
from albatross.service.api.errors import BadValue
from albatross.service.api.requests import Request
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.shared import Shared
from albatross.service.storage.events import Based, Exchanged, decode, digest_of_version, encode
from albatross.service.storage.handles import handles_of
from albatross.service.storage.reading import Sum, summed
from albatross.service.storage.store import FollowingStore, Row, Store


class Added(Answer, frozen=True):
    """What the users of a shard have added."""

    version: int
    """The last version that was applied."""
    told: int
    """The last version with a payload of this shard: the content is what was added since."""
    catalogue: int
    """The content covers items up to this number of the catalogue."""
    ratings: int
    moved: bool
    """Whether sums of items have changed."""
    content: bytes


class Known(Answer, frozen=True):
    """The progress of a shard."""

    version: int
    catalogue: int


class TakeAdded(Request[Added], frozen=True):
    """What own users have added since the shard last sent."""


class FoldVersion(Request[Known], frozen=True):
    """Apply what all shards have added."""

    version: int
    catalogue: int
    """The payloads cover items up to this number of the catalogue."""
    contents: list[bytes | None]


class FollowCatalogue(Request[Known], frozen=True):
    """Copy what others have written to the catalogue."""


class TakeBase(Request[Known], frozen=True):
    """Begin the log anew from a base, which stands for all versions up to one. Takes as long as a replay."""

    version: int


class TakeParcels(Request[Known], frozen=True):
    """Take what other shards have sent to this one."""


class Sums(Answer, frozen=True):
    """Statistics as stored: sums over groups of ratings."""

    width: int
    count: int
    sums: list[list[float]]


class AskSums(Request[Sums], frozen=True):
    """Statistics of this shard, for merging the shards."""


SHARING = (TakeAdded, FoldVersion, FollowCatalogue, TakeParcels)
"""What is quick."""

BASED = b"based"
"""Content of the handle of a base: there is only one thing it can be."""


def share(request: Request[Any], model: Model, store: Store, handles: Sum) -> tuple[Answer, Sum]:
    """The answer, and the sum of the handles in the log."""
    if model.shared is None:
        raise BadValue("there is one shard here; accepted: one shard of several")
    following = cast(FollowingStore, store)
    if isinstance(request, TakeAdded):
        return _take(model, model.shared, following), handles
    if isinstance(request, FoldVersion):
        return _fold(request, model, model.shared, following, handles)
    handles = follow(model, following, handles)
    return known(model, store), handles


def known(model: Model, store: Store) -> Known:
    return Known(model.version, cast(FollowingStore, store).followed)


def follow(model: Model, store: Store, handles: Sum) -> Sum:
    """Copy all new events of the catalogue, and apply them. Returns the sum of the handles in the log."""
    following = cast(FollowingStore, store)
    while rows := following.follow():
        seqs = range(store.head.seq - len(rows) + 1, store.head.seq + 1)
        events = [decode(row.body or b"") for row in rows]
        model.fold_all(seqs, events)
        model.learn()
        handles = summed(((handle, seq) for seq, event in zip(seqs, events, strict=True) for handle in handles_of(event)), handles)
    return handles


def begin_from(version: int, model: Model, store: Store) -> None:
    """Write down that a base stands for all versions up to one. The model is then to be rebuilt from the log."""
    if model.shared is None or not model.base < version <= model.version:
        raise BadValue(f"version {version} of a base; accepted: {model.base + 1} to {model.version}")
    base = store.base(version)
    try:
        model.shared.check(base.contents)
    except InvalidInput as refusal:  # the shard goes on without it
        raise BadValue(f"the base of version {version} cannot be used: {refusal}") from refusal
    event = Based(time.time(), version, base.digest)
    cast(FollowingStore, store).begin_from(version, Row(encode(event), [(handle, BASED) for handle in handles_of(event)]))


def _take(model: Model, shared: Shared, store: FollowingStore) -> Added:
    content = shared.take(model.ledger)
    return Added(model.version, model.told, store.followed, model.ratings, content.moved, content.to_bytes())


def _fold(request: FoldVersion, model: Model, shared: Shared, store: FollowingStore, handles: Sum) -> tuple[Known, Sum]:
    if request.version > model.version + 1:
        raise BadValue(f"version {request.version} is not the next; accepted: {model.version + 1}")
    if request.version == model.version + 1:
        if store.followed < request.catalogue:
            handles = follow(model, store, handles)
        shared.check(request.contents)
        event = Exchanged(time.time(), request.version, digest_of_version(request.contents))
        store.append([Row(encode(event))])
        model.read_version = lambda _: request.contents
        model.fold_all([store.head.seq], [event])
    return known(model, store), handles
