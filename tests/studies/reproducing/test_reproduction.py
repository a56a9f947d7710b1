"""The paper's evaluation, made short: run, resumed, judged and written down, without a terminal and without Matplotlib."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from albatross.environments import PROTOCOLS
from albatross.studies.journal import JOURNAL
from albatross.studies.observer import Observer
from albatross.studies.report.figures import PaperFigure
from albatross.studies.report.paper import write_report
from albatross.studies.report.protocols import FIGURE
from albatross.studies.reproducing import paper
from albatross.studies.reproducing.protocols import LEARNERS, Standing
from albatross.studies.reproducing.reproduction import reproduce

GRIDS = {"alb": {"ridge": [0.01, 0.1]}, "pts": {"n_particles": [2, 3]}, "nmf-bandit": {"set_size": [5, 10]}}


def draw_standings(standings: Sequence[Standing], folder: Path) -> None:
    (folder / f"{FIGURE}.svg").write_text("<svg/>")


def draw(figure: PaperFigure, folder: Path) -> None:
    (folder / f"{figure.name}.svg").write_text("<svg/>")


@pytest.mark.xdist_group("reproduce")
def test_a_full_reproduction_is_tuned_told_resumed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paper, "SYNTHETIC", ("gaussian",))
    grids: dict[str, dict[str, list[float]]] = {
        "alb": {"ridge": [0.01, 0.1]},
        "pts": {"n_particles": [2, 3]},
        "nmf-bandit": {"set_size": [5, 10]},
    }
    monkeypatch.setattr(paper, "GRIDS", grids)
    monkeypatch.setattr(paper, "LONG_HORIZON", 2 * paper.HORIZON)
    news: list[str] = []
    found = reproduce(tmp_path, full=True, real=False, horizon=100, n_seeds=2, jobs=1, observer=Observer(tell=news.append))
    assert news[0].startswith("Tuning: 18 trials, about ")
    assert news[1] == "44 trials: 1 data sets, 2 seeds, 100 steps each."
    assert found.tuned["gaussian"]["alb"]["ridge"] in (0.01, 0.1)
    assert "[gaussian]" in (tmp_path / "tuned.toml").read_text()
    assert {verdict.where for verdict in found.verdicts} == {"gaussian", "all", "gaussian, 100 steps", "gaussian, 200 steps"}
    assert set(found.contenders["gaussian"]) == {paper.BEYOND, *paper.SIMPLE, *paper.RIVALS}

    page = write_report(found, tmp_path, draw, draw_standings)
    assert "data:image/svg+xml;base64," in page.read_text()
    text = (tmp_path / "report.md").read_text()
    assert "albatross reproduce --full --synthetic --horizon 100 --seeds 2" in text
    assert "ALB has lower regret than PTS" in text
    assert "## History" in text
    assert {standing.protocol for standing in found.standings} == set(PROTOCOLS)
    assert all(standing.rival in LEARNERS and standing.rival != paper.BEYOND for standing in found.standings)
    assert text.count("| Clicks, no repeats | Gaussian |") == 1
    assert (tmp_path / "figure-1.csv").stat().st_size > 0

    journal = (tmp_path / JOURNAL).read_bytes()
    again = reproduce(tmp_path, full=True, real=False, horizon=100, n_seeds=2, jobs=1)
    assert again.verdicts == found.verdicts
    assert (tmp_path / JOURNAL).read_bytes() == journal, "nothing is run twice"
    printed = capsys.readouterr()
    assert printed.out == ""
