"""Repeated deliveries among new ones, in one group: new feedback is written without looking for its handle first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from albatross.policies.item_mean import ItemMean
from albatross.service.api.answers import Accepted
from albatross.service.api.errors import BadValue, EventReused
from albatross.service.api.requests import AskVersion, Feedback, Recommend, Request, SetRewards
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Ticket
from albatross.service.storage.store import Found

OPTIONS = Options(scale=(1, 5), policy=ItemMean(), events={"click": 1.0, "buy": 5.0})
FIRST = Feedback("first", 3, user="ann", item="tea")
NEW = Feedback("new", 4, user="bob", item="tea")


def settle(engine: Engine, *requests: Request[Any]) -> list[Any]:
    """The answers of one group, or the errors."""
    tickets = [Ticket(request, lambda _: None) for request in requests]
    engine._run_group(tickets)
    return [ticket.error or ticket.answer for ticket in tickets]


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        before = engine.ask(FIRST)
        other = Feedback("first", 5, user="ann", item="tea")
        again, decision, new, reused = settle(engine, FIRST, Recommend("ann"), NEW, other)
        assert again == Accepted(before.seq, True, True, decision.model_seq + 2)
        assert new == Accepted(decision.model_seq + 2, True, False, decision.model_seq + 2)
        assert isinstance(reused, EventReused)
        assert engine.ask(AskVersion("now")).ratings == 2
    with Engine(tmp_path / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(NEW).duplicate


def test_a_refusal_does_not_hide_that_it_is_a_repetition(tmp_path: Path) -> None:
    """The event had a reward when it came first. It has none any more."""
    click = Feedback("click", None, user="ann", item="tea", event="click")
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        before = engine.ask(click)
        _, again, unknown, new = settle(
            engine, SetRewards({"buy": 5.0}), click, Feedback("x", None, user="ann", item="tea", event="click"), NEW
        )
        assert (again.seq, again.duplicate) == (before.seq, True)
        assert isinstance(unknown, BadValue)
        assert not new.duplicate
        assert engine.ask(AskVersion("now")).ratings == 2


def test_new_feedback_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        engine.ask(FIRST)
        looked: list[Sequence[bytes]] = []
        find_all = engine._store.find_all

        def noted(handles: Sequence[bytes]) -> dict[bytes, Found]:
            looked.append(handles)
            return find_all(handles)

        monkeypatch.setattr(engine._store, "find_all", noted)
        assert not engine.ask(NEW).duplicate
        assert looked == []
        assert engine.ask(NEW).duplicate
        assert len(looked) == 1
