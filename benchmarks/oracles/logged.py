"""Oracle baselines on logged ratings; `benchmarks.oracles.told` explains and runs them.

A rating is modelled as a mean, a part of the item, a part of the user and a residual.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import World
from albatross.core.streams import stream
from albatross.environments import create
from albatross.environments.world import arrivals, reaction_draws
from albatross.kernels.mean_field.gittins import bonus, worth
from albatross.kernels.mean_field.valuing import COMING_VISITS

HORIZON = 25_000
ROUNDS = 300
"""Of expectation maximization."""
PATIENCE = 25
"""New ratings between two solutions for all items."""

Array = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    return numba.njit(function)  # type: ignore[no-any-return]


class Visits(NamedTuple):
    """Arrivals and noise: the same that every policy meets with this seed."""

    users: NDArray[np.int32]
    draws: Array


def visits_of(world: World, seed: int) -> Visits:
    return Visits(arrivals(world, stream(seed, "arrivals"), HORIZON), reaction_draws(world, stream(seed, "reactions"), HORIZON))


class Offsets(NamedTuple):
    """The mean of all ratings, and the variance of the three parts."""

    mean: float
    items: float
    users: float
    residual: float


def estimate_offsets(users: NDArray[np.int64], items: NDArray[np.int32], ratings: Array) -> tuple[Offsets, Array]:
    """From all ratings; also the users' parts."""
    of_items, of_users = np.bincount(items), np.bincount(users)
    mean, user_parts = ratings.mean(), np.zeros(of_users.size)
    item_variance = user_variance = residual = ratings.var() / 3.0
    for _ in range(ROUNDS):
        item_spread = 1.0 / (of_items / residual + 1.0 / item_variance)
        item_parts = item_spread * np.bincount(items, ratings - mean - user_parts[users]) / residual
        user_spread = 1.0 / (of_users / residual + 1.0 / user_variance)
        user_parts = user_spread * np.bincount(users, ratings - mean - item_parts[items]) / residual
        rest = ratings - mean - item_parts[items] - user_parts[users]
        mean += rest.mean()
        item_variance = (item_parts**2 + item_spread)[of_items > 0].mean()
        user_variance = (user_parts**2 + user_spread).mean()
        residual = (rest**2 + item_spread[items] + user_spread[users]).mean()
    return Offsets(float(mean), float(item_variance), float(user_variance), float(residual)), user_parts


def others_said(users: NDArray[np.int64], items: NDArray[np.int32], ratings: Array, offsets: Offsets, user_parts: Array) -> Array:
    """Per rating, the mean of all other users' ratings of the item, minus these users' own parts."""
    said = ratings - offsets.mean - user_parts[users]
    sums, counts = np.bincount(items, said), np.bincount(items)
    return offsets.mean + (sums[items] - said) / (counts[items] - 1.0 + offsets.residual / offsets.items)


@compiled
def hoped(expected: float, deviation: float, visits: float, top: float, optimism: float) -> float:
    """The prediction plus the value of exploration, limited by the top."""
    hope = optimism * deviation * worth(visits, 1.0)
    return expected + bonus(hope * hope, top - expected)


@compiled
def live_with_others(starts: Any, ratings: Array, known: Array, offsets: Offsets, optimism: float, visit: Visits) -> Array:
    """Given the prediction for every pair without the user's part and the residual, learn those."""
    n_users, top = starts.size - 1, ratings.max()
    rated = np.zeros(ratings.size, np.bool_)
    weights, sums = np.full(n_users, offsets.residual / offsets.users), np.zeros(n_users)
    regret = np.zeros(HORIZON)
    for step in range(HORIZON):
        user = visit.users[step]
        visits = COMING_VISITS + step / n_users
        offset, deviation = sums[user] / weights[user], np.sqrt(offsets.residual * (1.0 + 1.0 / weights[user]))
        chosen, highest = 0, -np.inf
        for pair in range(starts[user], starts[user + 1]):
            score = ratings[pair] if rated[pair] else hoped(known[pair] + offset, deviation, visits, top, optimism)
            if score > highest:
                chosen, highest = pair, score
        if not rated[chosen]:
            rated[chosen] = True
            weights[user] += 1.0
            sums[user] += ratings[chosen] - known[chosen]
        regret[step] = ratings[starts[user] : starts[user + 1]].max() - ratings[chosen]
    return regret


@compiled
def count_user(precision: Array, rights: Array, items: Any, values: Array, offsets: Offsets, sign: float) -> None:
    """Add the information of a user's ratings about their items, with the user's own part integrated out."""
    common = 1.0 / (offsets.residual**2 * (1.0 / offsets.users + items.size / offsets.residual))
    for a in range(items.size):
        rights[items[a]] += sign * (values[a] / offsets.residual - common * values.sum())
        precision[items[a], items[a]] += sign / offsets.residual
        for b in range(items.size):
            precision[items[a], items[b]] -= sign * common


@compiled
def live_with_variances(starts: Any, items: Any, ratings: Array, offsets: Offsets, optimism: float, visit: Visits) -> Array:
    """Given the variances of items, users and residuals, learn the items' and the users' parts, both exactly."""
    n_users, n_items, top = starts.size - 1, items.max() + 1, ratings.max()
    rated = np.zeros(ratings.size, np.bool_)
    precision, rights, known = np.eye(n_items) / offsets.items, np.zeros(n_items), np.zeros(n_items)
    regret, news = np.zeros(HORIZON), 0
    for step in range(HORIZON):
        user = visit.users[step]
        pairs = np.arange(starts[user], starts[user + 1])
        visits = COMING_VISITS + step / n_users
        if news >= PATIENCE or step < 8 * PATIENCE:
            known, news = np.linalg.solve(precision, rights), 0
        before = pairs[rated[pairs]]
        values = ratings[before] - offsets.mean
        weight = offsets.residual / offsets.users + before.size
        offset, deviation = (values - known[items[before]]).sum() / weight, np.sqrt(offsets.residual * (1.0 + 1.0 / weight))
        chosen, highest = 0, -np.inf
        for pair in pairs:
            expected = offsets.mean + known[items[pair]] + offset
            score = ratings[pair] if rated[pair] else hoped(expected, deviation, visits, top, optimism)
            if score > highest:
                chosen, highest = pair, score
        if not rated[chosen]:
            count_user(precision, rights, items[before], values, offsets, -1.0)
            rated[chosen] = True
            after = pairs[rated[pairs]]
            count_user(precision, rights, items[after], ratings[after] - offsets.mean, offsets, 1.0)
            news += 1
        regret[step] = ratings[pairs].max() - ratings[chosen]
    return regret


def told_others(name: str) -> Callable[[float, int], Array]:
    world, starts, users = logged(name)
    offsets, user_parts = estimate_offsets(users, world.items, world.ratings)
    known = others_said(users, world.items, world.ratings, offsets, user_parts)
    return lambda optimism, seed: live_with_others(starts, world.ratings, known, offsets, optimism, visits_of(world, seed))


def told_variances(name: str) -> Callable[[float, int], Array]:
    world, starts, users = logged(name)
    offsets, _ = estimate_offsets(users, world.items, world.ratings)
    return lambda optimism, seed: live_with_variances(starts, world.items, world.ratings, offsets, optimism, visits_of(world, seed))


def logged(name: str) -> tuple[World, NDArray[np.int64], NDArray[np.int64]]:
    """The world, where the pairs of each user begin, and the user of each pair."""
    world = create(name).world(0)
    starts = np.append(world.offsets, world.items.size)
    return world, starts, np.repeat(np.arange(starts.size - 1), np.diff(starts))
