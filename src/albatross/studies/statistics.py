"""Means over seeds, and their intervals."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

N_RESAMPLES = 10_000

FEWEST = 5
"""Minimum number of seeds for a bootstrap and for a verdict. With fewer, its interval is close to the range from minimum to maximum."""
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182}
"""By number of seeds: half width of a 95 % interval in standard errors of the mean (Student's t)."""


class Estimate(NamedTuple):
    """A mean over seeds with the ends of its interval; they are NaN if there are too few seeds."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def mean_over_seeds(values: ArrayLike, random: np.random.Generator, level: float = 0.95, n_resamples: int = N_RESAMPLES) -> Estimate:
    """The mean of one value, or one curve, per seed, with its percentile-bootstrap interval: seeds are resampled with replacement.

    With fewer than five seeds, it is Student's 95 % interval.

    >>> estimate = mean_over_seeds([1.0, 2.0, 3.0, 4.0, 5.0], np.random.default_rng(0))
    >>> float(estimate.mean), bool(1.0 < estimate.low < 3.0 < estimate.high < 5.0)
    (3.0, True)
    """
    rows = np.asarray(values, np.float64)
    n_seeds, mean = len(rows), rows.mean(axis=0)
    if n_seeds < 2:
        return Estimate(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    if n_seeds < FEWEST:
        reach = STUDENT[n_seeds] * rows.std(axis=0, ddof=1) / math.sqrt(n_seeds)
        return Estimate(mean, mean - reach, mean + reach)
    times_drawn = random.multinomial(n_seeds, np.full(n_seeds, 1.0 / n_seeds), size=n_resamples)
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(times_drawn @ rows / n_seeds, [tail, 100.0 - tail], axis=0)
    return Estimate(mean, low, high)


def bootstrap(
    statistic: Callable[[list[NDArray[np.float64]]], float],
    strata: Sequence[ArrayLike],
    random: np.random.Generator,
    level: float = 0.95,
    n_resamples: int = 2_000,
) -> Estimate:
    """Any statistic of several groups of values, with its stratified interval: each group is resampled separately.

    With fewer than five values in a group there is no interval.
    """
    groups = [np.asarray(group, np.float64) for group in strata]
    if min(group.size for group in groups) < FEWEST:
        return Estimate(np.asarray(statistic(groups)), np.asarray(np.nan), np.asarray(np.nan))
    drawn = [statistic([group[random.integers(group.size, size=group.size)] for group in groups]) for _ in range(n_resamples)]
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(drawn, [tail, 100.0 - tail])
    return Estimate(np.asarray(statistic(groups)), low, high)


def interquartile_mean(strata: Sequence[ArrayLike], random: np.random.Generator) -> Estimate:
    """The mean of the middle half of all values: less sensitive to a single outlier seed than the mean.

    >>> float(interquartile_mean([[0.0, 2.0, 4.0, 100.0]], np.random.default_rng(0)).mean)
    3.0
    """

    def middle(groups: list[NDArray[np.float64]]) -> float:
        values = np.sort(np.concatenate(groups))
        cut = values.size // 4
        return float(values[cut : values.size - cut].mean())

    return bootstrap(middle, strata, random)


def paired_difference(first: ArrayLike, second: ArrayLike, random: np.random.Generator, n_resamples: int = N_RESAMPLES) -> Estimate:
    """The mean of first minus second over seeds, at which both met the same public."""
    return mean_over_seeds(np.asarray(first) - np.asarray(second), random, n_resamples=n_resamples)


def probability_of_improvement(first: ArrayLike, second: ArrayLike, random: np.random.Generator) -> Estimate:
    """The probability that a run of the first has less regret than a run of the second; ties count half.

    >>> float(probability_of_improvement([1.0, 2.0], [2.0, 3.0], np.random.default_rng(0)).mean)
    0.875
    """

    def share(groups: list[NDArray[np.float64]]) -> float:
        one, other = groups[0][:, np.newaxis], groups[1][np.newaxis, :]
        return float(np.mean((one < other) + 0.5 * (one == other)))

    return bootstrap(share, [first, second], random)
