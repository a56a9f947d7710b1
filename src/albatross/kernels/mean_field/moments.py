"""Beliefs about users and items as packed second moments, for a mean-field factorization: fitting, sums and exchanges.

A user or an item is (f, 1, o): factors of length rank, the number one, an offset. The belief about it is E[z zᵀ], z = (f, 1, o),
packed (its lower triangle, row by row), so that sums of beliefs over ratings are one loop and include the covariances. The row
of the one holds the means, and is zero without ratings.
A rating is origin + ⟨f_u, f_i⟩ + o_u + o_i plus noise: for each side a linear regression with coefficients (f, o), regressors (f, 1) of
the partner, after subtraction of the partner's offset.
"""

import math
from typing import NamedTuple

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import RESOLUTION, Matrix, Vector, packed_size
from albatross.kernels.written_out import add_scaled, certain_at_once, described_at_once, fitted_at_once, weighted_at_once


class Regression(NamedTuple):
    """Working space to fit one user or item. Not learned: any content will do."""

    values: Matrix
    factor: Matrix
    """While fitting: the right-hand side on the diagonal, below it D Lᵀ; D on the diagonal, below it L."""
    whitener: Matrix
    """The inverse of the Cholesky factor of Σ x xᵀ + noise / variance."""
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
    """The posterior of (f, o) given the beliefs about the partners, as mean and whitener of `work`.

    A priori the coefficients are independent, with this variance each; the offset has mean `center`, the factors zero.
    By a factorization without roots, L D Lᵀ: with those of Cholesky, each row would wait for the root of the one before.
    """
    if fitted_at_once(sums, rights, variance, center, noise, work.whitener, work.mean):
        return
    values, factor, inverse, mean = work.values, work.factor, work.whitener, work.mean
    size = mean.size
    last = row_start(size)
    for a in range(size):
        row = row_start(a)
        ridge = noise / variance[a]
        diagonal = pivot = sums[row + a] + ridge
        values[a, a] = rights[a] - sums[last + a]
        if a == size - 1:
            values[a, a] += ridge * center
        for b in range(a):
            value = sums[row + b]
            for c in range(b):
                value -= values[a, c] * factor[b, c]
            values[a, b] = value
            factor[a, b] = value / factor[b, b]
            pivot -= value * factor[a, b]
        least = RESOLUTION * abs(diagonal)
        if not least > 0.5 * ridge:
            least = 0.5 * ridge
        factor[a, a] = pivot if pivot >= least else least  # rounding may have spoiled it: the ridge alone is as much
        for b in range(a):
            value = factor[a, b]
            for c in range(b + 1, a):
                value += factor[a, c] * inverse[c, b]
            inverse[a, b] = -value
    for a in range(size):
        value = values[a, a]
        for b in range(a):
            value += inverse[a, b] * values[b, b]
        factor[a, a], mean[a] = math.sqrt(factor[a, a]), value / factor[a, a]
    for a in range(size):
        value = mean[a]
        for b in range(a + 1, size):
            value += inverse[b, a] * mean[b]
        mean[a] = value
        scale = 1.0 / factor[a, a]
        for b in range(a):
            inverse[a, b] *= scale
        inverse[a, a] = scale


@kernel
def solve(work: Regression, right: Vector, room: Vector) -> None:
    """Right becomes (Σ x xᵀ + noise / variance)⁻¹ right."""
    whitener, size = work.whitener, right.size
    for a in range(size):
        room[a] = 0.0
        for b in range(a + 1):
            room[a] += whitener[a, b] * right[b]
    for a in range(size):
        right[a] = 0.0
        for b in range(a, size):
            right[a] += whitener[b, a] * room[b]


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
    """The result of `fit` as moments of `work`."""
    mean, inverse, moments = work.mean, work.whitener, work.moments
    if described_at_once(inverse, mean, noise, moments):
        return
    size = mean.size
    one, last = row_start(size - 1), row_start(size)
    for a in range(size):
        # Coefficient a is factor a, or the offset, which comes after the one.
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
def overshoot_mean(mean: Vector, before: Vector, further: float) -> None:
    """Move a mean (f, o) further away from that of these moments, by this fraction of their distance."""
    rank = mean.size - 1
    one = row_start(rank)
    for a in range(rank):
        mean[a] += further * (mean[a] - before[one + a])
    mean[rank] += further * (mean[rank] - before[before.size - 2])


@kernel
def certain(mean: Vector, moments: Vector) -> None:
    """The moments of a user or item known to be (f, o) = `mean`."""
    if certain_at_once(mean, moments):
        return
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
    if weighted_at_once(moments, size, weights):
        return
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
    one = row_start(rights.size - 1)
    add_scaled(sums, moments, 0, weight)
    add_scaled(rights, moments, one, value)
