"""`albatross reproduce`, made short."""

import csv
from pathlib import Path

import pytest

from albatross.cli import main


@pytest.mark.xdist_group("reproduce")
def test_the_synthetic_part_leaves_a_report_with_every_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "--synthetic", "--horizon", "300", "--seeds", "2", "--folder", str(tmp_path), "--jobs", "1"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    page, text = ((tmp_path / name).read_text() for name in ("report.html", "report.md"))
    for claim in ("ALB has lower regret than PTS", "ALB has lower regret than NMF-Bandit", "ALB's regret grows more slowly"):
        assert claim in printed
        assert claim in text
    assert str(tmp_path / "report.html") in printed
    claims, _, beyond = text.partition("## Beyond the paper")
    assert "mean-field" not in claims
    assert "| Gaussian | mean-field |" in beyond
    assert "data:image/svg+xml;base64," in page
    assert 'src="http' not in page
    for kind in ("png", "svg", "pdf", "csv"):
        assert (tmp_path / f"figure-1.{kind}").stat().st_size > 0
    for kind in ("png", "svg", "pdf"):
        assert (tmp_path / f"protocols.{kind}").stat().st_size > 0
    assert "| No repeats | Bernoulli | 300 |" in beyond
    rows = list(csv.DictReader((tmp_path / "figure-1.csv").read_text().splitlines()))
    assert {row["panel"] for row in rows} == {"Gaussian", "Uniform", "Bernoulli"}
    assert list(dict.fromkeys(row["curve"] for row in rows)) == ["mean-field (ours)", "ALB", "PTS", "NMF-Bandit"]
    lines = (tmp_path / "journal.jsonl").read_bytes()
    assert main(command) == 0
    assert (tmp_path / "journal.jsonl").read_bytes() == lines, "nothing is run twice"


def test_too_little_to_say_anything_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--seeds", "1"]) == 2
    assert "--seeds is 1; accepted: a whole number, at least 2" in capsys.readouterr().err


@pytest.mark.parametrize(("engine", "module"), [("ray", "ray"), ("ray://127.0.0.1:1", "grpc")])
def test_without_ray_it_is_refused_before_anything_is_done(
    engine: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("albatross.studies.ray_engine.find_spec", lambda name: None if name == module else name)
    assert main(["reproduce", "--engine", engine, "--folder", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert f"the engine {engine} needs" in said.err
    assert said.out == ""
    assert not (tmp_path / "out").exists()
