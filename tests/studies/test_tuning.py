"""Parameters are chosen by the mean over seeds."""

import tomllib
from pathlib import Path

import numpy as np

from albatross.environments.synthetic import Uniform
from albatross.policies.alb import ALB
from albatross.policies.nmf_bandit import NMFBandit
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Choice, Study
from albatross.studies.reproducing.paper import N_SEEDS, TUNING_SEEDS
from albatross.studies.runner import finish_tuned
from albatross.studies.trials import Result
from albatross.studies.tuning import best_parameters, settle, write_parameters

WORLD = Uniform(n_users=5, n_items=6)


def ended_with(regret: float) -> Result:
    curve = np.array([0.0, regret])
    return Result(np.array([1, 2]), curve, curve, np.empty(0), 0.0, {}, 1.0, "state")


def journal_of(folder: Path, outcomes: dict[Cell, list[float]]) -> tuple[Study, Journal]:
    """A study of these cells, each of which came to these regrets."""
    grid = Study("grid", 2, tuple(range(len(next(iter(outcomes.values()))))), None, tuple(outcomes))
    journal = Journal(folder)
    for cell, regrets in outcomes.items():
        for trial, regret in zip(grid.trials_of(cell), regrets, strict=True):
            journal.add(trial, ended_with(regret))
    return grid, journal


def test_the_least_mean_wins_and_not_the_luckiest_seed(tmp_path: Path) -> None:
    steady, lucky, tied = (Cell("films", WORLD, ALB(ridge=ridge)) for ridge in (0.1, 1.0, 10.0))
    outcomes = {lucky: [1.0, 12.0, 12.0], steady: [8.0, 8.0, 5.0], tied: [7.0, 7.0, 7.0]}
    assert best_parameters(*journal_of(tmp_path, outcomes)) == {"films": {"alb": {"ridge": 0.1}}}


def test_each_data_set_and_policy_has_its_own_and_reads_back(tmp_path: Path) -> None:
    small, large = (NMFBandit(set_size=size) for size in (5, 20))
    outcomes = {
        Cell("films", WORLD, small): [1.0],
        Cell("films", WORLD, large): [2.0],
        Cell("books", Uniform(n_users=7, n_items=8), small): [2.0],
        Cell("books", Uniform(n_users=7, n_items=8), large): [1.0],
    }
    tuned = best_parameters(*journal_of(tmp_path, outcomes))
    assert tuned == {"films": {"nmf-bandit": {"set_size": 5}}, "books": {"nmf-bandit": {"set_size": 20}}}
    write_parameters(tuned, tmp_path / "tuned.toml")
    assert tomllib.loads((tmp_path / "tuned.toml").read_text()) == tuned


def test_no_reported_number_comes_from_a_seed_of_the_tuning() -> None:
    assert not set(TUNING_SEEDS) & set(range(N_SEEDS))


CHOICE = Choice(tuple(Cell("films", WORLD, ALB(ridge=ridge)) for ridge in (0.1, 1.0)))
OPEN = Study("open", 20, (0, 1), None, (), (CHOICE,), tuning_seeds=(7, 8, 9), tuning_horizon=10)


def test_a_choice_is_settled_by_the_seeds_of_the_tuning_once_all_are_finished(tmp_path: Path) -> None:
    journal, trials = Journal(tmp_path), OPEN.tuning().trials()
    for trial, regret in zip(trials[:-1], (5.0, 5.0, 5.0, 1.0, 1.0), strict=True):
        journal.add(trial, ended_with(regret))
    assert settle(OPEN, journal) == OPEN, "one of them is missing"
    journal.add(trials[-1], ended_with(12.0))
    assert settle(OPEN, journal).choices == ()
    assert settle(OPEN, journal).cells == (Cell("films", WORLD, ALB(ridge=1.0)),)


def test_a_tuned_study_runs_its_grid_and_then_the_best_of_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    settled = finish_tuned(OPEN, journal, jobs=1)
    assert len(settled.cells) == 1
    assert len(journal.finished(OPEN.tuning().trials())) == 6
    assert [trial.seed for trial in journal.finished(settled.trials())] == [0, 1]
    written = journal.path.read_bytes()
    assert finish_tuned(OPEN, journal, jobs=1) == settled
    assert journal.path.read_bytes() == written, "nothing is run twice"
