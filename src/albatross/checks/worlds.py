"""Small worlds with an obvious answer, and agents for them."""

from dataclasses import dataclass

import numpy as np

from albatross.core.agent import Agent
from albatross.core.environment import GAUSSIAN, OtherRatings, World
from albatross.core.parameters import Recipe, parameter
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.environments.telling import told
from albatross.environments.world import new_world, ratings_by


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
        """Others are as the users are."""
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
        """Others are as the users are."""
        world = self.world(seed)
        return ratings_by(world.user_factors, world, stream(seed, "ratings of others"))


WORLD = Checkerboard()
STEPS = 60


def beginner(policy: Policy, n_users: int = WORLD.n_users, n_items: int = WORLD.n_items) -> Agent:
    """An agent that has learned nothing, told beforehand what its policy needs."""
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
