"""Decisions without a rating leave the log after a time; the result of the log stays the same."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.service.api.errors import UnknownDecision
from albatross.service.api.requests import AskVersion, ListEvents, ListItems, ViewDecision
from albatross.service.engine import group
from albatross.service.engine.learned import retention
from albatross.service.settings.kinds import TIME
from albatross.service.storage import snapshots


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, for the engine."""
    now = [1000.0]
    for module in (group, retention):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    return now


def shop(folder: Path, **options: Any) -> Recommender:
    return Recommender(folder, (1, 5), policy=ALB(rank=2), retention=3600.0, **options)


def looked(here: Recommender) -> int:
    """How many rows the log has once the engine has looked: it does so behind every group."""
    here.ask(AskVersion("none"))
    return here.ask(AskVersion("none")).seq


def shown(here: Recommender) -> dict[str, int]:
    return {item.item: item.shown for item in here.ask(ListItems()).items}


def test_what_nobody_answered_in_time_is_dropped_and_what_was_answered_stays(tmp_path: Path, clock: list[float]) -> None:
    with shop(tmp_path / "shop") as here:
        answered = here.recommend("ann", candidates=["tea", "mate"])
        here.rate(answered, 4.0)
        silent = here.recommend("bob", 2, candidates=["tea", "mate"], request_id="once")
        clock[0] = 4599.0
        before = looked(here)
        clock[0] = 4601.0
        young = here.recommend("cleo", candidates=["tea", "cup"])
        assert looked(here) == looked(here) == before + 3  # the item, the decision, and one event that drops
        assert here.ask(ViewDecision(answered.decision_id)).items[0].rating == 4.0
        assert here.ask(ViewDecision(young.decision_id)).user == "cleo"
        with pytest.raises(UnknownDecision):
            here.rate(silent, 4.0, "tea")
        with pytest.raises(UnknownDecision):
            here.recommend("bob", 2, candidates=["tea", "mate"], request_id="once")
        rows = here.ask(ListEvents(20)).events
        assert [(row.kind, row.erased) for row in rows if row.kind == "expire"] == [("expire", 1)]
        assert "bob" not in str(rows)
        counted, state = shown(here), here.version().state_id
        assert here.version().decisions == 3
    for _ in range(2):  # from the snapshot at the end, then from the log alone
        with shop(tmp_path / "shop") as here:
            assert (shown(here), here.version().state_id, here.version().decisions) == (counted, state, 3)
        snapshots.remove_all(tmp_path / "shop")
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


def test_a_snapshot_from_before_serves_a_log_that_has_dropped_since(tmp_path: Path, clock: list[float]) -> None:
    folder = tmp_path / "shop"
    with shop(folder) as here:
        for number in range(5):
            here.recommend(f"user {number}", candidates=["tea", "mate"], request_id=str(number))
        here.rate(here.recommend("ann", candidates=["tea"]), 5.0)
        here.snapshot()
        here.recommend("dora", candidates=["tea"], request_id="later")
        kept = {path: path.read_bytes() for path in (folder / "snapshots").iterdir()}
        clock[0] = 9000.0
        looked(here)
        counted, state = shown(here), here.version().state_id
    snapshots.remove_all(folder)
    for path, content in kept.items():
        path.write_bytes(content)
    with shop(folder) as here:
        assert (shown(here), here.version().state_id) == (counted, state)
        assert not here.engine.complaints
    assert main(["verify", str(folder)]) == 0


def test_a_stranger_who_made_the_model_grow_may_be_dropped(tmp_path: Path, clock: list[float]) -> None:
    folder = tmp_path / "shop"
    with shop(folder, users=["ann", "bob"], items=["tea", "mate"]) as here:
        here.recommend("stranger")
        here.rate(here.recommend("ann"), 4.0)
        clock[0] = 9000.0
        looked(here)
        here.rate(here.recommend("cleo"), 2.0)
        state = here.version().state_id
    snapshots.remove_all(folder)
    with shop(folder) as here:
        assert here.version().state_id == state


def test_a_log_that_has_dropped_is_exported_replayed_and_forgets(tmp_path: Path, clock: list[float]) -> None:
    folder = tmp_path / "shop"
    with shop(folder) as here:
        here.recommend("bob", candidates=["tea", "mate"])
        here.rate(here.recommend("ann", candidates=["tea", "mate"]), 4.0)
        clock[0] = 9000.0
        looked(here)
    assert main(["export", str(folder), str(tmp_path / "events.jsonl")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [row["erased"] for row in rows if row["kind"] == "expire"] == [[4]]
    assert main(["replay", str(folder), str(tmp_path / "other"), "--policy", "item-mean"]) == 0
    assert main(["verify", str(tmp_path / "other")]) == 0
    assert main(["forget", str(folder), "ann"]) == 0
    assert main(["verify", str(folder)]) == 0
    with shop(folder) as here:
        assert sum(shown(here).values()) == 1


def test_without_a_retention_nothing_is_dropped(tmp_path: Path, clock: list[float]) -> None:
    with Recommender(tmp_path / "shop", (1, 5), policy=ALB(rank=2)) as here:
        decision = here.recommend("ann", candidates=["tea"])
        clock[0] = 1e9
        looked(here)
        here.rate(decision, 3.0)


def test_a_retention_that_is_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="retention is 0 seconds"):
        Recommender(tmp_path / "shop", (1, 5), retention=0.0)
    with pytest.raises(InvalidInput, match="--retention is '90'"):
        TIME.read("--retention", "90")
    assert not (tmp_path / "shop").exists()
