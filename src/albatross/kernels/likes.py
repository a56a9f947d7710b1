"""Ratings as likes, for policies that use only whether a user liked an item; and draws from a Beta distribution.

A threshold separates likes. If none is given, a rating above the mean of all ratings so far is a like, so that a policy need not know
the scale.
"""

import math

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.pairs import NOTHING, Pairs

Counts = NDArray[np.int64]


def no_average() -> Vector:
    """The mean of all ratings, and their number."""
    return np.zeros(2)


@kernel
def is_like(average: Vector, threshold: float, reward: float) -> bool:
    """Count the rating, and return whether it is a like. `threshold` is NaN if none is given."""
    average[1] += 1.0
    average[0] += (reward - average[0]) / average[1]
    return reward > average[0] if math.isnan(threshold) else reward >= threshold


@kernel
def count_common(likes: Pairs, likers: Pairs, user: int, common: Counts) -> None:
    """Per user, the number of items that they and this user liked. The totals of `likes` count likes; `likers` is stored item by item."""
    common[:] = 0
    entry = likes.first[user]
    while entry != NOTHING:
        other = likers.first[likes.items[entry]] if likes.totals[entry] > 0.0 else NOTHING
        while other != NOTHING:
            here = np.uint32(other)  # unsigned: no check for negative indices
            common[np.uint32(likers.items[here])] += 1
            other = likers.following[here]
        entry = likes.following[entry]


FEW = 5
"""Up to this count, exponential draws are quicker than the two gamma draws of NumPy's Beta."""


@kernel
def draw_share(successes: int, failures: int, random: np.random.Generator) -> float:
    """A draw from Beta(1 + successes, 1 + failures).

    With a ≤ b, 1 − Beta(1 + a, 1 + b) is a product of independent Beta(1 + b + i, 1) for i = 0 … a, and −log of each is exponential with
    rate 1 + b + i. Most users have few items in common, so that a is small.
    """
    fewer, more = (successes, failures) if successes <= failures else (failures, successes)
    if fewer > FEW:
        return random.beta(1.0 + successes, 1.0 + failures)
    rate = 1.0 + more
    exponent = random.standard_exponential() / rate
    for _ in range(fewer):
        rate += 1.0
        exponent += random.standard_exponential() / rate
    return -math.expm1(-exponent) if successes <= failures else math.exp(-exponent)
