"""Beliefs about users and items as packed second moments: fitted, added up and exchanged, in a mean-field factorization.

A user or an item is (f, 1, o): factors of length rank, the number one, an offset. What is believed of it is E[z zᵀ], z = (f, 1, o),
packed (its lower triangle, row by row), so that sums of beliefs over ratings are one loop and carry the covariances along. The row
of the one holds the means, and is all zero for who was never rated.
A rating is origin + ⟨f_u, f_i⟩ + o_u + o_i plus noise: for each side a linear regression with coefficients (f, o), regressors (f, 1) of
the partner, and the partner's offset taken off.
"""

from typing import NamedTuple

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector, factorize, invert_lower, packed_size, solve_lower, solve_upper


class Regression(NamedTuple):
    """Room to fit one user or item. Not learned: any content serves."""

    gram: Matrix
    factor: Matrix
    """Cholesky factor of Σ x xᵀ + noise / variance."""
    whitener: Matrix
    """The inverse of the factor."""
    mean: Vector
    """(f, o)"""
    moments: Vector
    """E[z zᵀ], packed."""
    sums: Vector
    """Σ w E[z zᵀ] over the partners, packed."""
    rights: Vector
    """Σ w y E[(f, 1)] over the partners."""


def no_regression(rank: int) -> Regression:
    square = (rank + 1, rank + 1)
    packed = packed_size(rank + 2)
    return Regression(
        np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(rank + 1), np.zeros(packed), np.zeros(packed), np.zeros(rank + 1)
    )


@kernel
def row_start(row: int) -> int:
    """Where a row of a packed matrix begins."""
    return row * (row + 1) // 2


@kernel
def fit(work: Regression, sums: Vector, rights: Vector, variance: Vector, center: float, noise: float) -> None:
    """The posterior of (f, o) given what the partners are believed to be, as mean and whitener of `work`.

    A priori the coefficients are independent, with this variance each; the offset has mean `center`, the factors zero.
    """
    gram, mean = work.gram, work.mean
    size = mean.size
    last = row_start(size)
    position = 0
    weakest = np.inf
    for a in range(size):
        for b in range(a + 1):
            gram[a, b] = sums[position]
            position += 1
        ridge = noise / variance[a]
        gram[a, a] += ridge
        mean[a] = rights[a] - sums[last + a]
        weakest = min(weakest, ridge)
    mean[size - 1] += noise / variance[size - 1] * center
    factorize(gram, work.factor, 0.5 * weakest)
    solve_lower(work.factor, mean, mean)
    solve_upper(work.factor, mean, mean)
    invert_lower(work.factor, work.whitener)


@kernel
def whitened_square(work: Regression, vector: Vector) -> float:
    """vectorᵀ (Σ x xᵀ + noise / variance)⁻¹ vector"""
    total = 0.0
    for a in range(vector.size):
        part = 0.0
        for b in range(a + 1):
            part += work.whitener[a, b] * vector[b]
        total += part * part
    return total


@kernel
def describe(work: Regression, noise: float) -> None:
    """What `fit` came to as moments of `work`."""
    mean, inverse, moments = work.mean, work.whitener, work.moments
    size = mean.size
    one, last = row_start(size - 1), row_start(size)
    for a in range(size):
        # Coefficient a is factor a, or the offset, which stands behind the one.
        row = row_start(a) if a < size - 1 else last
        for b in range(a + 1):
            covariance = 0.0
            for c in range(a, size):
                covariance += inverse[c, a] * inverse[c, b]
            place = row + b if b < size - 1 else row + size
            moments[place] = mean[a] * mean[b] + noise * covariance
        if a < size - 1:
            moments[one + a] = mean[a]
    moments[last + size - 1] = mean[size - 1]
    moments[one + size - 1] = 1.0


@kernel
def certain(mean: Vector, moments: Vector) -> None:
    """The moments of somebody known to be (f, o) = `mean`."""
    size = mean.size
    one, last = row_start(size - 1), row_start(size)
    for a in range(size - 1):
        for b in range(a + 1):
            moments[row_start(a) + b] = mean[a] * mean[b]
        moments[one + a] = mean[a]
        moments[last + a] = mean[a] * mean[size - 1]
    moments[one + size - 1] = 1.0
    moments[last + size - 1] = mean[size - 1]
    moments[last + size] = mean[size - 1] * mean[size - 1]


@kernel
def partner_weights(moments: Vector, size: int, weights: Vector) -> None:
    """Numbers whose inner product with a partner's packed moments is E[(⟨f, f'⟩ + o + o')²]; `size` is rank + 1."""
    one, last = row_start(size - 1), row_start(size)
    for a in range(size - 1):
        row = row_start(a)
        for b in range(a):
            weights[row + b] = 2.0 * moments[row + b]
        weights[row + a] = moments[row + a]
        weights[one + a] = 2.0 * moments[last + a]
        weights[last + a] = 2.0 * moments[one + a]
    weights[one + size - 1] = moments[last + size]
    weights[last + size - 1] = 2.0 * moments[last + size - 1]
    weights[last + size] = 1.0


@kernel
def expected_mean(moments: Vector, partner: Vector, size: int) -> float:
    """⟨E f, E f'⟩ + E o + E o'"""
    one, last = row_start(size - 1), row_start(size)
    total = moments[last + size - 1] + partner[last + size - 1]
    for a in range(size - 1):
        total += moments[one + a] * partner[one + a]
    return total  # type: ignore[no-any-return]


@kernel
def add_moments(sums: Vector, rights: Vector, moments: Vector, weight: float, value: float) -> None:
    """Sums += weight · E[z zᵀ], rights += value · E[(f, 1)]"""
    for position in range(sums.size):
        sums[position] += weight * moments[position]
    one = row_start(rights.size - 1)
    for a in range(rights.size):
        rights[a] += value * moments[one + a]
