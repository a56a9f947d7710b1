"""Random choices among weighted particles, and draws from many normal distributions side by side.

The particle is the last axis everywhere. So the innermost loops run over particles and use the machine's vector units, while each
particle's own sums keep their order. The statistics of one linear regression per particle are its *sums*: Σ x xᵀ, packed, and below it
Σ y x, together an array of shape (packed_size(rank) + rank, n_particles).
"""

import math

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import RESOLUTION, Matrix, Vector

Indices = NDArray[np.int64]

SYSTEMATIC, MULTINOMIAL, ESS = range(3)
"""Resampling: by evenly spaced points, by independent points, or evenly but only if the effective number is small."""

RESAMPLERS = {"systematic": SYSTEMATIC, "multinomial": MULTINOMIAL, "ess": ESS}


@kernel
def normalize(log_weights: Vector, weights: Vector) -> None:
    """Normalize the weights, in logarithms and in `weights`. If all are zero, they become equal."""
    largest = -math.inf
    for d in range(weights.size):
        if log_weights[d] > largest:
            largest = log_weights[d]
    total = 0.0
    for d in range(weights.size):
        if largest == -math.inf:
            log_weights[d] = 0.0
        elif log_weights[d] > -math.inf:
            log_weights[d] -= largest
        else:  # NaN counts as weight zero
            log_weights[d] = -math.inf
        weights[d] = math.exp(log_weights[d])
        total += weights[d]
    for d in range(weights.size):
        log_weights[d] -= math.log(total)
        weights[d] /= total


@kernel
def effective_number(weights: Vector) -> float:
    """The effective number of particles: 1 / Σ w²."""
    total = 0.0
    for d in range(weights.size):
        total += weights[d] * weights[d]
    return 1.0 / total


@kernel
def pick(weights: Vector, point: float) -> int:
    """The first particle at which the cumulative weight reaches the point, 0 < point ≤ 1."""
    total = 0.0
    for d in range(weights.size):
        total += weights[d]
    target = point * total  # because of rounding, the weights do not add up to exactly one
    chosen = 0
    reached = weights[0]
    while reached < target:
        chosen += 1
        reached += weights[chosen]
    return chosen


@kernel
def draw_points(resampler: int, random: np.random.Generator, points: Vector) -> None:
    """Ascending points above 0 and at most 1: independent for the multinomial resampler, else evenly spaced."""
    if resampler == MULTINOMIAL:
        total = 0.0
        for d in range(points.size):
            total -= math.log(1.0 - random.random())  # exponential gaps give sorted points
            points[d] = total
        total -= math.log(1.0 - random.random())
        for d in range(points.size):
            points[d] /= total
    else:
        offset = 1.0 - random.random()
        for d in range(points.size):
            points[d] = (d + offset) / points.size


@kernel
def find_ancestors(weights: Vector, points: Vector, ancestors: Indices) -> None:
    """For each of the ascending points, the particle that `pick` would choose: the ancestors of the next generation, in order."""
    total = 0.0
    for d in range(weights.size):
        total += weights[d]
    chosen = 0
    reached = weights[0]
    for d in range(points.size):
        target = points[d] * total
        while reached < target:
            chosen += 1
            reached += weights[chosen]
        ancestors[d] = chosen


@kernel
def inherit(values: Vector, ancestors: Indices, copy: Vector) -> None:
    """Give each particle of the next generation the value of its ancestor."""
    for d in range(values.size):
        copy[d] = values[d]
    for d in range(values.size):
        values[d] = copy[ancestors[d]]


@kernel
def clear(sums: Matrix) -> None:
    for position in range(sums.shape[0]):
        for d in range(sums.shape[1]):
            sums[position, d] = 0.0


@kernel
def multiply(numbers: Matrix, ratio: float) -> None:
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):
            numbers[row, column] *= ratio


@kernel
def add_terms(sums: Matrix, vectors: Matrix, plays: float, total: float) -> None:
    """Add `plays` ratings with the sum `total` at the same regressor, each particle with its own: `vectors` is (rank, n_particles)."""
    rank, n_particles = vectors.shape
    position = 0
    for a in range(rank):
        for b in range(a + 1):
            for d in range(n_particles):
                sums[position, d] += plays * (vectors[a, d] * vectors[b, d])
            position += 1
    for a in range(rank):
        for d in range(n_particles):
            sums[position + a, d] += total * vectors[a, d]


@kernel
def factorize_all(sums: Matrix, ridges: Vector, factors: Matrix, rank: int) -> bool:
    """Cholesky factors of Σ x xᵀ + ridge · I, packed. Returns False if a pivot had to be raised.

    That is a pivot below half its ridge, or lost in rounding, as in `albatross.kernels.linear.factorize`.
    """
    n_particles = ridges.size
    spoiled = 0
    for a in range(rank):
        row = a * (a + 1) // 2
        for b in range(a + 1):
            other = b * (b + 1) // 2
            for d in range(n_particles):
                factors[row + b, d] = sums[row + b, d]
            for c in range(b):
                for d in range(n_particles):
                    factors[row + b, d] -= factors[row + c, d] * factors[other + c, d]
            if b < a:
                for d in range(n_particles):
                    factors[row + b, d] /= factors[other + b, d]
        for d in range(n_particles):
            pivot, least = factors[row + a, d] + ridges[d], RESOLUTION * abs(sums[row + a, d])
            least = least if least > 0.5 * ridges[d] else 0.5 * ridges[d]
            sound = pivot >= least
            spoiled += 0 if sound else 1
            factors[row + a, d] = math.sqrt(pivot if sound else least)
    return spoiled == 0


@kernel
def solve_lower_all(factors: Matrix, vectors: Matrix) -> None:
    """Vectors = factor⁻¹ · vectors, in place."""
    rank, n_particles = vectors.shape
    for a in range(rank):
        row = a * (a + 1) // 2
        for b in range(a):
            for d in range(n_particles):
                vectors[a, d] -= factors[row + b, d] * vectors[b, d]
        for d in range(n_particles):
            vectors[a, d] /= factors[row + a, d]


@kernel
def solve_upper_all(factors: Matrix, vectors: Matrix) -> None:
    """Vectors = factorᵀ⁻¹ · vectors, in place."""
    rank, n_particles = vectors.shape
    for a in range(rank - 1, -1, -1):
        for b in range(a + 1, rank):
            for d in range(n_particles):
                vectors[a, d] -= factors[b * (b + 1) // 2 + a, d] * vectors[b, d]
        for d in range(n_particles):
            vectors[a, d] /= factors[a * (a + 1) // 2 + a, d]


@kernel
def add_log_densities(
    sums: Matrix, factors: Matrix, noise: float, reward: float, vectors: Matrix, centers: Matrix, log_weights: Vector
) -> None:
    """Add the log density of a rating at the regressor `vectors`, with the coefficients integrated out.

    It is normal with mean xᵀ G⁻¹ Σ y x and variance noise² (1 + xᵀ G⁻¹ x), G = factor · factorᵀ; a constant is left out.
    Overwrites `vectors` and `centers`.
    """
    rank, n_particles = vectors.shape
    for a in range(rank):
        for d in range(n_particles):
            centers[a, d] = sums[sums.shape[0] - rank + a, d]
    solve_lower_all(factors, centers)
    solve_lower_all(factors, vectors)
    for d in range(n_particles):
        mean, spread = 0.0, 1.0
        for a in range(rank):
            mean += centers[a, d] * vectors[a, d]
            spread += vectors[a, d] * vectors[a, d]
        surprise = (reward - mean) / noise
        log_weights[d] -= 0.5 * (math.log(spread) + surprise * surprise / spread)


@kernel
def draw_all(sums: Matrix, factors: Matrix, noise: float, random: np.random.Generator, vectors: Matrix) -> None:
    """One draw per particle from the posterior of its regression: normal with mean G⁻¹ Σ y x and covariance noise² G⁻¹.

    G = factor · factorᵀ. Random numbers are drawn particle by particle.
    """
    rank, n_particles = vectors.shape
    first = sums.shape[0] - rank
    for a in range(rank):
        for d in range(n_particles):
            vectors[a, d] = sums[first + a, d]
    solve_lower_all(factors, vectors)
    for d in range(n_particles):
        for a in range(rank):
            vectors[a, d] += noise * random.standard_normal()
    solve_upper_all(factors, vectors)
