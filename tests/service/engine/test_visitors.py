"""Visitors: an id for a client without one, and one person behind two ids, in the log and exactly in the model."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import Recommender
from albatross.checks.worlds import statistics_of
from albatross.cli import main
from albatross.core.policy import Policy
from albatross.policies.alb import ALB
from albatross.policies.pts import PTS
from albatross.policies.user_ucb import UserUCB
from albatross.service.api.errors import BadValue, UnknownDecision, UnknownUser
from albatross.service.api.requests import JoinUsers, ListEvents, ListItems, ListUsers, LookBack, Suppose, ViewDecision, ViewUser
from albatross.service.api.values import MOST_VISITORS
from albatross.service.engine.recovering.verifying import redecide
from albatross.service.storage.folder import LOG
from albatross.service.storage.snapshots import remove_all

import zoo

EVENTS = {"click": 1.0, "purchase": 5.0}
DRINKS = ["tea", "coffee", "mate"]


def shop(folder: Path, policy: Policy | None = None, **options: Any) -> Recommender:
    return Recommender(folder, events=EVENTS, policy=policy or ALB(rank=2), **options)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Recommender]:
    with shop(tmp_path / "shop") as opened:
        yield opened


def test_a_visitor_gets_an_id_of_their_own_that_lives_in_the_log(here: Recommender) -> None:
    first, second = here.recommend(None, candidates=DRINKS), here.recommend(None)
    assert first.user != second.user
    assert first.user.startswith("visitor-")
    here.report(first, "click")
    here.report(second, "purchase", user=second.user)
    assert here.user(first.user).ratings == 1
    assert [(row.kind, row.user) for row in here.ask(ListEvents(2)).events] == [("feedback", second.user), ("feedback", first.user)]
    again = here.recommend(None, request_id="asked")
    assert here.recommend(None, request_id="asked") == again
    assert redecide(here.engine._store, here.engine.genesis) == (3, [], 0)


def test_who_forgets_the_user_is_not_taken_for_a_visitor() -> None:
    with pytest.raises(TypeError, match="user"):
        Recommender.recommend(None)  # type: ignore[call-arg,arg-type]


@pytest.mark.parametrize("name", ["mean-field", "alb"])
def test_what_is_kept_is_that_of_a_life_in_which_all_came_from_the_one(name: str, tmp_path: Path) -> None:
    """A visitor and a user rate much, partly the same, and are joined late. Then the log gives the same model, bit for bit."""
    kept = []
    for life in ("joined", "one"):
        with shop(tmp_path / life, zoo.POLICIES[name], floor=0.2) as here:
            random = np.random.default_rng(3)
            for step in range(40):
                user, item = ("ann", "v", "bob")[random.integers(3)], f"i{random.integers(8)}"
                user = "ann" if life == "one" and user == "v" else user
                decision = here.recommend(user, candidates=[item])
                if step % 4:
                    here.report(decision, ("click", "purchase")[step % 2])
            if life == "joined":
                here.join("v", "ann")
            model = here.engine._model
            assert model.users.numbers.keys() - model.visitors.users.keys() == {"ann", "bob"}
            row = model.users.numbers["ann"]
            ledger = [model.ledger.item_sums, model.ledger.item_shown, model.ledger.user_ratings[row]]
            counted = [(what, values) for what, values in statistics_of(model.policy, model.agent.state) if what != "pairs.users"]
            history = [(entry.item, entry.rating, entry.event) for entry in here.ask(ViewUser("ann", history=40)).history]
            kept.append(([*counted, *enumerate(ledger)], history, sorted(model.pending["ann"]), here.version()))
    for (what, found), (_, wanted) in zip(kept[0][0], kept[1][0], strict=True):
        assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9), what
    assert kept[0][1:3] == kept[1][1:3]
    assert (kept[0][3].users, kept[0][3].ratings) == (kept[1][3].users, kept[1][3].ratings) == (2, 30)
    for _ in range(2):  # from the snapshot, then from the log alone
        with shop(tmp_path / "joined", zoo.POLICIES[name]) as here:
            assert not here.engine.complaints
            assert here.version().state_id == kept[0][3].state_id
            assert here.version().users == 2
            assert here.join("v", "ann").joined is False
        remove_all(tmp_path / "joined")
    assert main(["verify", str(tmp_path / "joined"), "--decisions"]) == 0


def test_a_new_user_takes_the_place_of_the_visitor(here: Recommender) -> None:
    """Nothing that was learned changes, and no user is counted twice."""
    decision = here.recommend(None, candidates=DRINKS)
    here.report(decision, "click")
    before = here.version()
    joined = here.join(decision.user, "ann")
    assert (joined.visitor, joined.user, joined.joined, joined.seq) == (decision.user, "ann", True, before.seq + 1)
    assert here.version().state_id == before.state_id
    assert here.version().users == 1
    assert [user.user for user in here.ask(ListUsers()).users] == ["ann"]


def test_what_comes_for_the_visitor_later_counts_for_the_user(here: Recommender) -> None:
    open_decision, waiting = here.recommend(None, candidates=DRINKS), here.recommend("ann", candidates=["tea"])
    visitor = open_decision.user
    here.report_item("ann", "water", "click")
    here.join(visitor, "ann")
    assert set(here.user("ann").pending) == {open_decision.item, waiting.item}
    here.report(open_decision, "click", user="ann")
    here.report(open_decision, "purchase", user=visitor)
    here.report_item(visitor, "cake", "purchase")
    later = here.recommend(visitor, candidates=DRINKS)
    assert (later.user, later.user_ratings) == ("ann", 3)
    here.report(later, "click", user=visitor)
    assert here.user("ann").ratings == 4
    assert here.user(visitor) == here.user("ann")
    assert here.ask(ViewDecision(open_decision.decision_id)).items[0].rating == 5.0
    assert here.ask(Suppose(visitor, "tea", 5.0)).after == here.ask(Suppose("ann", "tea", 5.0)).after
    assert here.ask(ListItems(user=visitor)) == here.ask(ListItems(user="ann"))
    assert [user.user for user in here.ask(ListUsers()).users] == ["ann"]


def test_a_chain_of_joins(here: Recommender) -> None:
    decisions = [here.recommend(None, candidates=DRINKS) for _ in range(3)]
    for decision in decisions:
        here.report(decision, "click")
    first, second, third = (decision.user for decision in decisions)
    here.join(first, second)
    here.join(second, third)
    assert here.join(third, "ann").joined
    assert here.join(first, "ann") == here.join(first, second)  # they are one already
    assert here.join(first, "ann").user == "ann"
    for name in (first, second, third):
        assert here.user(name).ratings == 3
    assert here.version().users == 1


def test_what_cannot_be_joined_is_refused_and_changes_nothing(here: Recommender) -> None:
    visitor = here.recommend(None, candidates=DRINKS).user
    here.join(visitor, "ann")
    here.report_item("bob", "tea", "click")
    before = here.version()
    for request, error, said in (
        ((visitor, "bob"), BadValue, "joined with another user; accepted: a visitor who was not"),
        (("nobody", "ann"), UnknownUser, "has no ratings and no recent recommendations; accepted"),
        ((visitor[:-1] + "x", "ann"), UnknownUser, "accepted"),
        (("visitor-99-00", "ann"), UnknownUser, "accepted"),
        (("visitor-9999999999999999999999-00", "ann"), UnknownUser, "accepted"),
        (("", "ann"), BadValue, "visitor has 0 characters"),
        (("bob", "\n"), BadValue, "user "),
    ):
        with pytest.raises(error, match=said):
            here.join(*request)
    with pytest.raises(BadValue, match="accepted: that user, who is forgotten with all"):
        here.forget_user(visitor)
    assert not here.join("ann", "ann").joined  # they are one already
    assert here.version() == before
    assert here.join("bob", "ann").joined  # two users with their own names: the caller knows better


def test_visitors_of_one_user_are_bounded(here: Recommender) -> None:
    here.report_item("ann", "tea", "click")
    here.report_item("v", "tea", "click")
    for number in range(MOST_VISITORS):
        here.engine._model.visitors.join(f"v{number}", "ann")
    with pytest.raises(BadValue, match="more than 10,000 visitors"):
        here.join("v", "ann")


def test_to_forget_a_user_is_to_forget_their_visitors(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with shop(folder) as here:
        here.report_item("bob", "tea", "click")
        here.snapshot()
        decision = here.recommend(None, candidates=DRINKS)
        here.report(decision, "click")
        here.recommend("other", candidates=DRINKS)
        here.report_item("ann", "mate", "purchase")
        for visitor in (decision.user, "other"):
            here.join(visitor, "ann")
        assert here.forget_user("ann").events == 6
        assert here.version().ratings == 1
        with pytest.raises(UnknownDecision):
            here.report(decision, "purchase")
        with pytest.raises(UnknownUser):
            here.join(decision.user, "bob")
        here.report_item("other", "tea", "click")  # an id like any other now
        assert (here.user("other").ratings, here.version().users) == (1, 2)
    assert main(["verify", str(folder)]) == 0
    files = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert decision.user.encode() not in files
    assert b'"ann"' not in files


def test_silence_of_a_visitor_is_that_of_the_user(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        visitor = here.recommend(None, candidates=DRINKS).user
        here.report_item("ann", "cake", "click")
        here.join(visitor, "ann")
    with shop(tmp_path / "shop", silence=(1e-6, 1.0)) as here:
        while here.version().ratings < 2:
            pass
        assert here.user("ann").ratings == 2


def test_a_policy_that_cannot_is_refused(tmp_path: Path) -> None:
    with Recommender(tmp_path / "pts", scale=(1, 5), policy=PTS(n_particles=10, rank=3)) as here:
        visitor = here.recommend(None, candidates=DRINKS).user
        with pytest.raises(BadValue, match="'pts' cannot join users; accepted for joins: a policy with the operation `join`") as refusal:
            here.join(visitor, "ann")
    named = re.findall(r"[\w-]+", str(refusal.value).partition("such as ")[2].replace(" or ", ", "))
    for name in named:
        with Recommender(tmp_path / f"{name} too", scale=(1, 5), policy=name) as able:
            assert able.join(able.recommend(None, candidates=DRINKS).user, "ann").joined
    assert len(named) == 3
    with shop(tmp_path / "alb") as here:
        here.join(here.recommend(None, candidates=DRINKS).user, "ann")
    assert main(["replay", str(tmp_path / "alb"), str(tmp_path / "other"), "--policy", "pts"]) == 2
    assert not (tmp_path / "other").exists()
    assert main(["replay", str(tmp_path / "alb"), str(tmp_path / "other"), "--policy", "user-ucb"]) == 0
    assert main(["verify", str(tmp_path / "other")]) == 0


def test_joins_are_exported_and_seen_in_the_log_and_in_the_past(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with shop(folder, UserUCB()) as here:
        decision = here.recommend(None, candidates=DRINKS)
        here.report(decision, "click")
        here.report_item("ann", "tea", "purchase")
        joined = here.join(decision.user, "ann")
        row = here.ask(ListEvents(1)).events[0]
        assert (row.kind, row.visitor, row.user) == ("join", decision.user, "ann")
        before, after = (here.ask(LookBack(seq, decision.user)) for seq in (joined.seq - 1, joined.seq))
        assert before.user is not None
        assert after.user is not None
        assert (before.users, before.user.user, before.user.ratings) == (2, decision.user, 1)
        assert (after.users, after.user.user, after.user.ratings) == (1, "ann", 2)
    assert main(["export", str(folder), str(tmp_path / "events.jsonl")]) == 0
    last = json.loads((tmp_path / "events.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["visitor"], last["user"]) == ("join", decision.user, "ann")
    assert main(["export", str(folder), str(tmp_path / "events.parquet")]) == 0


def test_a_join_that_is_not_kept_is_not_known(tmp_path: Path) -> None:
    """A damaged join is damage, as any event."""
    folder = tmp_path / "shop"
    with shop(folder) as here:
        visitor = here.recommend(None, candidates=DRINKS).user
        here.ask(JoinUsers(visitor, "ann"))
    remove_all(folder)
    content = (folder / LOG).read_bytes()
    assert content.count(b'["join"') == 1
    (folder / LOG).write_bytes(content.replace(b'"ann",false]', b'"bob",false]'))
    assert main(["verify", str(folder)]) != 0
