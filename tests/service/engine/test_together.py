"""Decisions that are made together come to the same as one by one, to the bit."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.policies.pts import PTS
from albatross.service.api.answers import Answer, Decision, Explanation
from albatross.service.api.requests import Feedback, Recommend, Request, UpsertItem
from albatross.service.api.rules import Where
from albatross.service.engine import group as grouping
from albatross.service.engine.deciding import together
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Ticket

TEA = Where(attribute="kind", is_="tea")
NOTHING = Where(attribute="kind", is_="nothing")


def questions(draw: random.Random, round_: int) -> list[Request[Any]]:
    """A group of all sorts: known users and strangers, some of them twice, conditions, explanations, ratings in between."""
    asked: list[Request[Any]] = []
    for number in range(draw.randint(1, 24)):
        user = f"u{draw.randrange(14)}"  # of whom the last two are strangers
        kind = draw.randrange(12)
        if kind < 3:
            asked.append(Recommend(user))
        elif kind < 5:  # some of them twice, in this group or later, also with another content
            asked.append(Recommend(user, explain=draw.random() < 0.2, request_id=f"r{draw.randrange(60)}"))
        elif kind < 7:
            asked.append(Recommend(user, where=TEA, explain=draw.random() < 0.5))
        elif kind < 9:
            asked.append(Recommend(user, explain="reasons" if draw.random() < 0.5 else True))
        elif kind < 11 or round_ % 3:
            asked.append(Feedback(f"{round_} {number}", draw.randint(1, 5), user=user, item=f"i{draw.randrange(9)}"))
        else:
            asked.append(draw.choice([Recommend(user, 2), Recommend(user, where=NOTHING), Recommend(user, request_id="\n")]))
    return asked


def life(folder: Path, policy: Any, floor: float, rounds: int) -> list[Answer | str]:
    """What is answered, without the names that each life makes anew."""
    told: list[Answer | str] = []
    draw = random.Random(0)
    with Engine(folder, Options(scale=(1, 5), policy=policy, floor=floor)) as engine:
        engine.wait_ready()
        for user in range(12):
            engine.ask(Feedback(f"first {user}", 1 + user % 5, user=f"u{user}", item=f"i{user % 9}"))
        for item in range(9):
            engine.ask(UpsertItem(f"i{item}", attributes={"kind": "tea" if item % 2 else "coffee"}))
        for round_ in range(rounds):
            tickets = [Ticket(request, lambda _: None) for request in questions(draw, round_)]
            engine._run_group(tickets)
            for ticket in tickets:
                assert (ticket.answer is None) != (ticket.error is None)
                answer = ticket.answer
                told.append(replace(answer, decision_id="") if isinstance(answer, Decision) else answer or type(ticket.error).__name__)
    return told


@pytest.mark.parametrize("policy", [PTS(n_particles=5, rank=2), MeanField(rank=2), ItemMean()], ids=["pts", "mean-field", "item-mean"])
def test_together_is_as_one_by_one(policy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = 0

    def counted(*arguments: Any) -> Any:
        nonlocal decided
        outcomes = together.decide_together(*arguments)
        decided += sum(outcome is not None for outcome in outcomes)
        return outcomes

    monkeypatch.setattr(grouping, "decide_together", counted)
    one = life(tmp_path / "together", policy, 0.3, 40)
    assert (decided > 100) == (not isinstance(policy, ItemMean))  # which cannot suppose a rating
    monkeypatch.setattr(grouping, "decide_together", lambda _, requests, *__: [None] * len(requests))
    assert one == life(tmp_path / "one by one", policy, 0.3, 40)


def test_a_mistake_leaves_all_to_the_usual_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where half of the group was decided already: nobody is told of something that is not in the log."""

    def mistaken(*arguments: Any) -> Any:
        raise ZeroDivisionError

    expected = life(tmp_path / "sound", ALB(rank=2), 0.0, 8)
    monkeypatch.setattr(together, "explained", mistaken)
    assert life(tmp_path / "mistaken", ALB(rank=2), 0.0, 8) == expected


class Written(Ticket):
    """A ticket whose answer becomes JSON."""

    becomes_json = True


def test_an_explanation_in_json_says_the_same(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", Options(scale=(1, 5), policy=ALB(rank=2), floor=0.0)) as engine:
        engine.wait_ready()
        for number in range(12):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, user=f"u{number % 3}", item=f"i{number % 5}"))
        here, there = Ticket(Recommend("u0", explain=True), lambda _: None), Written(Recommend("u1", explain=True), lambda _: None)
        engine._run_group([here, there])
        there_again = engine.ask(Recommend("u1", explain=True, exclude_seen="pending"))
        assert isinstance(here.answer, Decision)
        assert isinstance(here.answer.explanation, Explanation)
        read = msgspec.json.decode(msgspec.json.encode(there.answer), type=Decision)
        assert read.explanation is not None
        assert there_again.explanation is not None
        assert read.explanation.ellipsoid == there_again.explanation.ellipsoid
        assert [one.item for one in read.explanation.items] == [read.item]
