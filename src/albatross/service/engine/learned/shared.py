"""What a shard exchanges with the others: the policy's sums over users, and how often items were rated and shown."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.errors import InvalidInput
from albatross.core.sharing.arrays import read_arrays, write_arrays
from albatross.core.sharing.exchange import ROUNDING, Exchange, Payload
from albatross.core.sharing.gathering import Gathering, lengthened
from albatross.core.state import copied, flatten, restored
from albatross.kernels.operations import Items
from albatross.service.engine.learned.ledger import Ledger


class Counts(NamedTuple):
    """Per item, over the users of all shards; as in the ledger."""

    item_ratings: NDArray[Any]
    item_sums: NDArray[Any]
    item_shown: NDArray[Any]


class Told(NamedTuple):
    """What a shard stores about the exchange. To be saved with the model."""

    memory: Any
    counts: Counts
    """Own counts as last sent, with those received from others since."""


class Content(NamedTuple):
    """What a shard has added, as sent."""

    items: Items
    counts: Counts
    payload: Payload

    @property
    def moved(self) -> bool:
        return bool(self.items.size or self.payload.items.size)

    @property
    def largest(self) -> int:
        """The largest number of an item."""
        return max(int(items[-1]) if items.size else 0 for items in (self.items, self.payload.items))

    def to_bytes(self) -> bytes:
        return write_arrays((self.items, *self.counts)) + self.payload.to_bytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Content":
        arrays = read_arrays(content)
        own = 1 + len(Counts._fields)
        payload = Payload.of(arrays[own:], len(content))
        return cls(arrays[0], Counts(*arrays[1:own]), payload)


class Contents:
    """Contents of one shard, one after the other, as one."""

    def __init__(self, agent: Agent) -> None:
        """`agent`: one of the policy that has learned nothing."""
        self._payloads = Gathering(agent)
        self._counts = Counts(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
        self._touched = np.zeros(0, np.bool_)

    def add(self, content: Content) -> None:
        room = int(content.items[-1]) + 1 if content.items.size else 0
        if room > len(self._touched):
            room = max(room, 2 * len(self._touched))
            self._touched = lengthened(self._touched, room)
            self._counts = Counts(*(lengthened(array, room) for array in self._counts))
        self._touched[content.items] = True
        for total, added in zip(self._counts, content.counts, strict=True):
            total[content.items] += added
        self._payloads.add(content.payload)

    def content(self) -> Content:
        items = np.flatnonzero(self._touched).astype(np.int32)
        return Content(items, Counts(*(array[items] for array in self._counts)), self._payloads.payload())


class Shared:
    """One shard's side of the exchange. The ledger of its model also counts what it has received from others."""

    def __init__(self, agent: Agent, shard: int, shards: int) -> None:
        self._exchange = Exchange(agent, shard, shards)
        self._counts = Counts(np.zeros(agent.n_items, np.int64), np.zeros(agent.n_items), np.zeros(agent.n_items, np.int64))
        self._read: tuple[Sequence[bytes | None], list[Content | None]] = ([], [])
        """The version that was read last: it is looked at before it is written down, and folded then."""

    def serve(self, agent: Agent) -> None:
        """Use this agent from now on: it has the same beliefs, and more room."""
        self._exchange.agent = agent

    def take(self, ledger: Ledger) -> Content:
        """What own users have added since this shard last sent. Changes nothing."""
        self._grow()
        now, before = _counts_of(ledger), self._counts
        moved = np.zeros(before.item_ratings.size, np.bool_)
        for one, other in zip(now, before, strict=True):
            moved |= np.abs(one - other) > ROUNDING * np.abs(one)
        items = np.flatnonzero(moved).astype(np.int32)
        added = Counts(*(one[items] - other[items] for one, other in zip(now, before, strict=True)))
        return Content(items, added, self._exchange.take())

    def read(self, contents: Sequence[bytes | None]) -> list[Content | None]:
        """What shards have sent, one each."""
        if self._read[0] is not contents:
            self._read = contents, [None if content is None else Content.from_bytes(content) for content in contents]
        return self._read[1]

    def fold(self, ledger: Ledger, contents: Sequence[bytes | None]) -> None:
        """Apply what all shards have added, in their order."""
        version = self.read(contents)
        self._read = ([], [])
        self._grow()
        for shard, content in enumerate(version):
            if content is not None:
                is_own = shard == self._exchange.shard
                for target in (self._counts,) if is_own else (self._counts, _counts_of(ledger)):
                    for array, added in zip(target, content.counts, strict=True):
                        array[content.items] += added
                if not is_own:
                    ledger.everybody[:] += (content.counts.item_ratings.sum(), content.counts.item_sums.sum())
        self._exchange.fold([None if content is None else content.payload for content in version])

    def check(self, contents: Sequence[bytes | None]) -> None:
        """Refuse what cannot be applied, before it is written."""
        self._grow()
        present = [content for content in self.read(contents) if content is not None]
        self._exchange.check([content.payload for content in present])
        for content in present:
            if any(array.shape != content.items.shape for array in content.counts):
                raise InvalidInput("counts of other items than are named; accepted: one of each per item")
            if content.items.size and not 0 <= content.items.min() <= content.items.max() < self._counts.item_ratings.size:
                raise InvalidInput(f"counts of item {content.items.max()}; accepted: below {self._counts.item_ratings.size}")

    def saved(self) -> list[tuple[str, NDArray[Any]]]:
        self._grow()
        return list(flatten(copied(Told(self._exchange.memory, self._counts))))

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._grow()
        self._exchange.memory, self._counts = restored(Told(self._exchange.memory, self._counts), arrays)

    def _grow(self) -> None:
        """Make room for items that the agent was given since."""
        self._exchange.grow()
        more = self._exchange.agent.n_items - self._counts.item_ratings.size
        if more > 0:
            self._counts = Counts(*(np.concatenate([array, np.zeros(more, array.dtype)]) for array in self._counts))


def _counts_of(ledger: Ledger) -> Counts:
    return Counts(ledger.item_ratings, ledger.item_sums, ledger.item_shown)
