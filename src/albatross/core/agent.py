"""A policy that remembers: policy, state and random streams."""

import copy
import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.files import whole_file
from albatross.core.memory import check_sizes
from albatross.core.policy import Policy
from albatross.core.state import copied, copied_into, flatten, identity, places_left_by_joining, reserve, restored, tables_of, tidied
from albatross.core.streams import stream
from albatross.kernels.building.keeping import Kept, parts_of
from albatross.kernels.compiling import program
from albatross.kernels.operations import ALL_ITEMS, Items, Slate, join, offers, replace, select, update
from albatross.kernels.search.catalogue import scanned


class Choice(NamedTuple):
    """An item to show, and why: score = mean + bonus."""

    item: int
    score: float
    mean: float
    """The expected reward."""
    bonus: float
    """The exploration bonus."""
    propensity: float
    """The probability of this choice; NaN if the policy cannot tell."""


class Mind(NamedTuple):
    """What an agent decides with. The object is the same in every call; only the contents of its arrays change."""

    state: Any
    settings: Any
    scratch: Any
    slate: Slate


class Drawing(NamedTuple):
    random: np.random.Generator


def choose(mind: Any, drawing: Any, user: int, candidates: Items, whole: bool, best: Items) -> tuple[int, float]:
    state, settings, scratch, slate = parts_of(mind)
    random = parts_of(drawing).random
    position, propensity = select(state, settings, scratch, user, candidates, Slate(slate.scores, slate.means, whole, best), random)
    return position, propensity


def learn(mind: Any, drawing: Any, users: NDArray[np.int64], items: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
    state, settings, scratch, _ = parts_of(mind)
    random = parts_of(drawing).random
    for step in range(users.size):
        update(state, settings, scratch, users[step], items[step], rewards[step], random)


def exchange(mind: Any, drawing: Any, user: int, item: int, before: float, after: float) -> None:
    state, settings, scratch, _ = parts_of(mind)
    replace(state, settings, scratch, user, item, before, after, parts_of(drawing).random)


def unite(mind: Any, drawing: Any, user: int, other: int, room: NDArray[np.int32]) -> None:
    state, settings, scratch, _ = parts_of(mind)
    join(state, settings, scratch, user, other, room, parts_of(drawing).random)


MOST_LISTED = 128
"""Up to so many best candidates are listed by the policy; for more, the whole slate is filled."""

MOST_STREAMS = 4
"""Random streams that are kept ready for compiled code."""
MOST_UNUSABLE = 256
"""Unusable places, left by joins, after which a table of pairs is rewritten; for a large table, a quarter of it."""


class Agent:
    """Chooses items for users and learns from each rating at once.

    >>> from albatross.policies.alb import ALB
    >>> agent = Agent(ALB(rank=2), n_users=3, n_items=4, seed=0)
    >>> choice = agent.select(user=1, candidates=[0, 2])
    >>> agent.update(user=1, item=choice.item, reward=4.0)
    >>> agent.select(user=1, candidates=[0, 2]).item == choice.item
    True
    """

    def __init__(self, policy: Policy, n_users: int, n_items: int, seed: int = 0, truth: Truth | None = None) -> None:
        for name, number, least in (("n_users", n_users, 1), ("n_items", n_items, 1), ("seed", seed, 0)):
            check_whole(name, number, least)
        if policy.asks() and truth is None:
            needs = " and ".join(policy.asks())
            raise InvalidInput(f"policy {policy.policy_name()!r} must be told {needs}, which only a simulated world has")
        check_sizes(policy, n_users, n_items)
        self.policy = policy
        self.seed = seed
        self.exploring = stream(seed, "exploring")
        self.learning = stream(seed, "learning")
        self.settings = policy.settings()
        self._truth = truth
        self.searches = True
        """Whether the best item of a large catalogue is searched. If not, all items are scored, with the same choices."""
        self._unusable = 0
        """Upper bound of the unusable places in tables of pairs."""
        self._mind: Kept | None = None
        self._drawing: dict[np.random.Generator, Kept] = {}
        self.state: Any = self.blank_state(n_users, n_items)
        self._shape(n_users, n_items)

    def select(self, user: int, candidates: Sequence[int] | NDArray[Any] | None = None) -> Choice:
        """The item to show this user, among the candidates or all items. Changes no learned state."""
        offered = ALL_ITEMS if candidates is None else self._candidates(candidates)
        position, propensity = self._choose(user, offered, whole=False)
        return self._choice(position, offered, propensity)

    def recommend(self, user: int, n: int, candidates: Sequence[int] | NDArray[Any] | None = None) -> list[Choice]:
        """The n items with the best scores, best first; ties go to the first candidates. A ranking is not random: it has no propensity."""
        offered = ALL_ITEMS if candidates is None else self._candidates(candidates)
        n_candidates = offered.size or self.n_items
        check_whole("n", n, 1)
        if n > n_candidates:
            raise InvalidInput(f"n is {n}; accepted: at most the number of candidates, {n_candidates}")
        room = room_for_best(n)
        self._choose(user, offered, whole=room.size == 0, best=room)
        return [self._choice(int(position), offered, math.nan) for position in self.best(n, n_candidates, room)]

    def best(self, n: int, n_candidates: int, listed: Items) -> NDArray[np.integer[Any]]:
        """The positions of the n best candidates, best first, ties by position: as listed by the policy, or else from its slate."""
        if listed.size > 0 and listed[0] >= 0:
            return listed
        scores = self.slate.scores[:n_candidates]
        least = np.partition(scores, n_candidates - n)[n_candidates - n]
        better = np.flatnonzero(scores > least)
        positions = np.concatenate([better, np.flatnonzero(scores == least)[: n - better.size]])
        return positions[np.lexsort((positions, -scores[positions]))]

    def update(self, user: int, item: int, reward: float) -> None:
        """Learn from one rating."""
        user, item = self._within("user", user, self.n_users), self._within("item", item, self.n_items)
        self.learn(np.array([user]), np.array([item]), self._rewards([reward]))

    def replay(self, users: ArrayLike, items: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from many ratings in order: the same as one `update` for each."""
        user_numbers = self._within_all("user", users, self.n_users)
        item_numbers = self._within_all("item", items, self.n_items)
        values = self._rewards(rewards)
        if not user_numbers.shape == item_numbers.shape == values.shape:
            lengths = f"{user_numbers.size}, {item_numbers.size} and {values.size}"
            raise InvalidInput(f"users, items and rewards have lengths {lengths}; accepted: equal ones")
        self.learn(user_numbers, item_numbers, values)

    def run(self, function: Callable[..., Any], random: np.random.Generator, *arguments: Any) -> Any:
        """Run a compiled function. Its first two arguments hold a `Mind` and a `Drawing`, which `parts_of` unpacks."""
        mind, drawing = self._mind, self._drawing.get(random)
        if mind is None or mind.parts.state is not self.state:
            mind = self._mind = Kept(Mind(self.state, self.settings, self.scratch, self.slate))
        if drawing is None:
            if len(self._drawing) == MOST_STREAMS:
                self._drawing.clear()
            drawing = self._drawing[random] = Kept(Drawing(random))
        return program(function, type(self.state))(mind, drawing, *arguments)

    def replace(self, user: int, item: int, before: float, after: float) -> None:
        """Undo one rating that this user gave this item, and learn another instead.

        Counts and sums of ratings are then as if only the new one had been given. Choices and fits made in between stay.

        >>> from albatross.policies.item_mean import ItemMean
        >>> agent = Agent(ItemMean(), n_users=1, n_items=1)
        >>> agent.replay([0, 0], [0, 0], [1.0, 2.0])
        >>> agent.replace(user=0, item=0, before=1.0, after=5.0)
        >>> agent.select(user=0).mean
        3.5
        """
        if not offers(self.state, replace):
            raise InvalidInput(
                f"policy {self.policy.policy_name()!r} cannot take a rating back; accepted: one with the operation `replace`, such as alb"
            )
        user, item = self._within("user", user, self.n_users), self._within("item", item, self.n_items)
        if not (math.isfinite(before) and math.isfinite(after)):
            raise InvalidInput(f"the ratings are {before!r} and {after!r}; accepted: finite numbers")
        self.run(exchange, self.learning, user, item, float(before), float(after))

    def join(self, user: int, other: int) -> None:
        """Assign all ratings of `other` to `user`: they are the same person. `other` then has no ratings.

        Counts and sums of ratings are then as if all had come from one user. Decisions and fits made before stay.

        >>> from albatross.policies.user_ucb import UserUCB
        >>> agent = Agent(UserUCB(), n_users=2, n_items=1)
        >>> agent.replay([0, 1], [0, 0], [1.0, 4.0])
        >>> agent.join(user=0, other=1)
        >>> agent.select(user=0).mean
        2.5
        """
        if not offers(self.state, join):
            raise InvalidInput(
                f"policy {self.policy.policy_name()!r} cannot let two users be one; accepted: one with the operation `join`, such as alb"
            )
        user, other = self._within("user", user, self.n_users), self._within("other", other, self.n_users)
        if user == other:
            raise InvalidInput(f"user and other are both {user}; accepted: two users")
        left = places_left_by_joining(self.state, user, other)
        self.run(unite, self.learning, user, other, np.empty((2, self.n_items), np.int32))
        self.leave_places(left)

    def make_places(self, n_pairs: int) -> None:
        """Make room for so many more pairs."""
        self.state = reserve(self.state, n_pairs + self._unusable)

    def leave_places(self, count: int) -> None:
        """Up to so many places in tables of pairs have become unusable. If there are many, the tables are rewritten."""
        self._unusable += count
        if self._unusable > max([MOST_UNUSABLE, *(int(pairs.used[0]) // 4 for pairs in tables_of(self.state))]):
            self.state, self._unusable = tidied(self.state), 0

    def grow(self, n_users: int, n_items: int) -> None:
        """Make room for new users and items. What was learned about the old ones stays, bit for bit."""
        check_whole("n_users", n_users, self.n_users)
        check_whole("n_items", n_items, self.n_items)
        check_sizes(self.policy, n_users, n_items)
        state = copied_into(self.blank_state(n_users, n_items), self.state)
        self._shape(n_users, n_items)
        self.state = state

    def search(self, searches: bool) -> None:
        """Search large catalogues from now on, or score all their items. Only time and machine code differ."""
        if searches != self.searches:
            self.searches = searches
            self._shape(self.n_users, self.n_items)

    def apart(self) -> Self:
        """An independent copy: what it learns does not change this agent."""
        other = copy.copy(self)
        other.exploring, other.learning = copy.deepcopy((self.exploring, self.learning))
        other.state = copied(self.state)
        other._shape(self.n_users, self.n_items)
        return other

    def blank_state(self, n_users: int, n_items: int) -> Any:
        """A state of this size that has learned nothing."""
        return self.policy.init(n_users, n_items, partial(stream, self.seed), self._truth)

    @property
    def state_id(self) -> str:
        """A digest of exactly what was learned."""
        return identity(self.state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one `.npz` file. After a crash there is either the old file or the new one."""
        manifest = {
            "policy": self.policy.policy_name(),
            "parameters": self.policy.parameters(),
            "n_users": self.n_users,
            "n_items": self.n_items,
            "seed": self.seed,
            "exploring": self.exploring.bit_generator.state,
            "learning": self.learning.bit_generator.state,
        }
        arrays: dict[str, Any] = dict(flatten(self.state))
        with whole_file(Path(path)) as partial, partial.open("wb") as file:
            np.savez(file, manifest=np.array(json.dumps(manifest)), **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], policy: Policy, truth: Truth | None = None) -> Self:
        """The agent that `save` wrote. The policy must be the one it was saved with."""
        with Path(path).open("rb") as file:
            try:
                arrays = dict(np.load(file, allow_pickle=False))
                manifest = json.loads(str(arrays.pop("manifest")))
                saved = (manifest["policy"], manifest["parameters"])
                sizes = (manifest["n_users"], manifest["n_items"], manifest["seed"])
                streams = (manifest["exploring"], manifest["learning"])
            except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
                raise InvalidInput(f"{path} is not a snapshot of an agent: {error}") from error
        if saved != (policy.policy_name(), policy.parameters()):
            raise InvalidInput(f"{path} was saved with policy {saved}; given: {(policy.policy_name(), policy.parameters())}")
        agent = cls(policy, *sizes, truth)
        agent.state = restored(agent.state, arrays)
        agent.exploring.bit_generator.state, agent.learning.bit_generator.state = streams
        return agent

    def _choose(self, user: int, offered: Items, whole: bool, best: Items = ALL_ITEMS) -> tuple[int, float]:
        user = self._within("user", user, self.n_users)
        chosen: tuple[int, float] = self.run(choose, self.exploring, user, offered, whole, best)
        if isinstance(chosen[0], float):
            raise InvalidInput(f"select of {self.policy.policy_name()!r} returns the position {chosen[0]!r}; accepted: a whole number")
        return chosen

    def learn(self, users: NDArray[np.int64], items: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        """The same as `replay` for valid arrays: nothing is checked."""
        self.make_places(rewards.size)
        self.run(learn, self.learning, users, items, rewards)

    def _choice(self, position: int, offered: Items, propensity: float) -> Choice:
        score, mean = float(self.slate.scores[position]), float(self.slate.means[position])
        item = int(offered[position]) if offered.size else position
        return Choice(item, score, mean, score - mean, propensity)

    def _shape(self, n_users: int, n_items: int) -> None:
        self.n_users, self.n_items = n_users, n_items
        with nullcontext() if self.searches else scanned():
            self.scratch: Any = self.policy.scratch(n_users, n_items)
        self.slate = Slate(np.zeros(n_items), np.zeros(n_items))
        self._mind, self._drawing = None, {}

    def _candidates(self, candidates: Sequence[int] | NDArray[Any]) -> Items:
        offered = self._within_all("candidate", candidates, self.n_items).astype(np.int32)
        if offered.size == 0:
            raise InvalidInput("candidates is empty; accepted: at least one item, or None for all items")
        if _repeats(offered, self.n_items):
            numbers, counts = np.unique(offered, return_counts=True)
            raise InvalidInput(f"candidate {numbers[counts > 1][0]} is given more than once; accepted: each item once")
        return offered

    def _rewards(self, rewards: Any) -> NDArray[np.float64]:
        try:
            values = np.array(rewards, np.float64, ndmin=1)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"reward is {rewards!r}; accepted: a finite number") from error
        if not np.isfinite(values).all():
            raise InvalidInput(f"reward is {values[~np.isfinite(values)][0]}; accepted: a finite number")
        return values

    def _within(self, name: str, number: int, size: int) -> int:
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or not 0 <= number < size:
            raise InvalidInput(f"{name} is {number!r}; accepted: a whole number from 0 to {size - 1}")
        return int(number)

    def _within_all(self, name: str, numbers: Any, size: int) -> NDArray[np.int64]:
        try:
            given = np.array(numbers, ndmin=1)
        except ValueError as error:
            raise InvalidInput(f"{name} is {numbers!r}; accepted: whole numbers from 0 to {size - 1}") from error
        if given.size == 0:
            return np.empty(0, np.int64)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InvalidInput(f"{name} is {numbers!r}; accepted: whole numbers from 0 to {size - 1}")
        outside = (given < 0) | (given >= size)
        if outside.any():
            raise InvalidInput(f"{name} is {given[outside][0]}; accepted: a whole number from 0 to {size - 1}")
        return given.astype(np.int64)


def room_for_best(n: int) -> Items:
    """Space in which a policy may list the n best candidates; empty if n is so large that it should fill the whole slate."""
    return np.full(n if n <= MOST_LISTED else 0, -1, np.int32)


def _repeats(numbers: Items, size: int) -> bool:
    """Whether a number below `size` occurs twice. For many numbers, marking is quicker than sorting."""
    if numbers.size * 64 < size:
        return np.unique(numbers).size < numbers.size
    present: NDArray[np.bool_] = np.zeros(size, np.bool_)
    present[numbers] = True
    return int(np.count_nonzero(present)) < numbers.size
