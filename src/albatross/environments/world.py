"""What a world does, as compiled code asks it."""

import math

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import BERNOULLI, GAUSSIAN, LOGGED, Truth, World
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import dot
from albatross.kernels.operations import Items


@kernel
def offered(world: World, user: int) -> Items:
    """The items this user may be shown; empty for the whole catalogue."""
    if world.offsets.size == 0:
        return world.items[0:0]
    return world.items[world.offsets[user] : world.offsets[user + 1]]


@kernel
def expected_reward(world: World, user: int, position: int, item: int) -> float:
    """The mean reward of the candidate at this position."""
    if world.reaction == LOGGED:
        return world.ratings[world.offsets[user] + position]  # type: ignore[no-any-return]
    return dot(world.user_factors[user], world.item_factors[item])


@kernel
def reaction(world: World, expected: float, draw: float) -> float:
    """What the user says of an item with this mean, given one random draw."""
    if world.reaction == LOGGED:
        return expected
    if world.reaction == BERNOULLI:
        return 1.0 if draw < expected else 0.0
    if world.reaction == GAUSSIAN:
        return expected + world.spread * draw
    return expected + world.spread * (draw - 0.5)


@kernel
def best_expected(world: World, user: int) -> float:
    """The mean reward of the best item this user may be shown."""
    if math.isnan(world.best[user]):
        candidates = offered(world, user)
        n_candidates = candidates.size if candidates.size > 0 else world.item_factors.shape[0]
        best = -math.inf
        for position in range(n_candidates):
            item = candidates[position] if candidates.size > 0 else position
            best = max(best, expected_reward(world, user, position, item))
        world.best[user] = best
    return world.best[user]  # type: ignore[no-any-return]


def reaction_draws(world: World, random: np.random.Generator, n_draws: int) -> NDArray[np.float64]:
    """The randomness of so many reactions: it depends on the step alone, so every policy meets the same moods."""
    return random.standard_normal(n_draws) if world.reaction == GAUSSIAN else random.random(n_draws)


def truth_of(world: World) -> Truth:
    """All means as one table; what nobody may be shown is minus infinity."""
    n_users = world.best.size
    if world.reaction != LOGGED:
        means = np.empty((n_users, world.item_factors.shape[0]))
        for user in range(n_users):
            for item in range(means.shape[1]):
                means[user, item] = dot(world.user_factors[user], world.item_factors[item])
        return Truth(means, world.item_factors)
    means = np.full((n_users, int(world.items.max()) + 1), -np.inf)
    means[np.repeat(np.arange(n_users), np.diff(world.offsets)), world.items] = world.ratings
    return Truth(means, None)
