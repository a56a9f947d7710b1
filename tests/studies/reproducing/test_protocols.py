"""Ours in every protocol: which trials, and against whom."""

import numpy as np
import pytest

from albatross.environments import create
from albatross.studies.reproducing.protocols import LEARNERS, Standing, protocol_studies, standing_of
from albatross.studies.statistics import Estimate
from albatross.studies.trials import Result


def result(regret: float) -> Result:
    curve = np.array([regret])
    return Result(np.array([50]), curve, curve, np.zeros(0), np.nan, {}, 0.1, "")


def test_every_protocol_has_every_data_set_once() -> None:
    environments = {name: create(name) for name in ("gaussian", "bernoulli")}
    studies = protocol_studies(environments, horizon=100, n_seeds=2)
    found = {protocol: {cell.dataset for cell in study.cells} for protocol, study in studies.items()}
    both = {"gaussian", "bernoulli"}
    assert found == {"repeats": both, "no-repeats": both, "clicks": {"gaussian"}, "clicks-no-repeats": {"gaussian"}}
    for study in studies.values():
        assert len(study.cells) == len(LEARNERS) * len({cell.dataset for cell in study.cells})
    assert all(cell.environment.parameters()["repeats"] is False for cell in studies["no-repeats"].cells)


def test_where_nothing_is_shown_twice_it_ends_when_everything_was_shown() -> None:
    studies = protocol_studies({"gaussian": create("gaussian")}, horizon=50_000, n_seeds=2)
    assert {study.cells[0].horizon for study in (studies["repeats"], studies["clicks"])} == {50_000}
    assert {study.cells[0].horizon for study in (studies["no-repeats"], studies["clicks-no-repeats"])} == {200 * 200}


def test_the_rival_is_the_best_of_the_others() -> None:
    regrets = {
        "mean-field": (90.0, 110.0),
        "greedy": (120.0, 160.0),
        "shrunk item mean": (150.0, 110.0),
        "popularity with memory": (300.0, 1.0),
    }
    found = standing_of("gaussian", "clicks", {name: [result(value) for value in values] for name, values in regrets.items()})
    assert (found.rival, found.rival_regret, found.regret, found.steps) == ("shrunk item mean", 130.0, 100.0, 50)
    assert found.difference.mean == -30.0


@pytest.mark.parametrize(("rival", "difference", "expected"), [(50.0, -10.0, 0.8), (0.0, 0.0, 1.0)])
def test_the_ratio_is_to_the_rival(rival: float, difference: float, expected: float) -> None:
    estimate = Estimate(*(np.asarray(difference + away) for away in (0.0, -5.0, 5.0)))
    assert Standing("gaussian", "clicks", 50, rival + difference, "greedy", rival, estimate).ratio().mean == pytest.approx(expected)
