"""The service and the simulation are one model: the same ratings give the same state id, live, replayed, and in another process."""

import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Place

from albatross import Agent, simulate
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from albatross.policies.oful import OFUL
from albatross.service.api.answers import Decision
from albatross.service.api.errors import UnknownDecision, UnknownItem
from albatross.service.api.requests import AskVersion, Feedback, FeedbackBatch, ForgetUser, Recommend, TakeSnapshot, UpsertItem
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.verifying import redecide
from albatross.service.storage import snapshots
from albatross.service.storage.home import Home
from albatross.service.storage.reading import decoded

import zoo

WORLD = Gaussian(n_users=20, n_items=15, rank=2)
SCALE = (-1e3, 1e3)
SERVABLE = {name: policy for name, policy in zoo.POLICIES.items() if not policy.asks() and policy.learns != "nothing"}


def ratings(policy: Policy, horizon: int) -> tuple[list[Feedback], str]:
    """What a simulation saw, and what it knew in the end."""
    recording = simulate(policy, WORLD, horizon, seed=0)
    steps = zip(recording.users.tolist(), recording.items.tolist(), recording.rewards.tolist(), strict=True)
    events = [Feedback(f"step {number}", reward, None, f"u{user}", f"i{item}") for number, (user, item, reward) in enumerate(steps)]
    return events, recording.state_id


def known(policy: Policy) -> Options:
    users = tuple(f"u{number}" for number in range(WORLD.n_users))
    return Options(policy=policy, scale=SCALE, items=tuple(f"i{number}" for number in range(WORLD.n_items)), users=users)


def state_of(home: Path | Home) -> str:
    with Engine(home) as engine:
        engine.wait_ready()
        assert not engine.complaints
        return str(engine.ask(AskVersion()).state_id)


@pytest.mark.parametrize("name", SERVABLE)
def test_fed_with_a_recorded_simulation_it_has_the_state_of_the_simulation(name: str, tmp_path: Path) -> None:
    events, expected = ratings(SERVABLE[name], 300)
    for part in (events[:150], events[150:]):  # the second half after a restart from a snapshot
        with Engine(tmp_path / "shop", known(SERVABLE[name])) as engine:
            engine.wait_ready()
            for start in range(0, 150, 37):
                for _ in range(2):  # the next rating user was shown something before, and has not answered
                    engine.ask(Recommend(str(part[start].user), n=2))
                engine.ask(FeedbackBatch(part[start : start + 37]))
            found = engine.ask(AskVersion()).state_id
    assert found == expected
    assert state_of(tmp_path / "shop") == expected
    snapshots.remove_all(tmp_path / "shop")
    assert state_of(tmp_path / "shop") == expected


def test_replay_in_another_process(tmp_path: Path) -> None:
    events, expected = ratings(ALB(rank=3), 1000)
    with Engine(tmp_path / "shop", known(ALB(rank=3))) as engine:
        engine.wait_ready()
        engine.ask(FeedbackBatch(events))
    snapshots.remove_all(tmp_path / "shop")
    program = f"from albatross import Recommender\nwith Recommender({str(tmp_path / 'shop')!r}) as shop: print(shop.version().state_id)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == expected


def test_however_it_is_batched_and_restarted_growth_comes_at_the_same_event(place: Place) -> None:
    """Three hundred users and two hundred items, from nothing: the rooms double on the way."""
    random = np.random.default_rng(0)
    events = [
        Feedback(f"e{number}", float(random.integers(1, 6)), None, f"u{random.integers(300)}", f"i{random.integers(200)}")
        for number in range(1500)
    ]
    options = Options(policy=ALB(rank=2), scale=(1, 5), snapshot_every=400)
    with Engine(place / "whole", options) as engine:
        engine.wait_ready()
        engine.ask(FeedbackBatch(events))
        expected = engine.ask(AskVersion()).state_id
    start = 0
    while start < len(events):
        stop = start + int(random.integers(1, 400))
        with Engine(place / "parts", options) as engine:
            engine.wait_ready()
            for future in [engine.submit(event) for event in events[start:stop]]:
                future.result()
            engine.ask(Recommend(f"somebody new {start}"))
        start = stop
    assert state_of(place / "parts") == expected
    snapshots.remove_all((place / "parts").folder)
    assert state_of(place / "parts") == expected


def test_an_agent_fed_the_same_ratings_agrees(tmp_path: Path) -> None:
    """By dense numbers in the order of appearance, with the room the service had."""
    with Engine(tmp_path / "shop", Options(policy=ALB(rank=2), scale=(1, 5), seed=7)) as engine:
        engine.wait_ready()
        for number in range(40):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, None, f"u{number % 6}", f"i{number % 11}"))
        found = engine.ask(AskVersion()).state_id
    agent = Agent(ALB(rank=2), n_users=64, n_items=64, seed=7)
    steps = np.arange(40)
    agent.replay(steps % 6, steps % 11, 1.0 + steps % 5)
    assert agent.state_id == found


@pytest.mark.parametrize("policy", [ALB(rank=2), zoo.POLICIES["alb-rs"], zoo.POLICIES["pts"]], ids=["alb", "alb-rs", "pts"])
def test_decisions_replay(policy: Policy, place: Place) -> None:
    """From the log alone each decision comes out again: items, scores and propensities, pending ones counted."""
    with Engine(place / "shop", Options(policy=policy, scale=(1, 5), floor=0.3)) as engine:
        engine.wait_ready()
        engine.ask(
            FeedbackBatch([Feedback(f"e{number}", 1 + number % 5, None, f"u{number % 4}", f"i{number % 9}") for number in range(30)])
        )
        waiting: list[Future[Any]] = []
        for number in range(60):
            waiting.append(engine.submit(Recommend(f"u{number % 6}", n=1 + number % 3, exclude=[f"i{number % 9}"])))
            waiting.append(engine.submit(Recommend(f"u{number % 6}", candidates=[f"i{number % 9}", f"new{number % 5}"])))
            waiting.append(engine.submit(Feedback(f"f{number}", 1 + number % 5, None, f"u{number % 5}", f"i{number % 9}")))
        decisions = [answer for answer in (future.result() for future in waiting) if isinstance(answer, Decision)]
    with Engine(place / "shop") as engine:
        engine.wait_ready()
        again = redecide(engine._store, engine.genesis)
    assert len(decisions) == 120
    assert again == (120, [], 0)


def test_forgetting_is_as_if_they_had_never_come(tmp_path: Path) -> None:
    def live(folder: Path, users: range) -> Engine:
        engine = Engine(folder, Options(policy=ALB(rank=2), scale=(1, 5), items=tuple(f"i{number}" for number in range(7))))
        engine.wait_ready()
        for number in range(60):
            if number % 6 in users:
                engine.ask(Feedback(f"e{number}", 1 + number % 5, None, f"u{number % 6}", f"i{number % 7}"))
        return engine

    with live(tmp_path / "without", range(1, 6)) as engine:
        expected = engine.ask(AskVersion()).state_id
    with live(tmp_path / "with", range(6)) as engine:
        decision = engine.ask(Recommend("u0"))
        engine.ask(TakeSnapshot())
        assert engine.ask(AskVersion()).state_id != expected
        assert engine.ask(ForgetUser("u0")).events == 11
        assert engine.ask(AskVersion()).state_id == expected
        again = engine.ask(Feedback("e0", 1, None, "u0", "i0"))
        assert (again.duplicate, again.applied) == (True, False)
        with pytest.raises(UnknownDecision):
            engine.ask(Feedback("late", 1, decision.decision_id))
    for path in (tmp_path / "with").rglob("*"):
        assert not path.is_file() or b'"u0"' not in path.read_bytes(), path
    assert state_of(tmp_path / "with") == expected
    snapshots.remove_all(tmp_path / "with")
    assert state_of(tmp_path / "with") == expected
    with Engine(tmp_path / "with") as engine:
        engine.wait_ready()
        names = {getattr(event, "user", None) for first, bodies in engine._store.read() for event in decoded(first, bodies)[1]}
        assert "u0" not in names
        assert "u1" in names


def test_oful_refuses_items_nobody_described(tmp_path: Path) -> None:
    """And the folder stays sound: what was refused is not in the log."""
    path = tmp_path / "features.npy"
    np.save(path, np.random.default_rng(0).normal(size=(5, 3)))
    items = tuple(f"i{number}" for number in range(5))
    with Engine(tmp_path / "shop", Options(policy=OFUL(features=str(path)), scale=(1, 5), items=items)) as engine:
        engine.wait_ready()
        for request in (Feedback("e", 3, None, "ann", "six"), UpsertItem("six"), Recommend("ann", candidates=["i1", "six"])):
            with pytest.raises(UnknownItem, match="describes 5 items"):
                engine.ask(request)
        engine.ask(Feedback("e", 3, None, "ann", "i4"))
        expected = engine.ask(AskVersion())
    with Engine(tmp_path / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()) == expected
        assert expected.items == 5


def test_oful_serves_with_features_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "features.npy"
    np.save(path, np.random.default_rng(0).normal(size=(64, 3)))
    with Engine(tmp_path / "shop", Options(policy=OFUL(features=str(path)), scale=(1, 5), floor=0.0)) as engine:
        engine.wait_ready()
        for number in range(20):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, None, "ann", f"i{number % 8}"))
        before = engine.ask(AskVersion()).state_id
        first, second = (engine.ask(Recommend("ann", explain=True)) for _ in range(2))
        assert first.explanation is not None
        assert first.explanation.ellipsoid is not None
        assert first.items[0].bonus == pytest.approx(first.explanation.items[0].width)
        shown = next((item for item in second.items if item.item == first.item), None)
        assert shown is None or shown.bonus < first.items[0].bonus
        assert engine.ask(AskVersion()).state_id == before
