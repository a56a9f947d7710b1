"""Exponents of power laws, with intervals and verdicts."""

from pathlib import Path

import numpy as np
import pytest

from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Gaussian, Uniform
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.reproducing.growth import NO_VERDICT, NOT_SUBLINEAR, SUBLINEAR, UNDECIDED, measure_growth, power
from albatross.studies.trials import Result

SIZES = (50, 100, 200, 400)


def ended(regret: float, horizon: int = 100, exponent: float = 1.0) -> Result:
    steps = np.arange(1, 101) * horizon // 100
    curve = regret * (steps / horizon) ** exponent
    return Result(steps, curve, curve, np.empty(0), 0.0, {}, 1.0, "state")


def along_users(folder: Path, exponents: dict[str, float], n_seeds: int = 6, spread: float = 0.05) -> tuple[Study, Journal]:
    """Regret is size^exponent, times a little noise per seed."""
    policies = {"random": Random(), "item-mean": ItemMean()}
    cells = tuple(Cell(f"{n} users", Gaussian(n_users=n), policies[name]) for name in exponents for n in SIZES)
    study, journal, random = Study("users", 100, tuple(range(n_seeds)), None, cells), Journal(folder), np.random.default_rng(0)
    for cell in cells:
        for trial in study.trials_of(cell):
            noise = 1.0 + spread * random.normal()
            journal.add(trial, ended(cell.environment.n_users ** exponents[cell.policy.policy_name()] * noise))
    return study, journal


def test_the_power_of_a_law() -> None:
    sizes = np.array([10.0, 30.0, 200.0])
    assert power(sizes, 7.0 * sizes**0.4) == pytest.approx(0.4)


def test_along_users_each_policy_has_its_exponent_and_verdict(tmp_path: Path) -> None:
    growth = measure_growth(*along_users(tmp_path, {"random": 1.3, "item-mean": 0.6}))
    assert growth.axis == "n_users"
    worse, better = growth.laws
    assert (worse.policy, worse.sizes.tolist(), worse.n_seeds) == ("random", list(SIZES), 6)
    for law, exponent in ((worse, 1.3), (better, 0.6)):
        assert law.exponent.low < law.exponent.mean < law.exponent.high
        assert float(law.exponent.mean) == pytest.approx(exponent, abs=0.05)
    assert (worse.verdict, better.verdict) == (NOT_SUBLINEAR, SUBLINEAR)
    assert better.regret.mean == pytest.approx([size**0.6 for size in SIZES], rel=0.1)


def test_an_interval_around_one_decides_nothing(tmp_path: Path) -> None:
    assert measure_growth(*along_users(tmp_path, {"random": 1.0}, spread=0.3)).laws[0].verdict == UNDECIDED


def test_few_seeds_have_no_verdict(tmp_path: Path) -> None:
    (law,) = measure_growth(*along_users(tmp_path, {"random": 0.5}, n_seeds=4)).laws
    assert law.verdict == NO_VERDICT
    assert np.isnan(law.exponent.low)


def test_one_world_is_looked_at_along_time(tmp_path: Path) -> None:
    study = Study("time", 1000, (0, 1, 2, 3, 4), None, (Cell("gaussian", Gaussian(), Random()),))
    journal = Journal(tmp_path)
    for trial, exponent in zip(study.trials(), (0.45, 0.5, 0.5, 0.5, 0.55), strict=True):
        journal.add(trial, ended(80.0, 1000, exponent))
    growth = measure_growth(study, journal)
    (law,) = growth.laws
    assert growth.axis == "steps"
    assert float(law.exponent.mean) == pytest.approx(0.5)
    assert 0.45 <= law.exponent.low < law.exponent.high <= 0.55
    assert law.verdict == SUBLINEAR
    assert law.sizes[-1] == 1000


def test_worlds_that_differ_in_more_than_one_number_are_refused(tmp_path: Path) -> None:
    worlds = (Uniform(n_users=5, n_items=6), Uniform(n_users=6, n_items=7))
    study = Study("both", 10, (0,), None, tuple(Cell(f"{world.n_users}", world, Random()) for world in worlds))
    with pytest.raises(InvalidInput, match="differ in n_users, n_items"):
        measure_growth(study, Journal(tmp_path))


def test_nothing_finished_is_refused(tmp_path: Path) -> None:
    study = Study("time", 10, (0,), None, (Cell("gaussian", Gaussian(), Random()),))
    with pytest.raises(InvalidInput, match="no trial of this study is finished"):
        measure_growth(study, Journal(tmp_path))
