"""A study can be stopped anywhere and goes on from there."""

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Uniform
from albatross.kernels.compiling import source_fingerprint as fingerprint
from albatross.metrics.ndcg import NDCG
from albatross.policies.alb import ALB
from albatross.policies.random import Random
from albatross.studies.journal import JOURNAL, RESULTS, Journal, trial_key
from albatross.studies.trials import Trial, run

WORLD = Uniform(n_users=6, n_items=8)
TRIALS = [Trial(policy, WORLD, 50, seed, NDCG(), "uniform") for policy in (ALB(rank=2), Random()) for seed in range(3)]


def finished(folder: Path, trials: list[Trial]) -> Journal:
    journal = Journal(folder)
    for trial in trials:
        if trial not in journal:
            journal.add(trial, run(trial))
    journal.write_parquet(TRIALS)
    return journal


def test_a_result_read_back_is_the_result(tmp_path: Path) -> None:
    result = run(TRIALS[0])
    Journal(tmp_path).add(TRIALS[0], result)
    again = Journal(tmp_path)[TRIALS[0]]
    for name in ("checkpoints", "regret", "pseudo_regret", "ndcg"):
        assert getattr(again, name).tobytes() == getattr(result, name).tobytes()
    assert replace(again, **dict.fromkeys(("checkpoints", "regret", "pseudo_regret", "ndcg"))) == replace(  # type: ignore[arg-type]
        result,
        **dict.fromkeys(("checkpoints", "regret", "pseudo_regret", "ndcg")),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("share", [0.1, 0.37, 0.5, 0.83])
def test_killed_anywhere_and_resumed_it_gives_the_same_bytes(tmp_path: Path, share: float) -> None:
    finished(tmp_path / "whole", TRIALS)
    journal = (tmp_path / "whole" / JOURNAL).read_bytes()
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / JOURNAL).write_bytes(journal[: int(share * len(journal))])  # whatever had reached the disk
    finished(tmp_path / "killed", TRIALS)
    assert (tmp_path / "killed" / RESULTS).read_bytes() == (tmp_path / "whole" / RESULTS).read_bytes()
    keys = [json.loads(line)["key"] for line in (tmp_path / "killed" / JOURNAL).read_text().splitlines()]
    assert sorted(keys) == sorted(trial_key(trial) for trial in TRIALS), "each once"


def test_the_order_in_which_trials_end_does_not_matter(tmp_path: Path) -> None:
    finished(tmp_path / "forward", TRIALS)
    finished(tmp_path / "backward", TRIALS[::-1])
    assert (tmp_path / "forward" / RESULTS).read_bytes() == (tmp_path / "backward" / RESULTS).read_bytes()


def test_the_key_changes_with_everything_that_matters() -> None:
    trial = TRIALS[0]
    others = [
        replace(trial, seed=9),
        replace(trial, horizon=51),
        replace(trial, ndcg=None),
        replace(trial, policy=ALB(rank=3)),
        replace(trial, environment=Uniform(n_users=7, n_items=8)),
        replace(trial, environment=Uniform(n_users=6, n_items=8, repeats=False)),
    ]
    assert len({trial_key(each) for each in [trial, *others]}) == 1 + len(others)
    assert trial_key(replace(trial, dataset="another label")) == trial_key(trial)


def test_an_edited_policy_is_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(tmp_path, TRIALS)
    monkeypatch.setattr("albatross.studies.journal.source_fingerprint", lambda policy: "edited" if policy is ALB else fingerprint(policy))
    assert [trial in Journal(tmp_path) for trial in TRIALS] == [False] * 3 + [True] * 3


def test_a_finished_trial_is_on_disk_before_it_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, synced = Journal(tmp_path), []
    monkeypatch.setattr("os.fsync", lambda _: synced.append((TRIALS[0] in journal, (tmp_path / JOURNAL).stat().st_size > 0)))
    journal.add(TRIALS[0], run(TRIALS[0]))
    assert synced == [(False, True)]
    assert TRIALS[0] in journal


def test_the_table_is_the_results_one_row_per_checkpoint(tmp_path: Path) -> None:
    journal = finished(tmp_path, TRIALS[:2])
    query = f"SELECT seed, step, regret, ndcg, policy, protocol FROM '{tmp_path / RESULTS}' WHERE seed = 1"
    rows = duckdb.execute(query).fetchall()
    result = journal[TRIALS[1]]
    assert [(row[1], row[2], row[3]) for row in rows] == list(zip(result.checkpoints, result.regret, result.ndcg, strict=True))
    assert {row[4:] for row in rows} == {("alb", "with repeats")}


@pytest.mark.parametrize("name", ["it's.csv", "it's.parquet"])
def test_exported_it_is_the_same_table(name: str, tmp_path: Path) -> None:
    journal = finished(tmp_path / "journal", TRIALS[:2])
    journal.export(TRIALS, tmp_path / name)
    exported, kept = (
        duckdb.execute("SELECT policy, seed, step, regret FROM query_table([$1])", [str(file)]).fetchall()
        for file in (tmp_path / name, journal.folder / RESULTS)
    )
    assert exported == kept
    assert {path.name for path in tmp_path.iterdir()} == {name, "journal"}


def test_damage_in_the_middle_is_named_by_line(tmp_path: Path) -> None:
    finished(tmp_path, TRIALS[:3])
    lines = (tmp_path / JOURNAL).read_text().splitlines()
    (tmp_path / JOURNAL).write_text("\n".join([lines[0], lines[1][:100], lines[2], ""]))
    with pytest.raises(InvalidInput, match="line 2 is damaged"):
        Journal(tmp_path)


def test_nothing_finished_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no finished trial"):
        Journal(tmp_path).write_parquet(TRIALS)
    assert np.isnan(run(replace(TRIALS[0], ndcg=None)).trivial)
