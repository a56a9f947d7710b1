"""Fits to ratings given beforehand: in NumPy, before the first step, once per agent.

Sums are taken in the order of the ratings and all else is elementwise, so the bits are the same on every machine.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.linear import Matrix, Vector

Indices = NDArray[np.int32]


class Factorization(NamedTuple):
    """A matrix factorization: user vectors, item vectors, and the sums of each item's regression."""

    user_factors: Matrix
    item_factors: Matrix
    item_grams: Matrix
    """Per item Σ A_u A_uᵀ over its ratings, packed."""
    item_moments: Matrix
    """Per item Σ y A_u over its ratings."""


def fit_factors(
    users: Indices, items: Indices, ratings: Vector, rank: int, ridges: tuple[float, float], sweeps: int, random: np.random.Generator
) -> Factorization:
    """Minimize Σ (y − ⟨A_u, B_i⟩)² + λ₁ |A|² + λ₂ |B|² by `sweeps` sweeps of alternating least squares, from normal item vectors.

    >>> random = np.random.default_rng(0)
    >>> users, items = np.indices((6, 8), np.int32).reshape(2, -1)
    >>> means = np.outer(random.normal(size=6), random.normal(size=8))
    >>> fit = fit_factors(users, items, means.ravel(), 1, (1e-6, 1e-6), 20, random)
    >>> bool(np.allclose(fit.user_factors @ fit.item_factors.T, means, atol=1e-4))
    True
    """
    n_users, n_items = int(users.max(initial=-1)) + 1, int(items.max(initial=-1)) + 1
    item_factors = random.normal(size=(n_items, rank))
    for _ in range(sweeps):
        grams, moments = summed(users, item_factors[items], ratings, n_users)
        user_factors = solved(grams, moments, ridges[0])
        grams, moments = summed(items, user_factors[users], ratings, n_items)
        item_factors = solved(grams, moments, ridges[1])
    return Factorization(user_factors, item_factors, grams, moments)


def summed(rows: Indices, regressors: Matrix, ratings: Vector, n_rows: int) -> tuple[Matrix, Matrix]:
    """Per row Σ x xᵀ, packed, and Σ y x."""
    columns = [regressors[:, a] for a in range(regressors.shape[1])]
    grams = [np.bincount(rows, column * columns[b], n_rows) for a, column in enumerate(columns) for b in range(a + 1)]
    return np.column_stack(grams), np.column_stack([np.bincount(rows, ratings * column, n_rows) for column in columns])


def solved(grams: Matrix, moments: Matrix, ridge: float) -> Matrix:
    """Per row (Σ x xᵀ + ridge · I)⁻¹ Σ y x, by Cholesky factors of all rows side by side."""
    rank = moments.shape[1]
    factor = np.zeros((rank, rank, len(moments)))
    solution = moments.T.copy()
    for a in range(rank):
        for b in range(a + 1):
            value = grams[:, a * (a + 1) // 2 + b] + (ridge if a == b else 0.0)
            for c in range(b):
                value = value - factor[a, c] * factor[b, c]
            factor[a, b] = np.sqrt(np.maximum(value, 0.5 * ridge)) if a == b else value / factor[b, b]
        for b in range(a):
            solution[a] -= factor[a, b] * solution[b]
        solution[a] /= factor[a, a]
    for a in reversed(range(rank)):
        for b in range(a + 1, rank):
            solution[a] -= factor[b, a] * solution[b]
        solution[a] /= factor[a, a]
    return np.ascontiguousarray(solution.T)
