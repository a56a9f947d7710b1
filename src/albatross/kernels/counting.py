"""Counts and means of ratings, and random tie breaking: for policies without vectors."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items
from albatross.kernels.pairs import NOTHING, Pairs


class Tally(NamedTuple):
    """Counts and sums of ratings, per item and in total."""

    plays: NDArray[np.int64]
    totals: NDArray[np.float64]
    """Per item: number and sum of the ratings."""
    ratings: NDArray[np.int64]
    """Number of all ratings."""
    overall: NDArray[np.float64]
    """Mean of all ratings, and the sum of their squared distances from it."""


def no_tally(n_items: int) -> Tally:
    return Tally(np.zeros(n_items, np.int64), np.zeros(n_items), np.zeros(1, np.int64), np.zeros(2))


@kernel
def count(tally: Tally, item: int, reward: float) -> None:
    """Add one rating."""
    tally.plays[item] += 1
    tally.totals[item] += reward
    tally.ratings[0] += 1
    # Welford's update: a difference of large sums would lose digits.
    distance = reward - tally.overall[0]
    tally.overall[0] += distance / tally.ratings[0]
    tally.overall[1] += distance * (reward - tally.overall[0])


@kernel
def added_since(ratings: int, mean: float, squares: float, ratings_then: int, mean_then: float, squares_then: float, added: Vector) -> None:
    """Number, mean and summed squared distances of the ratings added since then, into the first places of `added`."""
    n_added = ratings - ratings_then
    added[0], added[1], added[2] = float(n_added), mean, 0.0
    if n_added > 0 and mean != mean_then:
        added[1] = (ratings * mean - ratings_then * mean_then) / n_added
    if n_added > 0:
        distance = added[1] - mean_then
        added[2] = max(squares - squares_then - distance * distance * ratings_then * n_added / ratings, 0.0)


@kernel
def joined_overall(ratings: int, mean: float, squares: float, added: Vector) -> tuple[float, float]:
    """Mean and summed squared distances of `ratings` ratings together with those that `added_since` counts."""
    n_added = added[0]
    if n_added == 0.0:
        return mean, squares
    if ratings == 0:
        return added[1], added[2]
    distance = added[1] - mean
    both = ratings + n_added
    return mean + distance * n_added / both, squares + added[2] + distance * distance * ratings * n_added / both


@kernel
def report_tally(tally: Tally, since: Tally, figures: Vector) -> int:
    """The change of the overall statistics since then."""
    if figures.size >= 3:
        now, then = tally.overall, since.overall
        added_since(tally.ratings[0], now[0], now[1], since.ratings[0], then[0], then[1], figures)
    return 3


@kernel
def merge_tally(tally: Tally, figures: Vector) -> None:
    """Add what `report_tally` returned."""
    mean, squares = joined_overall(tally.ratings[0], tally.overall[0], tally.overall[1], figures)
    tally.overall[0], tally.overall[1] = mean, squares
    tally.ratings[0] += int(figures[0])


@kernel
def item_mean(tally: Tally, item: int) -> float:
    """The mean rating of an item; for an unrated item, the mean of all ratings."""
    if tally.plays[item] == 0:
        return tally.overall[0]  # type: ignore[no-any-return]
    return tally.totals[item] / tally.plays[item]  # type: ignore[no-any-return]


@kernel
def shrunk_mean(tally: Tally, item: int) -> float:
    """The mean rating of an item with one pseudo-rating, equal to the mean of all ratings."""
    return (tally.totals[item] + tally.overall[0]) / (tally.plays[item] + 1)  # type: ignore[no-any-return]


@kernel
def deviation(tally: Tally) -> float:
    """The standard deviation of all ratings; zero before the first."""
    return math.sqrt(tally.overall[1] / max(tally.ratings[0], 1))


@kernel
def find_entries(pairs: Pairs, user: int, candidates: Items, entries: NDArray[np.int32]) -> tuple[int, float]:
    """Per candidate its entry among the user's pairs, or `NOTHING`. Returns the number and sum of the user's ratings.

    `entries` is scratch with one place per item; places of other items may hold anything.
    """
    if candidates.size == 0:
        entries[:] = NOTHING
    for position in range(candidates.size):
        entries[candidates[position]] = NOTHING
    plays, total = 0, 0.0
    entry = pairs.first[user]
    while entry != NOTHING:
        entries[pairs.items[entry]] = entry
        plays += pairs.plays[entry]
        total += pairs.totals[entry]
        entry = pairs.following[entry]
    return plays, total


@kernel
def any_best(scores: Vector, length: int, random: np.random.Generator) -> tuple[int, float]:
    """The position of the largest of the first scores, and its probability. Ties are broken at random."""
    best, ties = 0, 1
    for position in range(1, length):
        if scores[position] > scores[best]:
            best, ties = position, 1
        elif scores[position] == scores[best]:
            ties += 1
    if ties == 1:
        return best, 1.0
    passed_over = int(random.random() * ties)
    position = best
    while passed_over > 0:
        position += 1
        if scores[position] == scores[best]:
            passed_over -= 1
    return position, 1.0 / ties
