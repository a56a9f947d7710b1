"""The arrays of a mean-field factorization, shared by every policy that learns one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.linear import Matrix, Vector, aligned_zeros, packed_size
from albatross.kernels.mean_field.learning import Room
from albatross.kernels.mean_field.moments import no_regression
from albatross.kernels.mean_field.population import COUNTS, FIGURES
from albatross.kernels.mean_field.shelving import new_shelves
from albatross.kernels.pairs import Pairs, no_pairs
from albatross.kernels.search.lanes import LANES


class Beliefs(NamedTuple):
    user_moments: Matrix
    item_moments: Matrix
    """Belief about each, E[z zᵀ] of z = (vector, 1, offset), packed; zero before the first rating."""
    item_columns: Matrix
    """The same as `item_moments` in Fortran order, because scoring runs over items."""
    item_sums: Matrix
    item_rights: Matrix
    """Per item Σ w E[z zᵀ] over its users, packed, and Σ w (y − g) E[(vector, 1)]."""
    residuals: Vector
    """Per user Σ w E[(y − m)²] over its pairs, when last fitted."""
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    """Users and items with ratings, in the order of their first rating."""
    user_squares: Vector
    user_spreads: Vector
    item_squares: Vector
    item_spreads: Vector
    """Sums over all rated users or items, per coordinate, offset last: of squared means, and of variances."""
    user_variance: Vector
    item_variance: Vector
    """Prior variances D of users and of items, offset last."""
    figures: NDArray[np.record]
    counts: NDArray[np.record]
    """One record each; `albatross.kernels.mean_field.population` describes the fields."""
    pairs: Pairs

    @property
    def item_factors(self) -> Matrix:
        """The mean of each item's vector."""
        rank = self.item_variance.size - 1
        start = rank * (rank + 1) // 2
        return self.item_moments[:, start : start + rank]


class Scratch(NamedTuple):
    room: Room
    stranger: Vector
    """The belief about an unrated item."""
    block: Matrix
    """Moments of a few items side by side, then their squares, means and second moments, and space for scores."""
    nearby: NDArray[np.int32]
    """Room for items that are looked at together."""
    squares: Vector
    means: Vector
    seconds: Vector
    """Per candidate: the user's part of the variance of m_ui in units of the noise, m_ui, and its second moment for the item's part."""
    positions: NDArray[np.int32]
    """Per item: its position among the candidates."""
    listed: NDArray[np.int32]
    places: NDArray[np.int32]
    """Candidates with ratings, and their positions among the candidates."""
    promising: NDArray[np.int64]
    """An array of length 1: among which of them, LANES at a time, the best one was found last."""


def no_beliefs(rank: int, n_users: int, n_items: int) -> Beliefs:
    size, packed = rank + 1, packed_size(rank + 2)
    return Beliefs(
        user_moments=aligned_zeros((n_users, packed)),
        item_moments=aligned_zeros((n_items, packed)),
        item_columns=aligned_zeros((n_items, packed), order="F"),
        item_sums=aligned_zeros((n_items, packed)),
        item_rights=np.zeros((n_items, size)),
        residuals=np.zeros(n_users),
        users=np.zeros(n_users, np.int64),
        items=np.zeros(n_items, np.int64),
        user_squares=np.zeros(size),
        user_spreads=np.zeros(size),
        item_squares=np.zeros(size),
        item_spreads=np.zeros(size),
        user_variance=np.zeros(size),
        item_variance=np.zeros(size),
        figures=np.zeros(1, FIGURES),
        counts=np.zeros(1, COUNTS),
        pairs=no_pairs(n_users),
    )


def no_scratch(rank: int, n_items: int, once: bool = False) -> Scratch:
    packed = packed_size(rank + 2)
    return Scratch(
        room=Room(no_regression(rank), np.zeros(packed), new_shelves(rank, n_items), float(once)),
        stranger=np.zeros(packed),
        block=aligned_zeros((packed + 4, LANES)),
        nearby=np.zeros(LANES, np.int32),
        squares=aligned_zeros((n_items + LANES,)),
        means=aligned_zeros((n_items + LANES,)),
        seconds=aligned_zeros((n_items + LANES,)),
        positions=np.zeros(n_items, np.int32),
        listed=np.zeros(n_items, np.int32),
        places=np.zeros(n_items, np.int32),
        promising=np.zeros(1, np.int64),
    )
