"""Matrix factorization by alternating ridge regressions, one user or item at a time. Ratings are stored by user and by item.

The ridge of each regression is multiplied by the number of its ratings (weighted-λ regularization): a user with many ratings is not
regularized less. Users and items are treated alike: a *side* holds the vectors of its rows, and the ratings row by row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector, add_outer, factorize, solve_lower, solve_upper
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember

PIVOT = 0.5
"""A pivot below this fraction of the ridge is rounding error."""


class Side(NamedTuple):
    factors: Matrix
    """One row per user or item, in Fortran order, because scoring runs over items."""
    ratings: Pairs
    """Per row: its partners, number and sum of the ratings."""
    met: NDArray[np.int64]
    """The rows that have ratings, in the order of their first rating."""
    counts: NDArray[np.int64]
    """How many rows have ratings, and the position in `met` of the row refitted last."""


class Work(NamedTuple):
    """Working space. Not learned: any content will do."""

    gram: Matrix
    factor: Matrix
    """Cholesky factor of Σ x xᵀ + ridge · I."""
    vector: Vector
    solution: Vector
    """The regression."""


def new_side(factors: Matrix) -> Side:
    n_rows = len(factors)
    return Side(np.asfortranarray(factors), no_pairs(n_rows), np.zeros(n_rows, np.int64), np.zeros(2, np.int64))


def new_work(rank: int) -> Work:
    return Work(np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros(rank), np.zeros(rank))


@kernel
def add_rating(users: Side, items: Side, user: int, item: int, reward: float) -> None:
    """Store a rating on both sides."""
    meet(users, user)
    meet(items, item)
    remember(users.ratings, user, item, reward)
    remember(items.ratings, item, user, reward)


@kernel
def meet(side: Side, row: int) -> None:
    """Register a row that is about to get its first rating."""
    if side.ratings.first[row] == NOTHING:
        side.met[side.counts[0]] = row
        side.counts[0] += 1


@kernel
def regress(side: Side, row: int, partners: Matrix, ridge: float, work: Work) -> int:
    """The ridge regression of a row's ratings on the current vectors of its partners. Returns the number of ratings.

    The solution and the Cholesky factor are left in `work`. Without ratings, the solution is zero and the ridge is not multiplied.
    """
    gram, vector, solution, ratings = work.gram, work.vector, work.solution, side.ratings
    rank = vector.size
    solution.fill(0.0)
    gram.fill(0.0)
    n_ratings = 0
    entry = ratings.first[row]
    while entry != NOTHING:
        here = np.uint32(entry)  # unsigned: no check for negative indices
        partner, plays, total = np.uint32(ratings.items[here]), ratings.plays[here], ratings.totals[here]
        entry = ratings.following[here]
        for a in range(rank):
            vector[a] = partners[partner, a]
            solution[a] += total * vector[a]
        add_outer(gram, vector, float(plays))
        n_ratings += plays
    weight = ridge * max(n_ratings, 1)
    for a in range(rank):
        gram[a, a] += weight
    factorize(gram, work.factor, PIVOT * weight)
    solve_lower(work.factor, solution, solution)
    solve_upper(work.factor, solution, solution)
    return n_ratings


@kernel
def refit(side: Side, row: int, partners: Matrix, ridge: float, work: Work) -> None:
    """Set the vector of a row to its regression. If that is zero, for example after ratings of zero, the row keeps its vector.

    Otherwise it would stay zero and the item would never be shown again: alternating least squares does not leave zero.
    """
    regress(side, row, partners, ridge, work)
    largest = 0.0
    for a in range(work.solution.size):
        largest = max(largest, abs(work.solution[a]))
    if largest > 0.0:
        for a in range(work.solution.size):
            side.factors[row, a] = work.solution[a]


@kernel
def next_turn(side: Side) -> int:
    """The next row to be refitted: all rows with ratings, in turn."""
    side.counts[1] = (side.counts[1] + 1) % side.counts[0]
    return side.met[side.counts[1]]  # type: ignore[no-any-return]
