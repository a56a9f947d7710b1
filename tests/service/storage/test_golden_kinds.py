"""Golden logs with kinds of events that came later: each opens for ever, and comes to what it came to."""

import json
import shutil
from pathlib import Path

import pytest
from kinds import LIVES, facts

from albatross import Recommender
from albatross.cli import main

GOLDEN = Path(__file__).parents[1] / "golden"


def test_there_is_a_log_of_every_life() -> None:
    assert {f"kinds-{name}" for name in LIVES} == {path.name for path in GOLDEN.glob("kinds-*")}


@pytest.mark.parametrize("name", LIVES)
def test_a_golden_log_comes_to_what_it_came_to(name: str, tmp_path: Path) -> None:
    source, folder = GOLDEN / f"kinds-{name}", tmp_path / "shop"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("facts.json"))
    known = json.loads((source / "facts.json").read_text())
    assert main(["verify", str(folder), "--decisions"]) == 0
    with Recommender(folder) as shop:
        assert json.loads(json.dumps(facts(shop, known["decision"]))) == known
