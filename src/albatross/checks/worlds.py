"""Small worlds with an obvious answer, and agents for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.environment import GAUSSIAN, OtherRatings, World
from albatross.core.parameters import Recipe, parameter
from albatross.core.policy import Policy
from albatross.core.state import flatten
from albatross.core.streams import stream
from albatross.environments.telling import told
from albatross.environments.world import new_world, ratings_by
from albatross.kernels.counting import Tally
from albatross.kernels.pairs import Pairs


@dataclass(frozen=True)
class Checkerboard(Recipe):
    """Even users give even items 5 and odd items 1, odd users the other way round. No noise."""

    n_users: int = parameter(20, "number of users", at_least=2)
    n_items: int = parameter(12, "number of items", at_least=2)
    scale: float = parameter(1.0, "what every rating is multiplied with")

    @property
    def name(self) -> str:
        return "checkerboard"

    def world(self, seed: int) -> World:
        users = np.eye(2)[np.arange(self.n_users) % 2]
        items = np.array([[5.0, 1.0], [1.0, 5.0]])[np.arange(self.n_items) % 2]
        return new_world(self.n_users, reaction=GAUSSIAN, user_factors=users, item_factors=items * self.scale)

    def ratings_of_others(self, seed: int) -> OtherRatings:
        """Others are like the users."""
        world = self.world(seed)
        return ratings_by(world.user_factors, world, stream(seed, "ratings of others"))


@dataclass(frozen=True)
class Favourite(Recipe):
    """Everybody gives the last two items 5 and all others 1. No noise."""

    n_users: int = parameter(20, "number of users", at_least=1)
    n_items: int = parameter(12, "number of items", at_least=3)

    @property
    def name(self) -> str:
        return "favourite"

    def world(self, seed: int) -> World:
        items = np.where(np.arange(self.n_items) < self.n_items - 2, 1.0, 5.0)
        users = np.ones((self.n_users, 1))
        return new_world(self.n_users, reaction=GAUSSIAN, user_factors=users, item_factors=items[:, np.newaxis])

    def ratings_of_others(self, seed: int) -> OtherRatings:
        """Others are like the users."""
        world = self.world(seed)
        return ratings_by(world.user_factors, world, stream(seed, "ratings of others"))


WORLD = Checkerboard()
STEPS = 60
EXACT = 1e-9
"""Accepted relative error of a sum, because of the order of its terms."""


def beginner(policy: Policy, n_users: int = WORLD.n_users, n_items: int = WORLD.n_items) -> Agent:
    """An agent without ratings, given beforehand what its policy needs."""
    return Agent(policy, n_users, n_items, seed=7, truth=told(policy, Checkerboard(n_users=n_users, n_items=n_items), seed=7))


def experienced(policy: Policy) -> Agent:
    """An agent that has learned from some steps, each with a few random candidates."""
    agent = beginner(policy)
    random = stream(0, "check")
    for _ in range(STEPS):
        user = int(random.integers(agent.n_users))
        candidates = random.choice(agent.n_items, 4, replace=False)
        choice = agent.select(user, candidates)
        agent.update(user, choice.item, float(random.integers(1, 6)))
    return agent


def statistics_of(policy: Policy, state: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Counts and sums over ratings: pairs, tallies, and the arrays the policy names. Pairs are sorted by user and item."""
    for name, part in zip(state._fields, state, strict=True):
        if isinstance(part, Pairs):
            yield from ((f"{name}.{column}", values) for column, values in _by_user_and_item(dict(flatten(part))))
        elif isinstance(part, Tally):
            yield from flatten(part, f"{name}.")
        elif isinstance(part, tuple):
            yield from statistics_of(policy, part)
    for name in policy.statistics:
        array, _, field = name.partition(".")
        found = getattr(state, array)
        for each in [field] if field else found.dtype.names or [None]:
            yield f"{array}.{each}" if each else array, found[each] if each else found


def _by_user_and_item(pairs: dict[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The columns of a table of pairs that is ordered by user."""
    rated = np.flatnonzero(pairs["first"] >= 0)
    lengths = np.diff(np.append(pairs["first"][rated], pairs["items"].size))
    users = np.repeat(rated, lengths)
    order = np.lexsort((pairs["items"], users))
    yield "users", users[order]
    for column in ("items", "plays", "totals"):
        yield column, pairs[column][order]
