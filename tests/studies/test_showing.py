"""Policies and estimates read the same everywhere."""

import math

import numpy as np
import pytest

from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.studies.showing import label, show_estimate, show_interval, show_mean, show_number
from albatross.studies.statistics import Estimate


def estimate(mean: float, low: float, high: float) -> Estimate:
    return Estimate(*np.array([mean, low, high]))


def test_nothing_is_below_zero_by_less_than_is_printed() -> None:
    assert show_estimate(estimate(-0.3, -1234.6, 0.2)) == "0 [-1,235, 0]"
    assert show_estimate(estimate(-0.00001, -0.0004, 0.5), 4) == "0.0000 [-0.0004, 0.5000]"
    assert show_interval(estimate(0.0, -0.04, 0.04)) == "0.0 – 0.0"
    assert show_number(-0.2, 0) == "0"


def test_one_seed_has_no_interval() -> None:
    assert show_interval(estimate(5.0, math.nan, math.nan)) == "–"
    assert show_estimate(estimate(5.0, math.nan, math.nan)) == "5 [–]"
    assert show_mean([5.0], 2) == "5.00 [–]"


def test_digits_are_those_asked_for_or_fit_the_size() -> None:
    assert show_interval(estimate(999.0, 998.25, 1000.25)) == "998.2 – 1,000"
    assert show_interval(estimate(1.0, 0.25, 2.0), 3) == "0.250 – 2.000"
    assert show_mean([7.0, 7.0, 7.0], 1) == "7.0 [7.0, 7.0]"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Random(), "random"),
        (ALB(), "alb"),
        (ALB(ridge=0.01, rank=2), "alb rank=2 ridge=0.01"),
        (ItemMean(shrunk=True), "item-mean shrunk=true"),
    ],
)
def test_a_policy_is_called_by_what_is_unusual_about_it(policy: ALB | Random | ItemMean, words: str) -> None:
    assert label(policy) == words
