"""Means over seeds and their intervals."""

import numpy as np
import pytest
from scipy.stats import norm, sem, t

from albatross.studies.statistics import bootstrap, interquartile_mean, mean_over_seeds, paired_difference, probability_of_improvement


def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    source, n_studies = np.random.default_rng(1), 400
    hits = 0
    for _ in range(n_studies):
        estimate = mean_over_seeds(source.normal(3.0, 1.0, size=50), source, n_resamples=400)
        hits += bool(estimate.low <= 3.0 <= estimate.high)
    assert 0.90 <= hits / n_studies <= 0.98


def test_a_narrower_level_lies_within_a_wider() -> None:
    values = np.random.default_rng(2).normal(size=20)
    wide, narrow = mean_over_seeds(values, random(), level=0.95), mean_over_seeds(values, random(), level=0.5)
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


def test_each_point_of_a_curve_has_its_own_interval() -> None:
    curves = np.random.default_rng(3).normal(size=(10, 4)) + np.array([0.0, 10.0, 20.0, 30.0])
    estimate = mean_over_seeds(curves, random())
    assert estimate.mean == pytest.approx(curves.mean(axis=0))
    for point in range(4):
        alone = mean_over_seeds(curves[:, point], random())
        assert (estimate.low[point], estimate.high[point]) == pytest.approx((alone.low, alone.high))


def test_seeds_that_agree_leave_no_doubt() -> None:
    assert mean_over_seeds([2.0] * 5, random()) == pytest.approx((2.0, 2.0, 2.0))


def test_one_seed_says_nothing_of_others() -> None:
    estimate = mean_over_seeds([[1.0, 2.0]], random())
    assert estimate.mean.tolist() == [1.0, 2.0]
    assert np.isnan(estimate.low).all()
    assert np.isnan(estimate.high).all()


@pytest.mark.parametrize("n_seeds", [2, 3, 4])
def test_few_seeds_have_the_interval_of_student(n_seeds: int) -> None:
    curves = np.random.default_rng(4).normal(size=(n_seeds, 3))
    estimate = mean_over_seeds(curves, random())
    low, high = t.interval(0.95, n_seeds - 1, curves.mean(axis=0), sem(curves, axis=0))
    np.testing.assert_allclose(estimate.low, low, rtol=1e-3)
    np.testing.assert_allclose(estimate.high, high, rtol=1e-3)
    assert (estimate.high > curves.max(axis=0)).all(), "wider than what was seen"


def test_few_values_have_no_bootstrap() -> None:
    for estimate in (interquartile_mean([[1.0, 2.0, 3.0, 4.0]], random()), probability_of_improvement([1.0] * 9, [2.0] * 4, random())):
        assert np.isnan(estimate.low)
        assert np.isnan(estimate.high)
        assert np.isfinite(estimate.mean)


def test_the_same_generator_gives_the_same_interval() -> None:
    values = [1.0, 5.0, 2.0, 4.0, 3.0]
    assert mean_over_seeds(values, random()) == mean_over_seeds(values, random())


def test_stratified_intervals_cover_what_they_should() -> None:
    """Of the mean over two groups with different means: 95 % intervals of 20 + 20 values miss it now and then, not often."""
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        groups = [random.normal(0.0, 1.0, 20), random.normal(10.0, 2.0, 20)]
        found = bootstrap(lambda strata: float(np.mean([group.mean() for group in strata])), groups, random, n_resamples=300)
        covered += bool(found.low <= 5.0 <= found.high)
    assert 176 <= covered <= 198


def test_the_interquartile_mean_forgets_the_ends() -> None:
    values = np.arange(100.0)
    values[-1] = 1e9
    found = interquartile_mean([values], np.random.default_rng(0))
    assert found.mean == 49.5
    assert 35 < found.low < 49.5 < found.high < 65
    skewed = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 80.0, 90.0, 100.0, 110.0]
    assert interquartile_mean([skewed], np.random.default_rng(0)).mean == 17.5, "the middle half, no less"


def test_the_probability_of_improvement_is_that_of_the_distributions() -> None:
    random = np.random.default_rng(2)
    found = probability_of_improvement(random.normal(0.0, 1.0, 400), random.normal(1.0, 1.0, 400), random)
    assert found.low < norm.cdf(1 / np.sqrt(2)) < found.high
    assert probability_of_improvement([1.0], [1.0], random).mean == 0.5


def test_pairing_removes_what_both_share() -> None:
    random = np.random.default_rng(3)
    luck = random.normal(0.0, 100.0, 30)
    found = paired_difference(luck + random.normal(-1.0, 0.1, 30), luck, random)
    assert -1.1 < found.low < found.high < -0.9
