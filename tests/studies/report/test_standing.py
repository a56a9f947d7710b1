"""Which policy wins where, from known results."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from albatross.environments.synthetic import Bernoulli, Uniform
from albatross.metrics.ndcg import NDCG
from albatross.policies.item_mean import ItemMean
from albatross.policies.item_ucb import ItemUCB
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.report.document import as_markdown
from albatross.studies.report.standing import as_blocks, mean_ranks, standings
from albatross.studies.trials import Result

WORLDS = {"uniform": Uniform(n_users=5, n_items=6), "bernoulli": Bernoulli(n_users=5, n_items=6)}
REGRETS = {
    "uniform": {"random": 900.0, "item-mean": 100.0, "item-ucb": 300.0},
    "bernoulli": {"random": 800.0, "item-mean": 90.0, "item-ucb": 50.0},
}
POLICIES = (Random(), ItemMean(), ItemUCB())


def curve(regret: float) -> Result:
    values = np.array([regret / 2, regret])
    return Result(np.array([50, 100]), values, values, np.empty(0), 0.0, {}, 2.0, "state")


def finished(folder: Path, n_seeds: int = 5, told: bool = False, missing: str = "") -> tuple[Study, Journal]:
    policies = (*POLICIES, Oracle()) if told else POLICIES
    cells = tuple(Cell(name, world, policy) for name, world in WORLDS.items() for policy in policies)
    study, journal = Study("who", 100, tuple(range(n_seeds)), None, cells), Journal(folder)
    for trial in study.trials():
        name = trial.policy.policy_name()
        if (trial.dataset, name) != ("bernoulli", missing):
            journal.add(trial, curve(REGRETS[trial.dataset].get(name, 0.0) + trial.seed))
    return study, journal


def test_policies_stand_in_the_order_of_their_regret(tmp_path: Path) -> None:
    summary = standings(*finished(tmp_path), at=[50])
    assert [row[:2] for row in summary.blocks["uniform"]] == [["item-mean", "1"], ["item-ucb", "2"], ["random", "3"]]
    assert [row[0] for row in summary.blocks["bernoulli"]] == ["item-ucb", "item-mean", "random"]
    assert summary.headings == ["policy", "rank", "regret at 50", "at the end", "s/trial"]
    assert summary.blocks["uniform"][0][2:] == ["51", "102 [101, 103]", "2.00"]


def test_who_is_told_more_is_ranked_apart(tmp_path: Path) -> None:
    study, journal = finished(tmp_path, told=True)
    summary = standings(study, journal)
    assert list(summary.blocks) == ["uniform", "uniform, told the truth", "bernoulli", "bernoulli, told the truth"]
    assert [row[0] for row in mean_ranks([(study, journal)]).blocks["all"]] == ["item-mean", "item-ucb", "random"]


def test_mean_ranks_are_over_data_sets(tmp_path: Path) -> None:
    summary = mean_ranks([finished(tmp_path)])
    assert summary.title == "Mean rank among 3 policies over 2 data sets and protocols"
    assert summary.blocks["all"] == [
        ["item-mean", "1.5 [1.5, 1.5]", "1.0", "2.0", "1"],
        ["item-ucb", "1.5 [1.5, 1.5]", "1.0", "2.0", "1"],
        ["random", "3.0 [3.0, 3.0]", "3.0", "3.0", "–"],
    ]


def test_a_data_set_on_which_somebody_is_missing_does_not_count(tmp_path: Path) -> None:
    summary = mean_ranks([finished(tmp_path, missing="random")])
    assert "over 1 data sets" in summary.title
    assert [row[1] for row in summary.blocks["all"]] == ["1.0 [1.0, 1.0]", "2.0 [2.0, 2.0]", "3.0 [3.0, 3.0]"]


def test_few_seeds_have_no_interval_of_ranks(tmp_path: Path) -> None:
    study, journal = finished(tmp_path, n_seeds=3)
    assert [row[1] for row in mean_ranks([(study, journal)]).blocks["all"]] == ["1.5", "1.5", "3.0"]
    assert "too few for a verdict" in standings(study, journal).title


def test_a_summary_is_part_of_a_document(tmp_path: Path) -> None:
    text = as_markdown(as_blocks(standings(*finished(tmp_path))))
    assert text.startswith("### uniform\n\n| policy | rank | at the end | s/trial |")
    assert "| item-ucb | 1 | 52 [51, 53] | 2.00 |" in text


def test_a_data_set_without_rankings_has_a_dash(tmp_path: Path) -> None:
    study, journal = finished(tmp_path)
    cells = tuple(replace(cell, ranked=False) for cell in study.cells)
    summary = standings(replace(study, ndcg=NDCG(), cells=cells), journal)
    assert summary.headings[-2] == "NDCG"
    assert {row[-2] for row in summary.blocks["uniform"]} == {"–"}
