"""Finished trials, as claims want them."""

import numpy as np
import pytest

from albatross.studies.reproducing.evidence import exponents, weigh
from albatross.studies.trials import Result


def grown(power: float, factor: float = 1.0) -> Result:
    steps = np.arange(1, 101) * 10
    curve = np.asarray(factor * steps**power, np.float64)
    curve[:9] = 0.0  # the beginning is not looked at
    return Result(steps, curve, curve, steps / 1000.0, 0.0, {}, factor, "state")


def test_the_last_value_of_a_curve_counts_or_the_number_itself() -> None:
    evidence = weigh({("gaussian", "alb", 5, 1000): [grown(1.0), grown(1.0, 3.0)]}, 1000)
    assert evidence.regret("gaussian", "alb", 5).tolist() == [1000.0, 3000.0]
    assert evidence.ndcg("gaussian", "alb", 5).tolist() == [1.0, 1.0]
    assert evidence.seconds("gaussian", "alb", 5).tolist() == [1.0, 3.0]
    assert evidence.exponents[1000] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("power", [0.3, 0.5, 1.2])
def test_the_exponent_is_that_of_the_growth(power: float) -> None:
    assert exponents([grown(power, 2.0)]) == pytest.approx([power])
