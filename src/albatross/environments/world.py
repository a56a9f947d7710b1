"""The functions of a world, for compiled code."""

import math

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import BERNOULLI, GAUSSIAN, LOGGED, LOGISTIC, SHOPPING, STARS, OtherRatings, Truth, World
from albatross.core.errors import InvalidInput
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import dot
from albatross.kernels.operations import ALL_ITEMS, Items

NO_FACTORS = np.empty((0, 0))
NO_OFFSETS = np.empty(0, np.int64)
NO_RATINGS = np.empty(0)
NO_OFFERS = np.empty(0, np.int64)
EQUAL_CHANCES = np.empty(0)

CLICK, PURCHASE = 1.0, 5.0
"""Rewards of a click and of a purchase in a shop."""
SAME_HOUR = 0.05
"""A returning visitor of a shop comes at about the same hour: at most so many days earlier or later."""

MOST_TOLD = 100
"""Limit of ratings by one other user; otherwise half of the items."""
MOST_OTHERS = 1000
"""Limit of other users with ratings; otherwise as many as there are users."""


@kernel
def offer(world: World, user: int) -> tuple[int, int]:
    """Start and stop of this user's candidates within `world.items`; equal for the whole catalogue."""
    if world.offsets.size == 0:
        return 0, world.items.size
    start = world.offsets[user]
    return start, start + world.lengths[user]


@kernel
def walk(world: World, user: int, random: np.random.Generator) -> None:
    """If users drift: move the vector of the arriving user."""
    if world.walk > 0.0:
        vector = world.user_factors[user]
        for a in range(vector.size):
            vector[a] = world.stay * vector[a] + world.walk * random.standard_normal()
        world.best[user] = math.nan


@kernel
def is_sold_out(world: World, item: int, number: int) -> bool:
    """Whether an item is sold out on the day of this arrival. The first arrival is 1."""
    return world.stock > 0 and (item + (number - 1) // world.day) % world.stock == 0


@kernel
def draw_offer(world: World, user: int, random: np.random.Generator) -> None:
    """If candidates change with every arrival: a window of the catalogue, or a uniformly random selection."""
    if world.offers.size == 0:
        return
    n_items = world.offers.size - 1
    world.offers[n_items] += 1
    number = world.offers[n_items]
    n_drawn = 0
    if world.pace > 0:
        first = (number - 1) // world.pace
        n_drawn = world.items.size
        for place in range(n_drawn):
            while is_sold_out(world, first % n_items, number):
                first += 1
            world.items[place] = first % n_items
            first += 1
    while n_drawn < world.items.size:
        item = int(n_items * random.random())
        if world.offers[item] != number:
            world.offers[item] = number
            world.items[n_drawn] = item
            n_drawn += 1
    world.best[user] = math.nan
    world.ideal[user] = math.nan


def offered(world: World, user: int) -> Items:
    """The items this user may be shown; empty for the whole catalogue."""
    start, stop = offer(world, user)
    return world.items[start:stop]


@kernel
def mean_of(world: World, product: float) -> float:
    """The mean reward for this product of the vectors. It is a nondecreasing function."""
    if world.reaction == LOGISTIC:
        return 1.0 / (1.0 + math.exp(-product))
    if world.reaction == STARS:
        return min(max(product, 1.0), 5.0)
    if world.reaction == SHOPPING:
        return (1.0 - world.silent) / (1.0 + math.exp(-product)) * worth_of_click(world)
    return product


@kernel
def worth_of_click(world: World) -> float:
    """The mean reward of a click, including the purchase that may follow."""
    return CLICK + world.buying * (PURCHASE - CLICK)


@kernel
def expected_reward(world: World, user: int, position: int, item: int) -> float:
    """The mean reward of the candidate at this position."""
    if world.reaction == LOGGED:
        return world.ratings[world.offsets[user] + position]  # type: ignore[no-any-return]
    return mean_of(world, dot(world.user_factors[user], world.item_factors[item]))


@kernel
def reaction(world: World, expected: float, draw: float) -> float:
    """The reward of an item with this mean, given one random draw."""
    if world.reaction == LOGGED:
        return expected
    if world.reaction == BERNOULLI or world.reaction == LOGISTIC:
        return 1.0 if draw < expected else 0.0
    if world.reaction == STARS:
        return math.floor(expected + draw)
    if world.reaction == SHOPPING:
        clicking = expected / worth_of_click(world)
        return 0.0 if draw >= clicking else PURCHASE if draw < world.buying * clicking else CLICK
    if world.reaction == GAUSSIAN:
        return expected + world.spread * draw
    return expected + world.spread * (draw - 0.5)


@kernel
def best_expected(world: World, user: int) -> float:
    """The mean reward of the best item this user may be shown."""
    if math.isnan(world.best[user]):
        start, stop = offer(world, user)
        best = -math.inf
        if world.reaction == LOGGED:
            for place in range(start, stop):
                best = max(best, world.ratings[place])
        else:
            vector = world.user_factors[user]
            for position in range(stop - start if stop > start else world.item_factors.shape[0]):
                item = world.items[start + position] if stop > start else position
                mean = dot(vector, world.item_factors[item])
                if mean > best:  # not max(): it also checks for NaN, and takes twice as long
                    best = mean
            best = mean_of(world, best)
        world.best[user] = best
    return world.best[user]  # type: ignore[no-any-return]


@kernel
def retire_item(world: World, user: int, position: int) -> None:
    """If nothing is shown twice: remove the candidate at this position; the others keep their order."""
    start = world.offsets[user]
    last = world.lengths[user] - 1
    item = world.items[start + position]
    for later in range(start + position, start + last):
        world.items[later] = world.items[later + 1]
    world.items[start + last] = item
    if world.reaction == LOGGED:
        rating = world.ratings[start + position]
        for later in range(start + position, start + last):
            world.ratings[later] = world.ratings[later + 1]
        world.ratings[start + last] = rating
    world.lengths[user] = last
    world.best[user] = math.nan
    world.ideal[user] = math.nan


def new_world(
    n_users: int,
    *,
    reaction: int,
    user_factors: NDArray[np.float64] = NO_FACTORS,
    item_factors: NDArray[np.float64] = NO_FACTORS,
    offsets: NDArray[np.int64] = NO_OFFSETS,
    items: Items = ALL_ITEMS,
    ratings: NDArray[np.float64] = NO_RATINGS,
    fresh: bool = False,
    spread: float = 0.0,
    shift: float = math.nan,
    repeats: bool = True,
    crowd: NDArray[np.float64] = EQUAL_CHANCES,
    walk: float = 0.0,
    stay: float = 1.0,
    pace: int = 0,
    delay: int = 0,
    day: int = 0,
    stock: int = 0,
    returning: float = 0.0,
    silent: float = 0.0,
    buying: float = 0.0,
) -> World:
    """A new world. `offsets` has one number more than there are users, or is empty for the whole catalogue.

    With `fresh`, candidates are drawn for every arrival; with a `pace`, they are a moving window. `items.size` is their number.
    """
    if not repeats and offsets.size == 0:
        n_items = item_factors.shape[0]
        offsets = np.arange(n_users + 1) * n_items
        items = np.tile(np.arange(n_items, dtype=np.int32), n_users)
    return World(
        user_factors=user_factors,
        item_factors=item_factors,
        offsets=offsets[:-1].copy(),
        lengths=np.diff(offsets),
        items=items.copy(),
        ratings=ratings.copy(),
        offers=np.zeros(item_factors.shape[0] + 1, np.int64) if fresh or pace > 0 else NO_OFFERS.copy(),
        best=np.full(n_users, np.nan),
        ideal=np.full(n_users, np.nan),
        reaction=int(reaction),
        spread=float(spread),  # an integer would be another type and compile again
        shift=float(shift),
        repeats=bool(repeats),
        crowd=crowd.copy(),
        walk=float(walk),
        stay=float(stay),
        pace=int(pace),
        delay=int(delay),
        day=int(day),
        stock=int(stock),
        returning=float(returning),
        silent=float(silent),
        buying=float(buying),
    )


def arrivals(world: World, random: np.random.Generator, horizon: int) -> NDArray[np.int32]:
    """The arriving users, drawn with their probabilities, as long as there is something left to show them."""
    if world.day > 0:
        return _day_by_day(world, random, horizon)
    if world.repeats:
        return _anybody(world, random, horizon)
    servable = int(world.lengths.sum())
    if horizon > servable:
        raise InvalidInput(f"horizon is {horizon}; accepted: at most {servable}, because nothing is shown twice to a user")
    users = np.empty(0, np.int32)
    while users.size < horizon:
        users = np.concatenate([users, _anybody(world, random, horizon)])
        users = users[_visit_numbers(users) < world.lengths[users]]
    return users[:horizon]


def _anybody(world: World, random: np.random.Generator, horizon: int) -> NDArray[np.int32]:
    if world.crowd.size == 0:
        return random.integers(world.best.size, size=horizon, dtype=np.int32)
    users: NDArray[np.int32] = np.searchsorted(world.crowd, random.random(horizon) * world.crowd[-1], side="right").astype(np.int32)
    return users


def _day_by_day(world: World, random: np.random.Generator, horizon: int) -> NDArray[np.int32]:
    """New users one after the other on the first day. Later also returning users, who came at about this hour the day before."""
    users = np.zeros(horizon, np.int32)
    returns = random.random(horizon) < world.returning
    shifts = random.integers(-int(SAME_HOUR * world.day), int(SAME_HOUR * world.day) + 1, horizon)
    anywhere = random.random(horizon)
    n_users, newest = world.best.size, 0
    for step in range(1, horizon):
        before = step - world.day + shifts[step]
        if before >= 0 and returns[step]:
            users[step] = users[before]
        elif newest < n_users - 1:
            newest += 1
            users[step] = newest
        else:
            users[step] = users[int(step * anywhere[step])]
    return users


def _visit_numbers(users: NDArray[np.int32]) -> NDArray[np.int64]:
    """For each arrival, how often the same user has come before."""
    order = np.argsort(users, kind="stable")
    ordered = users[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    numbers = np.empty(users.size, np.int64)
    numbers[order] = np.arange(users.size) - np.repeat(first, np.diff(np.r_[first, users.size]))
    return numbers


def reaction_draws(world: World, random: np.random.Generator, n_draws: int) -> NDArray[np.float64]:
    """The random draws of so many reactions. They depend only on the step, so every policy meets the same noise."""
    return random.standard_normal(n_draws) if world.reaction == GAUSSIAN else random.random(n_draws)


def truth_of(world: World) -> Truth:
    """All means as one table; pairs that cannot be shown are minus infinity."""
    n_users = world.best.size
    if world.walk > 0.0:
        raise InvalidInput("a world whose users change has no fixed truth; accepted: policies that are not told the truth")
    if world.reaction != LOGGED:
        means = np.zeros((n_users, world.item_factors.shape[0]))
        for a in range(world.item_factors.shape[1]):  # in the same order as `dot`
            means += np.multiply.outer(world.user_factors[:, a], world.item_factors[:, a])
        if world.reaction == LOGISTIC:
            means = 1.0 / (1.0 + np.exp(-means))
        if world.reaction == STARS:
            means = np.clip(means, 1.0, 5.0)
        if world.reaction == SHOPPING:
            means = (1.0 - world.silent) / (1.0 + np.exp(-means)) * worth_of_click(world)
        return Truth(means, world.item_factors)
    means = np.full((n_users, int(world.items.max()) + 1), -np.inf)
    means[np.repeat(np.arange(n_users), world.lengths), world.items] = world.ratings
    return Truth(means, None)


def ratings_by(strangers: NDArray[np.float64], world: World, random: np.random.Generator) -> OtherRatings:
    """Ratings by users with these vectors, who never arrive, each of a random half of the items."""
    n_others, n_items = min(len(strangers), MOST_OTHERS), world.item_factors.shape[0]
    n_each = min(-(-n_items // 2), MOST_TOLD)
    items = np.array([random.choice(n_items, n_each, replace=False) for _ in range(n_others)], np.int32)
    users = np.repeat(np.arange(n_others, dtype=np.int32), n_each)
    draws = reaction_draws(world, random, users.size)
    means = np.zeros(users.size)
    for a in range(strangers.shape[1]):
        means += strangers[users, a] * world.item_factors[items.ravel(), a]
    ratings = [reaction(world, mean_of(world, mean), draw) for mean, draw in zip(means, draws, strict=True)]
    return OtherRatings(users, items.ravel(), np.array(ratings))
