"""Every request has a bounded cost, and what cannot be held is refused before it is written."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import Recommender
from albatross.core import memory
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.oful import OFUL
from albatross.service.api.errors import AlreadyRated, BadValue, NoMemory, UnknownDecision
from albatross.service.api.requests import AskVersion, Feedback, FeedbackBatch, Recommend, TakeSnapshot
from albatross.service.api.values import MOST_CANDIDATES, MOST_EVENTS, MOST_NEW_ITEMS
from albatross.service.engine import answering
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.standing import Standing
from albatross.service.storage.folder import LOG
from albatross.service.storage.snapshots import remove_all

OPTIONS = Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=0)

FORKED = """
import os, sys
from albatross import Recommender
from albatross.core.errors import InvalidInput
shop = Recommender(sys.argv[1], scale=(1, 5), policy="item-mean")
shop.rate_item("ann", "tea", 4)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        with shop:
            shop.rate_item("ann", "tea", 4)
    except InvalidInput as error:
        print("child:", error, flush=True)
    os.read(reading, 1)  # lives on, and must not keep the folder
    os._exit(0)
shop.rate_item("bob", "tea", 4)
shop.close()
with Recommender(sys.argv[1]) as again:
    print("parent:", again.version().ratings, flush=True)
os.write(writing, b".")
os.waitpid(child, 0)
"""


def rating(number: int, **fields: Any) -> Feedback:
    return Feedback(**{"event_id": f"e{number}", "rating": 1 + number % 5, "user": f"u{number % 9}", "item": f"i{number % 7}", **fields})


def test_new_items_are_not_tried_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that brings thousands of items and users asks a few times what the policy can hold, not once per item."""
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        made: list[int] = []
        init = ALB.init

        def counted(self: ALB, n_users: int, n_items: int, *rest: Any) -> Any:
            made.append(n_items)
            return init(self, n_users, n_items, *rest)

        monkeypatch.setattr(ALB, "init", counted)
        answers = engine.ask(FeedbackBatch([rating(number, user=f"u{number}", item=f"i{number}") for number in range(5_000)])).answers
        assert all(getattr(answer, "applied", False) for answer in answers)
    assert len(made) < 60  # each doubling of users and items, tried and then done


@pytest.mark.parametrize(
    ("request_", "accepted"),
    [
        (Recommend("ann", candidates=[f"c{number}" for number in range(MOST_NEW_ITEMS + 1)]), f"at most {MOST_NEW_ITEMS}"),
        (Recommend("ann", candidates=["i1"] * (MOST_CANDIDATES + 1)), f"at most {MOST_CANDIDATES}"),
        (Recommend("ann", exclude=["i1"] * (MOST_CANDIDATES + 1)), f"at most {MOST_CANDIDATES}"),
        (FeedbackBatch([rating(0)] * (MOST_EVENTS + 1)), f"0 to {MOST_EVENTS}"),
    ],
    ids=["new items", "candidates", "excluded", "batch"],
)
def test_what_is_too_much_is_refused_whole(request_: Any, accepted: str, tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        engine.ask(rating(1))
        before = engine.ask(AskVersion())
        with pytest.raises(BadValue, match=accepted):
            engine.ask(request_)
        assert engine.ask(AskVersion()) == before


def test_growth_beyond_memory_is_refused_before_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused user is not in the log, so a restart on the same machine succeeds."""
    policy = ALB(rank=8)
    with Engine(tmp_path / "shop", Options(scale=(1, 5), policy=policy, snapshot_every=0)) as engine:
        engine.wait_ready()
        limit = memory.footprint(policy, 1024, 1024)
        monkeypatch.setattr(memory, "memory_limit", lambda: limit)
        kept = 0
        for number in range(40):
            answers = engine.ask(
                FeedbackBatch([rating(at, user=f"u{at}", item=f"i{at}") for at in range(100 * number, 100 * number + 100)])
            ).answers
            kept += sum(hasattr(answer, "applied") for answer in answers)
        assert 64 < kept < 1500
        for request in (Recommend("ann", candidates=[f"more{number}" for number in range(900)]), rating(9999, user="new", item="thing")):
            with pytest.raises(NoMemory, match="would take about"):
                engine.ask(request)
        assert engine.ask(rating(9999, user="u1", item="i1")).applied  # known users can go on
        expected = engine.ask(AskVersion())
        assert expected.ratings == kept + 1
    remove_all(tmp_path / "shop")
    with Engine(tmp_path / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()) == expected


def test_a_decision_is_rated_once_per_item(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2)) as shop:
        decision = shop.recommend("ann", 2, candidates=["tea", "mate"])
        first = shop.rate(decision, 4, "tea", event_id="first")
        assert shop.rate(decision, 4, "tea", event_id="first").duplicate
        with pytest.raises(AlreadyRated):
            shop.rate(decision, 5, "tea", event_id="second")
        assert shop.rate(decision, 5, "mate").applied
        futures = [shop.engine.submit(Feedback(f"storm{number}", 3, shop.recommend("bob").decision_id)) for number in range(2)]
        assert [future.result().applied for future in futures] == [True, True]
        one = shop.recommend("eve").decision_id
        with shop.engine._changed:  # two of them in one group
            futures = [shop.engine.submit(Feedback(f"twin{number}", 3, one)) for number in range(2)]
        assert [type(future.exception()) for future in futures] == [type(None), AlreadyRated]
        expected = shop.version().ratings
    with Recommender(tmp_path / "shop") as shop:
        assert shop.version().ratings == expected
        with pytest.raises(AlreadyRated):
            shop.rate(decision, 5, "tea", event_id="third")
        assert shop.rate(decision, 4, "tea", event_id="first").seq == first.seq


def test_a_copy_of_a_folder_gives_other_ids(tmp_path: Path) -> None:
    """A decision of one is unknown to the other: no rating is credited to another user."""
    import shutil

    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2), items=["tea", "mate"]) as shop:
        shared = shop.recommend("ann")
    shutil.copytree(tmp_path / "shop", tmp_path / "copy")
    with Recommender(tmp_path / "shop") as shop, Recommender(tmp_path / "copy") as copy:
        of_ann, of_bob = shop.recommend("ann"), copy.recommend("bob")
        assert of_ann.decision_id.partition("-")[0] == of_bob.decision_id.partition("-")[0]
        with pytest.raises(UnknownDecision):
            copy.rate(of_ann, 5)
        assert shop.rate(of_ann, 5).applied
        assert copy.rate(shared, 4).applied  # from before the copy, and so known to both
        assert shop.rate(shared, 4).applied


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_refused_and_does_not_keep_the_folder(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path / "shop")], capture_output=True, text=True, check=False, timeout=120)
    assert "child: " in run.stdout, run.stderr
    assert "accepted: that one" in run.stdout
    assert "parent: 2" in run.stdout, run.stderr


def test_an_unusable_policy_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        Recommender(tmp_path / "shop", scale=(1, 5), policy=OFUL(features=str(tmp_path / "missing.npy")))
    assert not (tmp_path / "shop").exists()


def test_the_state_id_of_a_large_model_is_that_of_the_last_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks over the network does not make everybody wait while a large model is read."""
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        engine.ask(rating(0))
        assert engine.ask(AskVersion("cheap")) == engine.ask(AskVersion("now"))
        monkeypatch.setattr(answering, "CHEAP_BYTES", 0)
        assert engine.ask(AskVersion("cheap")).state_id is None
        taken = engine.ask(TakeSnapshot())
        engine.ask(rating(1))
        monkeypatch.setattr("albatross.core.agent.identity", None)  # to compute it would fail
        cheap = engine.ask(AskVersion("cheap"))
        assert (cheap.state_id, cheap.state_seq) == (taken.state_id, taken.seq)
        assert cheap.seq > taken.seq
        assert engine.ask(AskVersion("none")).state_id is None
        monkeypatch.undo()


def test_everything_in_a_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
            shop.rate_item("ann", "tea", 4)
            shop.snapshot()
            shop.backup()
            paths = [tmp_path / "shop", *(tmp_path / "shop").rglob("*")]
            assert len(paths) > 8
            for path in paths:
                assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    finally:
        os.umask(previous)


def test_first_it_compiles_and_then_it_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phases: list[str] = []
    enter = Standing.enter

    def noted(self: Standing, phase: Any) -> None:
        phases.append(phase)
        enter(self, phase)

    monkeypatch.setattr(Standing, "enter", noted)
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
    assert phases == ["compiling", "replaying", "ready", "closed"]


def test_complaints_reach_whoever_listens(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        path = Path(engine.ask(TakeSnapshot()).path)
    path.write_bytes(path.read_bytes()[:-1])
    heard: list[str] = []
    with Engine(tmp_path / "shop", on_complaint=heard.append) as engine:
        engine.wait_ready()
        assert heard == engine.complaints
    assert [str(path) in complaint for complaint in heard] == [True]


def test_a_log_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        engine.ask(rating(0))
    (tmp_path / "shop" / LOG).unlink()
    with pytest.raises(InvalidInput, match="were acknowledged"):
        Engine(tmp_path / "shop", OPTIONS)


def test_many_new_candidates_cost_little_memory(tmp_path: Path) -> None:
    """The overlay of a decision is dropped with it, and what it learned of room is the model's afterwards."""
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        decision = engine.ask(Recommend("ann", n=5, candidates=[f"c{number}" for number in range(MOST_NEW_ITEMS)]))
        assert len({shown.item for shown in decision.items}) == 5
        model = engine._model
        assert model.spare is None
        assert MOST_NEW_ITEMS <= model.agent.n_items < 2 * MOST_NEW_ITEMS
        assert np.isfinite(model.agent.slate.scores).all()
