"""One shard of several: what it sends to the others, and what it receives from them.

Each user lives on one shard. Knowledge of items consists of sums over users, so the sums of a shard are its *own part* plus the parts
that the others have sent. At intervals each shard sends what its own users have added (`take`). These payloads, in the order of the
shards, are a *version*, and every shard applies it (`fold`). `take` changes nothing, and `fold` depends only on the state and the
version. So a shard can be replayed alone, bit for bit, from its own ratings and the versions, in order.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import is_not
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.policy import Division, Policy
from albatross.core.sharing.arrays import read_arrays, write_arrays
from albatross.core.sharing.steps import Memory, Side, apply_version, find_added
from albatross.core.state import copied_into
from albatross.kernels.building.keeping import Kept
from albatross.kernels.compiling import program
from albatross.kernels.operations import Items, divide, offers
from albatross.kernels.pairs import Pairs, no_pairs
from albatross.kernels.rows import add_rows, digest_rows, note_moved

ROUNDING = 2.0**-50
"""A sum that has changed by less than this fraction of itself counts as unchanged: after a version, only rounding differs."""

USUAL_FIGURES = 64
"""Space for a report while its length is unknown."""

NO_ITEMS: Items = np.empty(0, np.int32)
NO_DIGESTS: NDArray[np.uint64] = np.empty(0, np.uint64)

PART_OF_AN_UPDATE = 4
"""Shards exchange at the latest after one rating per so many items: a lag of a quarter of an update per item costs little."""

GROWTH = 16384
"""Shards exchange when the number of ratings has grown by this fraction. While they have not heard of each other, all of them try the same
item that is not well known; each needless try costs regret."""


def exchange_interval(ratings: int, most: int) -> int:
    """The number of further ratings, all shards together, until the next exchange; at most `most`.

    >>> exchange_interval(0, 50), exchange_interval(163_840, 50), exchange_interval(1_000_000, 50)
    (1, 10, 50)
    """
    return max(1, min(most, ratings // GROWTH))


class Payload(NamedTuple):
    """What the users of one shard have added: plain arrays, for touched items only."""

    items: NDArray[np.int32]
    """Items whose sums have changed or that were refitted, ascending."""
    digests: NDArray[np.uint64]
    """Per such item: a digest of its derived values if it was refitted, otherwise zero."""
    figures: NDArray[np.float64]
    """What the policy reports about the population."""
    sums: tuple[NDArray[Any], ...]
    """Per array of sums: what was added, one row per such item."""

    def to_bytes(self) -> bytes:
        """The arrays in NumPy's format, one after the other. The same payload gives the same bytes."""
        return write_arrays((self.items, self.digests, self.figures, *self.sums))

    @classmethod
    def from_bytes(cls, content: bytes) -> "Payload":
        """The payload that `to_bytes` wrote."""
        return cls.of(read_arrays(content), len(content))

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]], size: int) -> "Payload":
        """The payload of these arrays, which were read from `size` bytes."""
        if len(arrays) < 3:
            raise InvalidInput(f"{size} bytes are no payload of an exchange: {len(arrays)} arrays")
        items, digests, figures, *sums = arrays
        return cls(items, digests, figures, tuple(sums))


class Version(NamedTuple):
    """The payloads of one exchange, one behind the other in the order of the shards."""

    bounds: Sequence[int]
    """Where the items of each shard begin, and where those of the last end."""
    items: NDArray[np.int32]
    digests: NDArray[np.uint64]
    senders: NDArray[np.int64]
    """The shards that have sent a payload."""
    figures: NDArray[np.float64]
    """One row for each of them."""
    parts: list[tuple[int, NDArray[np.int32], list[NDArray[Any]]]]
    """For each shard with items: its number, its items and their sums."""

    @classmethod
    def of(cls, payloads: Sequence[Payload | None]) -> "Version":
        """The payloads of all shards, which fit each other."""
        present = [(shard, payload) for shard, payload in enumerate(payloads) if payload is not None]
        touching = [(shard, payload) for shard, payload in present if payload.items.size]
        return cls(
            [0, *accumulate(0 if payload is None else payload.items.size for payload in payloads)],
            np.concatenate([NO_ITEMS, *(payload.items for _, payload in touching)]),
            np.concatenate([NO_DIGESTS, *(payload.digests for _, payload in touching)]),
            np.array([shard for shard, _ in present], np.int64),
            np.array([payload.figures for _, payload in present], np.float64, ndmin=2),
            [(shard, payload.items, list(map(_rows, payload.sums))) for shard, payload in touching],
        )


class Table(NamedTuple):
    """One array of sums: of all shards, of the others, and as last sent."""

    total: NDArray[Any]
    others: NDArray[Any]
    sent: NDArray[Any]


def check_shards(policy: Policy, shards: int) -> None:
    """Refuse a policy that cannot run on so many shards.

    >>> from albatross.policies.pts import PTS
    >>> check_shards(PTS(), 2)
    Traceback (most recent call last):
    albatross.kernels.errors.InvalidInput: policy 'pts' runs on one shard, because it does not say how its state divides; given: 2 shards
    """
    check_whole("shards", shards, 1)
    if shards > 1 and policy.division is None:
        raise InvalidInput(
            f"policy {policy.policy_name()!r} runs on one shard, because it does not say how its state divides; given: {shards} shards"
        )


class Exchange:
    """An agent without ratings as number `shard` of `shards`. Users are numbered per shard; items are the same on all.

    All shards have the same policy and the same seed. With one shard, an exchange never changes anything.

    >>> from albatross.policies.alb import ALB
    >>> shards = [Exchange(Agent(ALB(rank=2), n_users=3, n_items=4), shard, shards=2) for shard in range(2)]
    >>> shards[0].agent.update(user=1, item=2, reward=4.0)
    >>> version = [shard.take() for shard in shards]
    >>> for shard in shards:
    ...     shard.fold(version)
    >>> version[0].items.tolist(), bool(np.allclose(*(shard.agent.state.item_factors for shard in shards)))
    ([2], True)
    """

    def __init__(self, agent: Agent, shard: int, shards: int) -> None:
        check_shards(agent.policy, shards)
        if type(shard) is not int or not 0 <= shard < shards:
            raise InvalidInput(f"shard is {shard!r}; accepted: a whole number from 0 to {shards - 1}")
        self.agent = agent
        self.shard, self.shards = shard, shards
        self.division: Division = agent.policy.division or Division()
        self._several = shards > 1
        kept = (*self.division.sums, *self.division.population) if self._several else ()
        digests = self._digests(agent.state) if self._several else NO_DIGESTS
        self.memory = Memory(hollow(agent.state, kept), hollow(agent.state, kept), digests)
        self._side: Kept | None = None
        self._tables: list[Table] = []
        self._rows: list[Table] = []
        """The same tables with one row per item, also if an item has one number."""
        self._figures = np.zeros(USUAL_FIGURES)
        self._every = NO_ITEMS
        self._nothing = Payload(NO_ITEMS, NO_DIGESTS, np.empty(0), ())
        self._read = False
        """Whether the digests of the present state are known, if the agent has not learned since."""
        self._moved: Items | None = None
        """The items whose sums may differ from those last sent, if the agent has not learned since the last version; None: any may."""
        if self._several and offers(agent.state, divide):
            divide(agent.state)

    def take(self, learned: bool = True) -> Payload:
        """What own users have added since the last folded version. Changes nothing: a second call gives the same.

        `learned` is false if the agent has not learned since then. The payload is the same, but fewer items are looked at.
        """
        if not self._several:
            return self._nothing
        side = self._prepared()
        learned = learned or not self._read
        moved = self._every if learned or self._moved is None else self._moved
        for now, _, before in self._rows if moved.size else ():
            program(note_moved)(now, before, ROUNDING, moved, side.parts.touched)
        count, n_figures = self._enter(find_added)(side, learned, self._figures)
        if n_figures > self._figures.size:
            self._figures = np.zeros(n_figures)
            return self.take()
        self._read = True
        figures = self._figures[:n_figures].copy()
        if count == 0:
            return self._nothing._replace(figures=figures)
        items, digests = side.parts.items[:count].copy(), side.parts.fits[:count].copy()
        sums = [now.take(items, 0) - before.take(items, 0) for now, _, before in self._tables]
        return Payload(items, digests, figures, tuple(sums))

    def fold(self, payloads: Sequence[Payload | None]) -> None:
        """Apply what all shards have added, in their order. Item vectors are refitted at once.

        The own payload is part of the version. What own users have added since it was taken stays, and is part of the next version. A shard
        that did not answer in time is None; its payload becomes part of a later version, perhaps with more.
        """
        if len(payloads) != self.shards:
            raise InvalidInput(f"a version of {len(payloads)} payloads; accepted: {self.shards}, one per shard")
        if self._several:
            self.check([payload for payload in payloads if payload is not None])
            self.apply(Version.of(payloads))

    def apply(self, version: Version, learned: bool = True) -> None:
        """Apply what all shards have added. `learned` is false if the agent has not learned since the last `take`."""
        side = self._prepared()
        learned = learned or not self._read
        start, stop = version.bounds[self.shard : self.shard + 2]
        for shard, items, sums in version.parts:
            for (total, others, sent), added in zip(self._rows, sums, strict=True):
                program(add_rows)(total, others, sent, items, added, shard == self.shard)
        changed = self._enter(apply_version)(side, learned, self.shard, start, stop, *version[1:5])
        everything = learned or changed or self.shard not in version.senders  # without the own payload, its items still differ
        self._read, self._moved = True, None if everything else version.items

    def _enter(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return program(function, type(self.agent.state))

    def _prepared(self) -> Kept:
        """What compiled code works on: arrays of the agent and of the memory, either of which may have been replaced."""
        self.grow()
        agent, memory, side = self.agent, self.memory, self._side
        parts = (agent.state, agent.settings, agent.scratch, memory)
        if side is None or side.parts.random is not agent.learning or any(map(is_not, side.parts, parts)):
            n_items = agent.n_items
            digests, fits = np.empty((2, n_items), np.uint64)
            room = (digests, np.zeros(n_items, np.bool_), np.empty(n_items, np.int32), fits)
            self._side = side = Kept(Side(*parts, self._derived(agent.state), *room, agent.learning))
            self._every, self._read = np.arange(n_items, dtype=np.int32), False
            owners = (agent.state, memory.others, memory.sent)
            self._tables = [Table(*(part(owner, name) for owner in owners)) for name in self.division.sums]
            self._rows = [Table(*map(_rows, table)) for table in self._tables]
            self._nothing = self._nothing._replace(sums=tuple(table.total[:0].copy() for table in self._tables))
        return side

    def _derived(self, state: Any) -> NDArray[np.uint64]:
        """The bits of the derived values, one row per item."""
        if not self.division.derived:
            return np.empty((self.agent.n_items, 0), np.uint64)
        return part(state, self.division.derived[0]).view(np.uint64)

    def _digests(self, state: Any) -> NDArray[np.uint64]:
        """Per item a digest of its derived values, never zero. Fits that agree bit for bit have the same digest."""
        digests = np.empty(self.agent.n_items, np.uint64)
        program(digest_rows)(self._derived(state), digests)
        return digests

    def grow(self) -> None:
        """Make room for items that the agent has got since."""
        others, sent, digests = self.memory
        if len(digests) < self.agent.n_items:
            kept = (*self.division.sums, *self.division.population)
            blank = self.agent.blank_state(self.agent.n_users, self.agent.n_items)
            larger = self._digests(blank)
            larger[: len(digests)] = digests
            self.memory = Memory(copied_into(hollow(blank, kept), others), copied_into(hollow(blank, kept), sent), larger)

    def check(self, version: Sequence[Payload]) -> None:
        """Refuse payloads that do not fit this agent."""
        arrays = [part(self.agent.state, name) for name in self.division.sums]
        expected = [(array.dtype, array.shape[1:]) for array in arrays]
        for payload in version:
            given = [(array.dtype, array.shape[1:]) for array in payload.sums]
            lengths = {len(payload.items), len(payload.digests), *map(len, payload.sums)}
            if given != expected or len(lengths) > 1:
                raise InvalidInput(f"a payload with sums of {given} and {sorted(lengths)} rows; accepted: {expected}, all of one length")
            if len(payload.figures) != len(version[0].figures):
                raise InvalidInput("reports of different lengths in one version; accepted: those of one policy")
            first, last = (int(payload.items[0]), int(payload.items[-1])) if payload.items.size else (0, 0)
            if not 0 <= first <= last < self.agent.n_items:
                raise InvalidInput(f"a payload for items {first} to {last}; accepted: 0 to {self.agent.n_items - 1}, as the agent has")


def part(state: Any, name: str) -> NDArray[Any]:
    """An array of a state by its dotted name."""
    for word in name.split("."):
        state = getattr(state, word)
    return state  # type: ignore[no-any-return]


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    """One row per item, also if an item has one number."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def hollow(state: Any, kept: Sequence[str], prefix: str = "") -> Any:
    """A state of the same type with copies of the kept arrays; all other arrays are empty."""
    if isinstance(state, Pairs):
        return no_pairs(0)
    fields = {}
    for name, value in zip(state._fields, state, strict=True):
        if isinstance(value, tuple):
            fields[name] = hollow(value, kept, f"{prefix}{name}.")
        else:
            fields[name] = value.copy(order="K") if prefix + name in kept else np.empty((0,) * value.ndim, value.dtype)
    return type(state)(**fields)
