"""Resampling without bias and without aliases; many regressions side by side against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from albatross.kernels import sampling
from albatross.kernels.compiling import program
from albatross.kernels.particles import particles as filtering
from albatross.kernels.particles.slots import gather, scatter

Array = NDArray[Any]
SEEDS = st.integers(0, 10_000)
property_test = settings(deadline=None, derandomize=True, max_examples=60)

RANK, N_PARTICLES, N_USERS, N_ITEMS = 3, 6, 4, 5


def ancestors_of(weights: Array, resampler: int, random: np.random.Generator) -> Array:
    points, ancestors = np.full(weights.size, np.nan), np.full(weights.size, -1)
    program(sampling.draw_points)(resampler, random, points)
    program(sampling.find_ancestors)(weights, points, ancestors)
    return ancestors


@property_test
@given(st.lists(st.floats(-800, 800), min_size=1, max_size=40), st.floats(-1e6, 1e6))
def test_weights_are_normalized_whatever_their_size(logs: list[float], shift: float) -> None:
    log_weights, weights = np.array(logs) + shift, np.full(len(logs), np.nan)
    expected = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    sampling.normalize(log_weights, weights)
    np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(np.exp(log_weights), weights, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("vanished", [-np.inf, np.nan])
def test_weights_that_have_all_vanished_become_equal(vanished: float) -> None:
    log_weights, weights = np.full(4, vanished), np.zeros(4)
    sampling.normalize(log_weights, weights)
    np.testing.assert_allclose(weights, 0.25)
    np.testing.assert_allclose(np.exp(log_weights), 0.25)
    log_weights[1] = vanished
    sampling.normalize(log_weights, weights)
    np.testing.assert_allclose(weights, [1 / 3, 0.0, 1 / 3, 1 / 3])


@property_test
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(lambda values: sum(values) > 0.01), st.floats(0, 1, exclude_min=True))
def test_a_pick_has_weight_and_is_where_the_cumulative_weight_reaches_the_point(values: list[float], point: float) -> None:
    weights = np.array(values)
    chosen = sampling.pick(weights, point)
    cumulative = np.add.accumulate(weights)
    assert weights[chosen] > 0
    assert cumulative[chosen] >= point * cumulative[-1]
    assert chosen == 0 or cumulative[chosen - 1] < point * cumulative[-1]


@pytest.mark.parametrize("resampler", [sampling.SYSTEMATIC, sampling.MULTINOMIAL])
def test_resampling_is_unbiased(resampler: int) -> None:
    weights = np.array([0.3, 0.0, 0.05, 0.2, 0.1, 0.25, 0.1])
    random = np.random.default_rng(0)
    repetitions = 20_000
    offspring = np.array([np.bincount(ancestors_of(weights, resampler, random), minlength=7) for _ in range(repetitions)])
    assert (offspring.sum(axis=1) == 7).all()
    assert not offspring[:, 1].any(), "a particle without weight had offspring"
    expected = 7 * weights
    if resampler == sampling.MULTINOMIAL:
        alive = weights > 0
        assert stats.chisquare(offspring.sum(axis=0)[alive], repetitions * expected[alive]).pvalue > 0.01
        np.testing.assert_allclose(offspring.var(axis=0), 7 * weights * (1 - weights), rtol=0.05)
    else:
        assert (np.abs(offspring - expected) < 1 + 1e-9).all(), "more than one away from the expected number"
        part = expected % 1  # the number of offspring is one of two neighbours: a coin with this probability
        for lucky, share in zip((offspring > expected).sum(axis=0)[part > 1e-9], part[part > 1e-9], strict=True):
            assert stats.binomtest(int(lucky), repetitions, share).pvalue > 0.01


@property_test
@given(SEEDS)
def test_equal_weights_keep_everybody_with_systematic_resampling(seed: int) -> None:
    ancestors = ancestors_of(np.full(30, 1 / 30), sampling.SYSTEMATIC, np.random.default_rng(seed))
    np.testing.assert_array_equal(ancestors, np.arange(30))


def some_particles(random: np.random.Generator) -> filtering.Particles:
    return filtering.new_particles(
        random.random(N_PARTICLES),
        random.standard_normal((N_USERS, N_PARTICLES, RANK)),
        random.standard_normal((N_ITEMS, N_PARTICLES, RANK)),
    )


@pytest.mark.parametrize(("weights", "number"), [([1 / 6] * 6, 6.0), ([1.0] + [0.0] * 5, 1.0), ([0.5, 0.5] + [0.0] * 4, 2.0)])
def test_with_ess_a_new_generation_is_drawn_only_if_few_particles_count(weights: list[float], number: float) -> None:
    particles, work = some_particles(np.random.default_rng(0)), filtering.new_work(N_PARTICLES, RANK)
    assert sampling.effective_number(np.array(weights)) == pytest.approx(number)
    work.weights[:] = weights
    particles.log_weights[:] = -9.0
    filtering.resample(particles, filtering.Model(0.5, 1.0, 1.0, sampling.ESS), work, np.random.default_rng(1))
    drawn = number < 0.5 * N_PARTICLES
    assert (work.ancestors.tolist() != list(range(N_PARTICLES))) == drawn
    assert set(particles.log_weights) == {-np.log(N_PARTICLES) if drawn else -9.0}


def read(particles: filtering.Particles) -> Array:
    """All vectors by particle, the items' after the users'."""
    vectors = np.full((RANK, N_PARTICLES), np.nan)
    found = []
    for factors, slots, number in (
        (particles.user_factors, particles.user_slots, N_USERS),
        (particles.item_factors, particles.item_slots, N_ITEMS),
    ):
        for index in range(number):
            gather(factors, slots, particles.rows, index, vectors)
            found.append(vectors.T.copy())
    return np.stack(found, axis=1)


@property_test
@given(SEEDS)
def test_offspring_are_copies_and_never_aliases(seed: int) -> None:
    """Generation after generation, against whole copies: whatever is written changes one user or item and nothing else."""
    random = np.random.default_rng(seed)
    particles, work = some_particles(random), filtering.new_work(N_PARTICLES, RANK)
    copies = read(particles)
    for _ in range(6):
        work.ancestors[:] = np.sort(random.integers(N_PARTICLES, size=N_PARTICLES))
        filtering.inherit_rows(particles, work)
        copies = copies[work.ancestors]
        np.testing.assert_array_equal(read(particles), copies)
        assert sorted(particles.rows) == list(range(N_PARTICLES))
        user, item = int(random.integers(N_USERS)), int(random.integers(N_ITEMS))
        for index, factors, slots, place in (
            (user, particles.user_factors, particles.user_slots, user),
            (item, particles.item_factors, particles.item_slots, N_USERS + item),
        ):
            fresh = random.standard_normal((RANK, N_PARTICLES))
            scatter(fresh, factors, slots, particles.rows, index)
            copies[:, place] = fresh.T
        np.testing.assert_array_equal(read(particles), copies)


@property_test
@given(SEEDS)
def test_sums_are_settled_without_changing_what_a_particle_sees(seed: int) -> None:
    random = np.random.default_rng(seed)
    particles, work = some_particles(random), filtering.new_work(N_PARTICLES, RANK)
    particles.item_sums[:] = random.standard_normal(particles.item_sums.shape)
    work.ancestors[:] = np.sort(random.integers(N_PARTICLES, size=N_PARTICLES))
    expected = particles.item_sums[2][:, work.ancestors]
    filtering.inherit_rows(particles, work)
    filtering.settle_sums(particles, work, 2)
    np.testing.assert_array_equal(particles.item_sums[2], expected)
    np.testing.assert_array_equal(particles.sum_slots[particles.rows, 2], np.arange(N_PARTICLES))


def regressions(random: np.random.Generator, rank: int, n_particles: int) -> tuple[Array, Array, Array, Array]:
    """Per particle the sums of a random regression, and the same as whole matrices and moments; the ridges."""
    sums = np.zeros((rank * (rank + 1) // 2 + rank, n_particles))
    ridges = random.uniform(0.1, 2.0, n_particles)
    grams, moments = ridges[:, np.newaxis, np.newaxis] * np.eye(rank), np.zeros((n_particles, rank))
    for _ in range(int(random.integers(2 * rank))):
        vectors, plays, total = random.standard_normal((rank, n_particles)), int(random.integers(1, 4)), random.normal()
        sampling.add_terms(sums, vectors, float(plays), total)
        grams += plays * np.einsum("ad,bd->dab", vectors, vectors)
        moments += total * vectors.T
    return sums, grams, moments, ridges


@property_test
@given(st.integers(1, 7), st.integers(1, 6), SEEDS)
def test_regressions_side_by_side_are_those_of_numpy(rank: int, n_particles: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sums, grams, moments, ridges = regressions(random, rank, n_particles)
    factors, vectors = np.full((len(sums) - rank, n_particles), np.nan), np.full((rank, n_particles), np.nan)
    assert sampling.factorize_all(sums, ridges, factors, rank)
    sampling.draw_all(sums, factors, 0.7, np.random.default_rng(seed + 1), vectors)
    errors = np.random.default_rng(seed + 1).standard_normal((n_particles, rank))
    for d in range(n_particles):
        lower = np.linalg.cholesky(grams[d])
        np.testing.assert_allclose(factors[:, d], lower[np.tril_indices(rank)], rtol=1e-9, atol=1e-12)
        draw = np.linalg.solve(grams[d], moments[d]) + 0.7 * np.linalg.solve(lower.T, errors[d])
        np.testing.assert_allclose(vectors[:, d], draw, rtol=1e-9, atol=1e-9)


@property_test
@given(st.integers(1, 7), SEEDS)
def test_the_density_of_a_rating_is_that_of_the_regression(rank: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sums, grams, moments, ridges = regressions(random, rank, 4)
    factors, vectors, logs = np.zeros((len(sums) - rank, 4)), random.standard_normal((rank, 4)), np.zeros(4)
    noise, reward, covariances = 0.6, random.normal(), np.linalg.inv(grams)
    means = np.einsum("ad,dab,db->d", vectors, covariances, moments)
    spreads = noise**2 * (1 + np.einsum("ad,dab,bd->d", vectors, covariances, vectors))
    sampling.factorize_all(sums, ridges, factors, rank)
    sampling.add_log_densities(sums, factors, noise, reward, vectors, np.zeros((rank, 4)), logs)
    constant = np.log(noise * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(logs - constant, stats.norm.logpdf(reward, means, np.sqrt(spreads)), rtol=1e-8, atol=1e-8)


def test_a_matrix_that_rounding_has_spoiled_is_reported_and_mended() -> None:
    sums, _, _, ridges = regressions(np.random.default_rng(0), RANK, N_PARTICLES)
    factors = np.full((len(sums) - RANK, N_PARTICLES), np.nan)
    assert sampling.factorize_all(sums, ridges, factors, RANK)
    sums[0, 4] = -5.0
    assert not sampling.factorize_all(sums, ridges, factors, RANK)
    assert factors[0, 4] == np.sqrt(0.5 * ridges[4])
    assert np.isfinite(factors).all()


def test_interpreted_and_compiled_agree_bit_for_bit() -> None:
    sums, _, _, ridges = regressions(np.random.default_rng(3), RANK, N_PARTICLES)
    results = []
    for version in (lambda kernel: kernel, program):
        factors, vectors = np.zeros((len(sums) - RANK, N_PARTICLES)), np.zeros((RANK, N_PARTICLES))
        version(sampling.factorize_all)(sums, ridges, factors, RANK)
        version(sampling.draw_all)(sums, factors, 0.3, np.random.default_rng(5), vectors)
        results.append(np.concatenate([factors, vectors]))
    np.testing.assert_array_equal(results[0], results[1])
