"""`albatross demo`, made short."""

import json
import sys
from pathlib import Path

import pytest

from albatross.cli import demo, main
from albatross.kernels.compiling import cache_root


def test_the_demo_explains_itself_and_leaves_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "HORIZON", 400)
    monkeypatch.setattr(demo, "N_SEEDS", 2)
    monkeypatch.setattr(demo, "_command", lambda: "albatross")
    assert main(["demo"]) == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "without ratings" in output
    for name in ("regret.png", "regret.json"):
        path = Path("out") / "demo" / name
        assert str(path) in output
        assert path.stat().st_size > 0
    content = json.loads((tmp_path / "out" / "demo" / "regret.json").read_text())
    assert [policy["name"] for policy in content["policies"]] == ["mean-field", "alb", "popularity-memory", "random"]
    assert content["policies"][1]["parameters"]["ridge"] == 0.01
    assert all(policy["runs"][0]["pseudo_regret"][-1] > 0.0 for policy in content["policies"])
    assert "albatross serve" in output
    assert "First figure after" in output
    times = [line.split() for line in output.splitlines() if line.startswith("gaussian ")]
    assert [len(words) for words in times] == [5]
    *parts, whole = map(float, times[0][1:])
    assert sum(parts) == pytest.approx(whole, abs=0.21)  # each is rounded


def test_the_demo_names_a_command_that_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert demo._command() == str(Path(".venv") / "bin" / "albatross")


def test_the_demo_says_where_to_get_films_that_are_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "HORIZON", 400)
    monkeypatch.setattr(demo, "N_SEEDS", 2)
    monkeypatch.setenv("ALBATROSS_DATA", str(tmp_path))
    (tmp_path / "kernels").symlink_to(cache_root())  # compiled before
    monkeypatch.setenv("ALBATROSS_CACHE", str(tmp_path))
    assert main(["demo"]) == 0
    assert "MovieLens 100K is left out" in capsys.readouterr().out
