"""One shard of several: what it sends to the others, and what it receives from them.

Each user lives on one shard. Knowledge of items consists of sums over users, so the sums of a shard are its *own part* plus the parts
that the others have sent. At intervals each shard sends what its own users have added (`take`). These payloads, in the order of the
shards, are a *version*, and every shard applies it (`fold`). `take` changes nothing, and `fold` depends only on the state and the
version. So a shard can be replayed alone, bit for bit, from its own ratings and the versions, in order.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.policy import Division, Policy
from albatross.core.sharing.arrays import read_arrays, write_arrays
from albatross.core.state import copied_into
from albatross.kernels.building.addressing import by_address
from albatross.kernels.compiling import program
from albatross.kernels.operations import Items, divide, merge, offers, refit, report
from albatross.kernels.pairs import Pairs, no_pairs
from albatross.kernels.rows import add_rows, digest_rows, note_moved

ROUNDING = 2.0**-50
"""A sum that has changed by less than this fraction of itself counts as unchanged: after a version, only rounding differs."""

USUAL_FIGURES = 64
"""Space for a report while its length is unknown."""

NONE: Items = np.empty(0, np.int32)

PART_OF_AN_UPDATE = 4
"""Shards exchange at the latest after one rating per so many items: a lag of a quarter of an update per item costs little."""

GROWTH = 4096
"""Shards exchange when the number of ratings has grown by this fraction. While they have not heard of each other, all of them try the same
item that is not well known; each needless try costs regret."""


def exchange_interval(ratings: int, most: int) -> int:
    """The number of further ratings, all shards together, until the next exchange; at most `most`.

    >>> exchange_interval(0, 50), exchange_interval(40_960, 50), exchange_interval(1_000_000, 50)
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


class Memory(NamedTuple):
    """What an exchange stores besides the state of its agent. To be saved with it."""

    others: Any
    """A state with only sums and population figures: those of all other shards."""
    sent: Any
    """The same for all shards: the own part as last sent, and the parts received since."""
    digests: NDArray[np.uint64]
    """Per item: a digest of its derived values when it was last sent to the others."""


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


def report_figures(state: Any, others: Any, since: Any, figures: NDArray[np.float64]) -> int:
    return report(by_address(state), by_address(others), by_address(since), figures)


def merge_figures(state: Any, reports: NDArray[np.float64]) -> None:
    lent = by_address(state)
    for row in range(reports.shape[0]):
        merge(lent, reports[row])


def refit_items(state: Any, settings: Any, scratch: Any, others: Any, items: Items, random: np.random.Generator) -> None:
    refit(by_address(state), settings, by_address(scratch), by_address(others), items, random)


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
        self.memory = Memory(hollow(agent.state, kept), hollow(agent.state, kept), self._digests(agent.state))
        if self._several and offers(agent.state, divide):
            divide(agent.state)

    def take(self) -> Payload:
        """What own users have added since the last folded version. Changes nothing: a second call gives the same."""
        if not self._several:
            return Payload(np.empty(0, np.int32), np.empty(0, np.uint64), np.empty(0), ())
        self.grow()
        digests = self._digests(self.agent.state)
        refitted = digests != self.memory.digests
        touched = refitted.copy()
        pairs = [(part(self.agent.state, name), part(self.memory.sent, name)) for name in self.division.sums]
        for now, before in pairs:
            rounding = ROUNDING if now.dtype.kind == "f" else 0.0
            program(note_moved)(_rows(now), _rows(before), rounding, touched)
        items = np.flatnonzero(touched)
        sums = tuple(now[items] - before[items] for now, before in pairs)
        return Payload(items.astype(np.int32), np.where(refitted, digests, np.uint64(0))[items], self._report(), sums)

    def fold(self, version: Sequence[Payload | None]) -> None:
        """Apply what all shards have added, in their order. Item vectors are refitted at once.

        The own payload is part of the version. What own users have added since it was taken stays, and is part of the next version. A shard
        that did not answer in time is None; its payload becomes part of a later version, perhaps with more.
        """
        if len(version) != self.shards:
            raise InvalidInput(f"a version of {len(version)} payloads; accepted: {self.shards}, one per shard")
        if not self._several:
            return
        self.grow()
        present = [payload for payload in version if payload is not None]
        self.check(present)
        own = version[self.shard]
        heard = [payload for number, payload in enumerate(version) if payload is not None and number != self.shard]
        state, memory = self.agent.state, self.memory
        for target, payloads in ((state, heard), (memory.others, heard), (memory.sent, present)):
            for payload in payloads:
                if payload.items.size:
                    for name, added in zip(self.division.sums, payload.sums, strict=True):
                        program(add_rows)(_rows(part(target, name)), payload.items, _rows(added))
            if payloads:
                self._merge(target, payloads)
        if own is not None:
            fitted = own.digests > 0
            memory.digests[own.items[fitted]] = own.digests[fitted]
        if offers(state, refit):
            waiting = self._digests(state) != memory.digests
            fitted_there = [payload.items[payload.digests > 0] for payload in heard if payload.items.size]
            items = np.unique(np.concatenate(fitted_there)) if fitted_there else NONE
            self._enter(refit_items)(state, self.agent.settings, self.agent.scratch, memory.others, items, self.agent.learning)
            memory.digests[~waiting] = self._digests(state)[~waiting]

    def _enter(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return program(function, type(self.agent.state))

    def _report(self) -> NDArray[np.float64]:
        state, room = self.agent.state, USUAL_FIGURES
        if not offers(state, report):
            return np.empty(0)
        while True:
            figures = np.zeros(room)
            needed = self._enter(report_figures)(state, self.memory.others, self.memory.sent, figures)
            if needed <= room:
                return figures[:needed]
            room = needed

    def _merge(self, target: Any, payloads: Sequence[Payload]) -> None:
        if offers(target, merge):
            self._enter(merge_figures)(target, np.array([payload.figures for payload in payloads]))

    def _digests(self, state: Any) -> NDArray[np.uint64]:
        """Per item a digest of its derived values, never zero. Fits that agree bit for bit have the same digest."""
        if not self._several or not self.division.derived:
            n_items = self.agent.n_items if self._several else 0
            return np.ones(n_items, np.uint64)
        rows = part(state, self.division.derived[0])
        digests = np.empty(len(rows), np.uint64)
        program(digest_rows)(rows.view(np.uint64), digests)
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


class Gathering:
    """Merges payloads of one shard into one: folding it gives the same knowledge of the shard as folding all of them."""

    def __init__(self, agent: Agent) -> None:
        """`agent`: of the same policy, without ratings."""
        self._agent = agent
        population = (agent.policy.division or Division()).population
        self._blank, self._total = hollow(agent.state, population), hollow(agent.state, population)
        self._digests = np.empty(0, np.uint64)
        self._touched = np.empty(0, np.bool_)
        self._sums: tuple[NDArray[Any], ...] | None = None
        self._figures = np.empty(0)

    def add(self, payload: Payload) -> None:
        if self._sums is None:
            self._sums = tuple(np.empty((0, *array.shape[1:]), array.dtype) for array in payload.sums)
        room = int(payload.items[-1]) + 1 if payload.items.size else 0
        if room > len(self._touched):
            room = max(room, 2 * len(self._touched))
            self._digests, self._touched = lengthened(self._digests, room), lengthened(self._touched, room)
            self._sums = tuple(lengthened(array, room) for array in self._sums)
        self._touched[payload.items] = True
        fitted = payload.digests > 0
        self._digests[payload.items[fitted]] = payload.digests[fitted]
        for total, added in zip(self._sums, payload.sums, strict=True):
            total[payload.items] += added
        if offers(self._total, merge):
            program(merge_figures, type(self._agent.state))(self._total, payload.figures[None])
        self._figures = np.zeros(payload.figures.size)

    def payload(self) -> Payload:
        items = np.flatnonzero(self._touched).astype(np.int32)
        if offers(self._total, report):  # everything in it came from reports, so it also stands for the others
            program(report_figures, type(self._agent.state))(self._total, self._total, self._blank, self._figures)
        return Payload(items, self._digests[items], self._figures, tuple(array[items] for array in self._sums or ()))


def lengthened(array: NDArray[Any], room: int) -> NDArray[Any]:
    """The same array with more rows, all zero."""
    return np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), array.dtype)])


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
