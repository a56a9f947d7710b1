"""Beliefs as second moments: fits against direct solves, inner products against expectations."""

import numpy as np
import pytest

from albatross.kernels.mean_field.moments import (
    add_moments,
    certain,
    describe,
    expected_mean,
    fit,
    no_regression,
    overshoot_mean,
    partner_weights,
)

RANKS = [1, 2, 5]


def packed(vector: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """E[z zᵀ] of z = (vector, 1, offset), the lower triangle row by row, for coefficients (vector, offset)."""
    rank = vector.size - 1
    order = [*range(rank), rank + 1]  # where coefficients stand in z
    second = np.zeros((rank + 2, rank + 2))
    second[np.ix_(order, order)] = np.outer(vector, vector) + covariance
    second[rank, order] = second[order, rank] = vector
    second[rank, rank] = 1.0
    return second[np.tril_indices(rank + 2)]


def some_belief(random: np.random.Generator, rank: int) -> tuple[np.ndarray, np.ndarray]:
    root = random.normal(size=(rank + 1, rank + 1))
    return random.normal(size=rank + 1), 0.3 * root @ root.T


@pytest.mark.parametrize("rank", RANKS)
def test_fit_is_the_direct_solve(rank: int) -> None:
    """Partners with covariances: the normal equations of the expected squared error, solved by NumPy."""
    random = np.random.default_rng(rank)
    work = no_regression(rank)
    variance, noise, center = random.uniform(0.5, 2.0, rank + 1), 0.7, 0.4
    gram, right = np.diag(noise / variance), np.zeros(rank + 1)
    right[rank] = noise / variance[rank] * center
    for _ in range(2 * rank + 3):
        mean, covariance = some_belief(random, rank)
        weight, value = random.uniform(0.5, 3.0), random.normal()
        add_moments(work.sums, work.rights, packed(mean, covariance), weight, weight * value)
        regressor = np.r_[mean[:rank], 1.0]
        gram += weight * np.outer(regressor, regressor)
        gram[:rank, :rank] += weight * covariance[:rank, :rank]
        right += weight * regressor * (value - mean[rank])
        right[:rank] -= weight * covariance[:rank, rank]
    fit(work, work.sums, work.rights, variance, center, noise)
    describe(work, noise)
    solution = np.linalg.solve(gram, right)
    np.testing.assert_allclose(work.mean, solution, rtol=1e-9)
    np.testing.assert_allclose(work.moments, packed(solution, noise * np.linalg.inv(gram)), rtol=1e-9, atol=1e-12)


def test_without_partners_the_population_is_believed() -> None:
    work = no_regression(2)
    fit(work, work.sums, work.rights, np.array([2.0, 3.0, 0.5]), -1.5, 0.1)
    describe(work, 0.1)
    np.testing.assert_allclose(work.moments, packed(np.array([0.0, 0.0, -1.5]), np.diag([2.0, 3.0, 0.5])), atol=1e-12)


@pytest.mark.parametrize("rank", RANKS)
def test_a_mean_overshoots_in_vector_and_offset(rank: int) -> None:
    random = np.random.default_rng(rank)
    before, covariance = some_belief(random, rank)
    mean = random.normal(size=rank + 1)
    expected = mean + 0.75 * (mean - before)
    overshoot_mean(mean, packed(before, covariance), 0.75)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


@pytest.mark.parametrize("rank", RANKS)
def test_partner_weights_give_the_second_moment(rank: int) -> None:
    """E[(⟨a, b⟩ + o + o')²] of independent normals, in closed form."""
    random = np.random.default_rng(10 + rank)
    (mine, spread), (other, other_spread) = some_belief(random, rank), some_belief(random, rank)
    weights = np.zeros(packed(mine, spread).size)
    partner_weights(packed(mine, spread), rank + 1, weights)
    a, b, expected = mine[:rank], other[:rank], mine[rank] + other[rank] + mine[:rank] @ other[:rank]
    variance = (
        b @ spread[:rank, :rank] @ b + 2.0 * b @ spread[:rank, rank] + spread[rank, rank]
        + a @ other_spread[:rank, :rank] @ a + 2.0 * a @ other_spread[:rank, rank] + other_spread[rank, rank]
        + np.trace(spread[:rank, :rank] @ other_spread[:rank, :rank])
    )  # fmt: skip
    np.testing.assert_allclose(weights @ packed(other, other_spread), expected**2 + variance, rtol=1e-9)
    np.testing.assert_allclose(expected_mean(packed(mine, spread), packed(other, other_spread), rank + 1), expected, rtol=1e-9)


def test_who_is_known_for_certain_has_no_variance() -> None:
    mean, moments = np.array([2.0, -3.0, 0.5]), np.zeros(10)
    certain(mean, moments)
    known = np.array([2.0, -3.0, 1.0, 0.5])
    np.testing.assert_array_equal(moments, np.outer(known, known)[np.tril_indices(4)])
