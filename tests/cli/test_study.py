"""`albatross study`, run, stopped, resumed and extended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from albatross.cli import main
from albatross.studies.execution import execute
from albatross.studies.journal import JOURNAL, RESULTS, Journal
from albatross.studies.plan import read_study
from albatross.studies.showing import label
from albatross.studies.trials import Result

STUDY = """
horizon = 60
seeds = {seeds}
datasets = [{{ name = "uniform", n_users = 5, n_items = 6 }}]

[[policies]]
name = "random"

[[policies]]
name = "item-mean"
shrunk = [true, false]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(STUDY.format(seeds=2))
    return path


def test_a_finished_study_runs_nothing_and_more_seeds_run_only_what_is_new(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["study", "run", str(file), "--folder", str(tmp_path / "out"), "--jobs", "1"]
    assert main(command) == 0
    journal = tmp_path / "out" / JOURNAL
    first = journal.read_bytes()
    results = (tmp_path / "out" / RESULTS).read_bytes()
    assert len(first.splitlines()) == 6
    assert main(command) == 0
    assert journal.read_bytes() == first
    assert (tmp_path / "out" / RESULTS).read_bytes() == results
    file.write_text(STUDY.format(seeds=3))
    assert main(command) == 0
    assert journal.read_bytes().startswith(first)
    assert len(journal.read_bytes().splitlines()) == 9
    output = capsys.readouterr().out
    assert "6 of 9 trials are finished already" in output
    assert "with repeats" in output


def test_show_and_export_need_no_second_run(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(tmp_path / "out")]
    assert main(["study", "show", str(file), *folder]) == 0
    assert "0/2" in capsys.readouterr().out
    assert main(["study", "run", str(file), *folder, "--jobs", "1"]) == 0
    for name in ("table.parquet", "table.csv"):
        assert main(["study", "export", str(file), str(tmp_path / name), *folder]) == 0
        rows = duckdb.execute(f"SELECT count(*), count(DISTINCT key) FROM '{tmp_path / name}'").fetchall()
        assert rows == [(6 * 60, 6)]
    assert main(["study", "export", str(file), str(tmp_path / "table.txt"), *folder]) == 2
    assert "accepted: a name ending in .parquet or .csv" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--along", "shrunk"]], ids=["curves", "trade-off"])
def test_a_figure_of_what_is_finished(arguments: list[str], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(tmp_path / "out")]
    target = tmp_path / "figure.svg"
    assert main(["study", "figure", str(file), str(target), *arguments, *folder]) != 0
    assert "no trial of this study is finished" in capsys.readouterr().err
    assert main(["study", "run", str(file), *folder, "--jobs", "1"]) == 0
    assert main(["study", "figure", str(file), str(target), *arguments, *folder]) == 0
    drawn = target.read_text()
    assert drawn.startswith("<?xml")
    assert "uniform" in drawn
    assert ("seconds per trial" in drawn) == bool(arguments)


def test_a_figure_that_cannot_be_drawn_is_refused_with_a_sentence(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(tmp_path / "out")]
    assert main(["study", "run", str(file), *folder, "--jobs", "1"]) == 0
    for arguments, sentence in (
        (["x.bmp"], "accepted: a name ending in .png, .svg, .pdf"),
        (["x.png", "--along", "shrunken"], "Did you mean 'shrunk'?"),
    ):
        assert main(["study", "figure", str(file), *arguments, *folder]) != 0
        assert sentence in capsys.readouterr().err


def test_a_bad_study_is_refused_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(STUDY.format(seeds=2).replace("random", "rndom"))
    assert main(["study", "run", str(path)]) == 2
    assert "Did you mean 'random'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["study", "run", "small.toml"], ["reproduce", "--synthetic"]], ids=["study", "reproduce"])
def test_no_process_at_all_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--jobs", "0"]) == 2
    assert "--jobs is 0; accepted: a whole number, at least 1" in capsys.readouterr().err


def test_an_interrupted_study_keeps_what_is_finished(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["study", "run", str(file), "--folder", str(tmp_path / "out"), "--jobs", "1"]

    def interrupted(*arguments: Any) -> Iterator[tuple[int, Result]]:
        yield next(execute(*arguments))
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr("albatross.studies.runner.execute", interrupted)
        assert main(command) == 130
    assert "1 of 6 trials are finished and kept" in capsys.readouterr().err
    assert main(command) == 0
    assert "1 of 6 trials are finished already" in capsys.readouterr().out
    assert len((tmp_path / "out" / JOURNAL).read_bytes().splitlines()) == 6


def test_compare_pairs_a_policy_with_the_best_of_the_others(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(tmp_path / "out")]
    command = ["study", "compare", str(file), "random", *folder]
    assert main(command) == 2
    assert "nothing is finished" in capsys.readouterr().err
    assert main(["study", "run", str(file), *folder, "--jobs", "1"]) == 0
    capsys.readouterr()
    journal = Journal(tmp_path / "out")
    regret = {
        label(cell.policy): [
            journal[trial].regret for trial in read_study(file).trials() if (trial.policy, trial.dataset) == (cell.policy, cell.dataset)
        ]
        for cell in read_study(file).cells
    }
    final = {name: np.mean([curve[-1] for curve in curves]) for name, curves in regret.items()}
    best = min((name for name in final if name != "random"), key=lambda name: final[name])
    assert main([*command, "--at", "60", "--at", "30"]) == 0
    output = capsys.readouterr().out
    line = next(line for line in output.splitlines() if "regret at 60" in line)
    assert f"{final['random']:,.0f} [" in line
    assert f"{final['random'] - final[best]:,.0f} [" in line
    assert line.rstrip().endswith(best)
    assert "regret at 30" in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["oracle"], "accepted: random, item-mean shrunk=true, item-mean"), (["random", "--at", "61"], "steps from 1 to the horizon, 60")],
)
def test_compare_says_what_it_accepts(
    file: Path, tmp_path: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "compare", str(file), *arguments, "--folder", str(tmp_path / "out")]) == 2
    assert complaint in " ".join(capsys.readouterr().err.split())


TUNED = """
horizon = 60
seeds = 5
datasets = [{ name = "uniform", n_users = 5, n_items = 6, label = "five" }, { name = "uniform", n_users = 8, n_items = 6, label = "eight" },
            { name = "uniform", n_users = 12, n_items = 6, label = "twelve" }]
tuning = { seeds = [100, 101] }

[[policies]]
name = "random"

[[policies]]
name = "item-mean"
tune = { shrunk = [true, false] }
"""


def test_a_tuned_study_is_run_shown_ranked_and_its_growth_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "tuned.toml", tmp_path / "out"
    file.write_text(TUNED)
    assert main(["study", "run", str(file), "--folder", str(out / "tuned"), "--jobs", "1"]) == 0
    assert "Tuning: 12 trials on seeds of their own." in capsys.readouterr().out
    assert len((out / "tuned" / JOURNAL).read_bytes().splitlines()) == 12 + 30
    assert main(["study", "rank", str(file), "--folder", str(out), "--at", "30"]) == 0
    printed = capsys.readouterr().out
    assert "Mean rank among 2 policies over 3 data sets" in printed
    assert "regret at 30" in printed
    table = tmp_path / "rank.md"
    assert main(["study", "rank", str(file), "--folder", str(out), "--markdown", str(table)]) == 0
    assert "### twelve" in table.read_text()
    capsys.readouterr()
    figure = tmp_path / "growth.png"
    assert main(["study", "growth", str(file), "--folder", str(out), "--figure", str(figure)]) == 0
    printed = capsys.readouterr().out
    assert "regret grows as a power of users" in printed
    assert figure.stat().st_size > 1000
    assert main(["study", "growth", str(file), "--folder", str(out), "--figure", str(tmp_path / "growth.txt")]) == 2


def test_what_is_not_tuned_yet_is_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(TUNED)
    assert main(["study", "show", str(file), "--folder", str(tmp_path / "none")]) == 0
    shown = capsys.readouterr()
    assert "3 policies are not tuned yet and left out" in shown.err
    assert "item-mean" not in shown.out
