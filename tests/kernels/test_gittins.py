"""What it is worth to try solves its equation, comes near the index by dynamic programming, and stops at what there is to gain."""

import math

import numpy as np
import pytest

from albatross.kernels.mean_field.gittins import LOOKS, bonus, worth, worth_of


def expected_gain(q: float) -> float:
    """E[(Z − q)₊]"""
    return math.exp(-0.5 * q * q) / math.sqrt(2.0 * math.pi) - 0.5 * q * math.erfc(q / math.sqrt(2.0))


@pytest.mark.parametrize("visits", [0.003, 1.0, 5.0, 30.0, 1e3, 1e6, 9e7])
def test_worth_nearly_solves_its_equation(visits: float) -> None:
    q = worth(visits, 1.0)
    below, above = 0.97 * q, 1.03 * q
    assert visits * expected_gain(below) > below
    assert visits * expected_gain(above) < above


def gittins_indices(visits: int, ratings: int) -> list[float]:
    """Of a normal arm with noise 1 whose mean is known from 1, 2, … ratings: what a sure arm must pay more to be as good.

    By dynamic programming: with a sure arm of 0, the value of mean μ after n ratings is V(n, μ) = max(0, μ + β E V(n + 1, μ')),
    β = 1 − 1 / visits.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    weights = weights / weights.sum()
    means = np.linspace(-6.0, 6.0, 1201)
    value = np.maximum(means, 0.0) * visits
    indices = []
    for n in range(ratings + 6 * visits, 0, -1):
        after = means[:, None] + nodes / math.sqrt(n * (n + 1.0))
        beyond = np.maximum(after - means[-1], 0.0) * visits
        going_on = means + (1.0 - 1.0 / visits) * ((np.interp(after, means, value) + beyond) @ weights)
        indices.append(-float(np.interp(0.0, going_on, means)))
        value = np.maximum(going_on, 0.0)
    return indices[::-1][:ratings]


@pytest.mark.parametrize("visits", [10, 30])
def test_what_it_is_worth_to_try_is_near_the_index_of_gittins(visits: int) -> None:
    """But for the factor of the noise, which is half as large in his index."""
    for n, index in enumerate(gittins_indices(visits, visits), start=1):
        noise = 0.4 / LOOKS
        assert math.sqrt(noise * worth_of(1.0 / (n * noise), visits)) == pytest.approx(index, rel=0.13)


def test_noise_shortens_the_time_as_the_policy_says() -> None:
    """As in the docstring of mean-field: √v q(N v / (v + 0.8 s²)), here with s² = 1."""
    for variance, visits in ((0.1, 30.0), (2.0, 10.0)):
        expected = math.sqrt(variance) * worth(visits * variance / (variance + 0.8), 1.0)
        assert math.sqrt(worth_of(variance, visits)) == pytest.approx(expected, rel=1e-9)


def test_limits() -> None:
    assert bonus(1e-4, 5.0) == pytest.approx(1e-2, rel=1e-3)
    assert bonus(1e6, 2.0) == pytest.approx(2.0, rel=1e-3)
    assert bonus(1.0, -1.0) == bonus(0.0, 1.0) == 0.0
    assert worth_of(0.0, 9.0) == 0.0
    assert math.sqrt(worth_of(4e6, 9.0)) == pytest.approx(2e3 * worth(9.0, 1.0), rel=1e-5)
    assert worth(21.0, 7.0) == pytest.approx(worth(3.0, 1.0))
