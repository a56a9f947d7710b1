"""`albatross demo`, made short."""

import json
from pathlib import Path

import pytest

from albatross.cli import demo, main


def test_the_demo_explains_itself_and_leaves_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "HORIZON", 400)
    monkeypatch.setattr(demo, "N_SEEDS", 2)
    assert main(["demo"]) == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "nobody has rated yet" in output
    for name in ("regret.png", "regret.json"):
        path = Path("out") / "demo" / name
        assert str(path) in output
        assert path.stat().st_size > 0
    content = json.loads((tmp_path / "out" / "demo" / "regret.json").read_text())
    alb, random, oracle = (policy["runs"][0]["pseudo_regret"][-1] for policy in content["policies"])
    assert oracle == 0.0
    assert alb > 0.0
    assert random > 0.0
    assert content["policies"][0]["parameters"]["ridge"] == 0.01
    assert content["policies"][0]["parameters"]["noise"] == 0.5
