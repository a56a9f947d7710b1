"""A block model: each user and item has one of a few types, and types of users like types of items. Learned online by mean-field updates.

The belief about the type of a user or item is a row of probabilities; about how much one type likes another, a Beta distribution. The
sums that these need are stored. When a belief changes, its terms in the sums are exchanged.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.pairs import NOTHING, Pairs, remember

SMALLEST_ARGUMENT = 6.0
"""From here on, the asymptotic series of the digamma function is exact to ten digits."""


class Blocks(NamedTuple):
    user_types: Matrix
    item_types: Matrix
    """Probabilities of the types, per user and per item."""
    user_guesses: Matrix
    item_guesses: Matrix
    """Logarithms of the probabilities before any rating."""
    item_sums: NDArray[np.float64]
    """By item, type of user, and like or not: the item's ratings, weighted by the probability that their user has this type."""
    likes: NDArray[np.float64]
    """By type of user, type of item, and like or not: expected numbers of ratings."""
    pairs: Pairs
    """The ratings of each user; the totals are numbers of likes."""


class Room(NamedTuple):
    """Working space. Not learned: any content will do."""

    logarithms: NDArray[np.float64]
    """By type of user, type of item, and like or not: the expected logarithm of the probability."""
    user_sums: Matrix
    """By type of item, and like or not: weighted ratings of one user."""
    before: Vector


@kernel
def digamma(argument: float) -> float:
    """The derivative of the logarithm of the gamma function."""
    value = 0.0
    while argument < SMALLEST_ARGUMENT:
        value -= 1.0 / argument
        argument += 1.0
    square = 1.0 / (argument * argument)
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * (1.0 / 240.0 - square / 132.0))))
    return value + math.log(argument) - 0.5 / argument - series


@kernel
def expect_logarithms(blocks: Blocks, room: Room) -> None:
    """E log θ and E log (1 − θ) of every pair of types, θ ~ Beta(1 + likes, 1 + others)."""
    for g in range(blocks.likes.shape[0]):
        for h in range(blocks.likes.shape[1]):
            # After exchanges, sums may be below zero by a rounding error.
            others, likes = max(blocks.likes[g, h, 0], 0.0), max(blocks.likes[g, h, 1], 0.0)
            total = digamma(2.0 + others + likes)
            room.logarithms[g, h, 0] = digamma(1.0 + others) - total
            room.logarithms[g, h, 1] = digamma(1.0 + likes) - total


@kernel
def normalize_types(weights: Vector) -> None:
    """From logarithms to probabilities."""
    largest, total = -math.inf, 0.0
    for g in range(weights.size):
        largest = max(largest, weights[g])
    for g in range(weights.size):
        weights[g] = math.exp(weights[g] - largest)
        total += weights[g]
    for g in range(weights.size):
        weights[g] /= total


@kernel
def sum_user(blocks: Blocks, room: Room, user: int) -> None:
    """The user's ratings, weighted by the types of their items."""
    pairs, sums = blocks.pairs, room.user_sums
    sums[:] = 0.0
    entry = pairs.first[user]
    while entry != NOTHING:
        types = blocks.item_types[pairs.items[entry]]
        for h in range(types.size):
            sums[h, 0] += types[h] * (pairs.plays[entry] - pairs.totals[entry])
            sums[h, 1] += types[h] * pairs.totals[entry]
        entry = pairs.following[entry]


@kernel
def refit_user(blocks: Blocks, room: Room, user: int) -> None:
    """Update the belief about the user's type given the items, and exchange its terms in all sums. Call `sum_user` first."""
    types, before, sums = blocks.user_types[user], room.before, room.user_sums
    n_user_types, n_item_types = blocks.likes.shape[:2]
    for g in range(n_user_types):
        before[g] = types[g]
        types[g] = blocks.user_guesses[user, g]
        for h in range(n_item_types):
            types[g] += sums[h, 0] * room.logarithms[g, h, 0] + sums[h, 1] * room.logarithms[g, h, 1]
    normalize_types(types)
    for g in range(n_user_types):
        change = types[g] - before[g]
        for h in range(n_item_types):
            blocks.likes[g, h, 0] += change * sums[h, 0]
            blocks.likes[g, h, 1] += change * sums[h, 1]
    pairs = blocks.pairs
    entry = pairs.first[user]
    while entry != NOTHING:
        item_sums = blocks.item_sums[pairs.items[entry]]
        for g in range(n_user_types):
            change = types[g] - before[g]
            item_sums[g, 0] += change * (pairs.plays[entry] - pairs.totals[entry])
            item_sums[g, 1] += change * pairs.totals[entry]
        entry = pairs.following[entry]


@kernel
def refit_item(blocks: Blocks, room: Room, item: int) -> None:
    """Update the belief about the item's type given the users."""
    types, before, sums = blocks.item_types[item], room.before, blocks.item_sums[item]
    n_user_types, n_item_types = blocks.likes.shape[:2]
    for h in range(n_item_types):
        before[h] = types[h]
        types[h] = blocks.item_guesses[item, h]
        for g in range(n_user_types):
            types[h] += sums[g, 0] * room.logarithms[g, h, 0] + sums[g, 1] * room.logarithms[g, h, 1]
    normalize_types(types)
    for h in range(n_item_types):
        change = types[h] - before[h]
        for g in range(n_user_types):
            blocks.likes[g, h, 0] += change * sums[g, 0]
            blocks.likes[g, h, 1] += change * sums[g, 1]


@kernel
def learn_like(blocks: Blocks, room: Room, user: int, item: int, liked: bool) -> None:
    """Add a rating to the sums, then refit its user, and then its item."""
    remember(blocks.pairs, user, item, 1.0 if liked else 0.0)
    side = 1 if liked else 0
    for g in range(blocks.likes.shape[0]):
        blocks.item_sums[item, g, side] += blocks.user_types[user, g]
        for h in range(blocks.likes.shape[1]):
            blocks.likes[g, h, side] += blocks.user_types[user, g] * blocks.item_types[item, h]
    expect_logarithms(blocks, room)
    sum_user(blocks, room, user)
    refit_user(blocks, room, user)
    expect_logarithms(blocks, room)
    refit_item(blocks, room, item)
