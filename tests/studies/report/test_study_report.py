"""The finished part of a study, as tables and as the numbers of figures."""

import csv
from pathlib import Path

import numpy as np
import pytest

from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Bernoulli, Uniform
from albatross.metrics.ndcg import NDCG
from albatross.policies.item_mean import ItemMean
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random
from albatross.studies.comparison import compare
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.report.comparison import comparison_blocks, headline
from albatross.studies.report.series import comparison_series, study_charts, study_tradeoffs, write_series
from albatross.studies.report.study import compare_policies, summarize
from albatross.studies.runner import finish
from albatross.studies.showing import interval_note
from albatross.studies.trials import run

WORLDS = {"uniform": Uniform(n_users=5, n_items=6), "bernoulli": Bernoulli(n_users=5, n_items=6)}
POLICIES = (Random(), ItemMean(), ItemMean(shrunk=True))
STUDY = Study("small", 60, (0, 1, 2), NDCG(), tuple(Cell(name, world, policy) for name, world in WORLDS.items() for policy in POLICIES))


@pytest.fixture
def finished(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path)
    finish([STUDY], journal, jobs=1)
    return journal


def with_only(folder: Path, *wanted: tuple[str, int]) -> Journal:
    """A journal of these policies and seeds on uniform data."""
    journal = Journal(folder)
    for trial in STUDY.trials():
        if trial.dataset == "uniform" and (trial.policy.policy_name(), trial.seed) in wanted:
            journal.add(trial, run(trial))
    return journal


def test_a_summary_has_a_block_per_data_set_and_a_line_per_policy(finished: Journal) -> None:
    summary = summarize(STUDY, finished)
    assert summary.title.splitlines() == ["small: 60 steps with repeats", f"({interval_note(3)})"]
    assert summary.headings[3] == "95 % t-interval"
    assert list(summary.blocks) == ["uniform", "bernoulli"]
    for name, rows in summary.blocks.items():
        assert [row[0] for row in rows] == ["random", "item-mean", "item-mean shrunk=true"]
        assert {len(row) for row in rows} == {len(summary.headings)}
        assert {row[1] for row in rows} == {"3/3"}
        regret = [finished[trial].regret[-1] for trial in STUDY.trials() if (trial.dataset, trial.policy) == (name, Random())]
        assert rows[0][2] == f"{np.mean(regret):,.1f}"


def test_what_is_not_finished_has_dashes(tmp_path: Path) -> None:
    rows = summarize(STUDY, with_only(tmp_path, ("random", 1))).blocks["uniform"]
    assert rows[0][1] == "1/3"
    assert rows[0][3] == "–", "one seed has no interval"
    assert rows[1][1:] == ["0/3", "–", "–", "–", "–"]


def test_a_policy_is_compared_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    journal = with_only(tmp_path, ("random", 0), ("random", 1), ("item-mean", 1), ("item-mean", 2))
    only = Study("small", 60, STUDY.seeds, STUDY.ndcg, STUDY.cells[:2])
    (rows,) = compare_policies(only, journal, "random", [30, 60]).blocks.values()
    assert [row[0] for row in rows] == ["regret at 30", "regret at 60", "NDCG@5"]
    ours, theirs = (journal[trial].regret[-1] for trial in only.trials() if trial.seed == 1)
    assert rows[1][1:] == [f"{ours:z.0f} [–]", f"{theirs:z.0f}", f"{ours - theirs:z.0f} [–]", "item-mean"]


def test_policies_that_share_no_seed_cannot_be_compared(tmp_path: Path) -> None:
    journal = with_only(tmp_path, ("random", 0), ("item-mean", 1))
    with pytest.raises(InvalidInput, match="uniform: nothing is finished that could be compared"):
        compare_policies(STUDY, journal, "random")


def test_charts_are_the_results(finished: Journal, tmp_path: Path) -> None:
    charts = study_charts(STUDY, finished)
    assert [chart.title for chart in charts] == ["uniform", "bernoulli"]
    series = charts[0].series[0]
    results = list(finished.finished(STUDY.trials_of(STUDY.cells[0])).values())
    assert series.label == "random"
    assert series.seeds.tolist() == [result.regret.tolist() for result in results]
    assert (series.low <= series.mean).all()
    assert (series.mean <= series.high).all()
    write_series(charts, tmp_path / "figure.csv")
    rows = list(csv.DictReader((tmp_path / "figure.csv").read_text().splitlines()))
    assert len(rows) == 2 * 3 * 60
    assert float(rows[59]["mean"]) == series.mean[-1]


def test_a_tradeoff_needs_one_policy_per_value(finished: Journal, tmp_path: Path) -> None:
    uniform, bernoulli = study_tradeoffs(STUDY, finished, "shrunk")
    assert (uniform.title, bernoulli.title) == ("uniform", "bernoulli")
    assert uniform.values == ["false", "true"]
    assert uniform.regret.mean.shape == uniform.seconds.high.shape == (2,)
    one_seed = study_tradeoffs(STUDY, with_only(tmp_path / "one", ("item-mean", 0)), "shrunk")
    assert one_seed[0].regret.low.tolist() == one_seed[0].regret.mean.tolist(), "an interval of no width"
    with pytest.raises(InvalidInput, match="Did you mean 'shrunk'"):
        study_tradeoffs(STUDY, finished, "shrink")


def test_nothing_finished_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no trial of this study is finished"):
        study_charts(STUDY, Journal(tmp_path))


def test_a_comparison_is_a_line_per_policy_and_a_series_each() -> None:
    comparison = compare(POLICIES, "uniform", WORLDS["uniform"], 60, [3, 4], jobs=1)
    assert headline(comparison).splitlines()[0] == "uniform: 5 users, 6 items; 60 steps with repeats, seeds 3–4"
    (rows,) = comparison_blocks(comparison).values()
    assert [row[0] for row in rows] == [series.label for series in comparison_series(comparison)]
    assert rows[0][1] == f"{comparison_series(comparison)[0].mean[-1]:,.1f}"


def test_who_is_told_more_stands_apart_and_is_no_rival(tmp_path: Path) -> None:
    comparison = compare((Oracle(), *POLICIES), "uniform", WORLDS["uniform"], 60, [3, 4], jobs=1)
    blocks = comparison_blocks(comparison)
    assert list(blocks) == ["nothing", "the truth"]
    assert [row[0] for row in blocks["the truth"]] == ["oracle"]
    study = Study("small", 60, (0, 1), None, tuple(Cell("uniform", WORLDS["uniform"], policy) for policy in (Oracle(), *POLICIES)))
    journal = Journal(tmp_path)
    finish([study], journal, jobs=1)
    assert list(summarize(study, journal).blocks) == ["uniform", "uniform, told the truth"]
    (rows,) = compare_policies(study, journal, "random").blocks.values()
    assert rows[0][-1] != "oracle"
    (rows,) = compare_policies(study, journal, "oracle").blocks.values()
    assert rows[0][-1] in {"random", "item-mean", "item-mean shrunk=true"}
