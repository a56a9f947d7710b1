"""A visitor of one shard is joined with a user of another: what is known moves there, and counts once, whatever dies in between."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from places import Place
from town import Town

from albatross.checks.worlds import statistics_of
from albatross.cli import main
from albatross.core.policy import Policy
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.service.api.answers import Accepted, Decision
from albatross.service.api.errors import BadValue, StorageFailed, UnknownDecision, UnknownUser
from albatross.service.api.requests import (
    AskVersion,
    Feedback,
    FeedbackBatch,
    ForgetUser,
    JoinUsers,
    ListEvents,
    ListItems,
    ListUsers,
    Recommend,
    Suppose,
    ViewDecision,
    ViewUser,
)
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.moving import Forwarded
from albatross.service.engine.sharing import TakeParcels
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.sharing import ShardLog

EVENTS = {"click": 1.0, "purchase": 5.0}
DRINKS = ["tea", "coffee", "mate"]
SHARDS = 3
PARCELS = "SELECT count(*) FROM albatross.parcels"


def options(policy: Policy) -> Options:
    return Options(policy=policy, scale=(1, 5), events=EVENTS)


def on(shard: int, name: str = "u") -> str:
    """A user of a shard."""
    return next(user for number in range(100) if shard_of(user := f"{name}{number}", SHARDS) == shard)


@pytest.fixture
def address(databases: Place) -> str:
    return databases.address("shop")


@pytest.fixture
def town(address: str, tmp_path: Path) -> Iterator[Town]:
    with Town(address, tmp_path, options(ALB(rank=2)), shards=SHARDS) as opened:
        yield opened
        opened.settle()
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path), "--decisions"]) == 0


def visitor(town: Town, shard: int, event: str | None = "click") -> Decision:
    """A decision for a visitor without an id, whom this shard names. It shows an item of its own."""
    while True:
        decision = town.ask(Recommend(None, candidates=[f"drink {shard}"]))
        if shard_of(decision.user, SHARDS) == shard:
            if event is not None:
                town.ask(Feedback(f"first of {decision.user}", event=event, decision_id=decision.decision_id))
            return decision


def test_each_shard_names_visitors_that_live_on_it(town: Town) -> None:
    decisions = [town.ask(Recommend(None, candidates=DRINKS)) for _ in range(2 * SHARDS)]
    assert {int(decision.decision_id[-1]) for decision in decisions} == set(range(SHARDS))
    assert all(decision.decision_id.endswith(f"-{shard_of(decision.user, SHARDS)}") for decision in decisions)
    again = town.ask(Recommend(None, request_id="asked"))
    assert [town.ask(Recommend(None, request_id="asked")) for _ in range(SHARDS)] == [again] * SHARDS


@pytest.mark.parametrize("policy", [MeanField(), ALB(rank=2), ItemMean()], ids=["mean-field", "alb", "item-mean"])
@pytest.mark.parametrize("stranger", [False, True], ids=["both", "new user"])
def test_what_is_kept_is_that_of_a_life_in_which_all_came_from_the_one(
    policy: Policy, stranger: bool, databases: Place, tmp_path: Path
) -> None:
    kept = []
    ann, guest, bob = on(0), on(1, "v"), on(1)
    for life in ("joined", "one"):
        address = databases.address(life)
        with Town(address, tmp_path / life, options(policy), shards=SHARDS) as town:
            random = np.random.default_rng(3)
            for step in range(40):
                user, item = (bob if stranger else ann, guest, bob)[random.integers(3)], f"i{random.integers(8)}"
                user = ann if life == "one" and user == guest else user
                decision = town.ask(Recommend(user, candidates=[item]))
                if step % 4:
                    town.ask(Feedback(f"e{step}", event=("click", "purchase")[step % 2], decision_id=decision.decision_id))
            if life == "joined":
                assert town.ask(JoinUsers(guest, ann)).joined
            town.settle()
            model = town.engines[0]._model
            row = model.users.numbers[ann]
            found = dict(statistics_of(model.policy, model.agent.state))
            own = {name: found[name][found["pairs.users"] == row] for name in found if name.startswith("pairs.") and "users" not in name}
            tallies = {name: found[name] for name in found if name.startswith(("tally.", "counts."))}
            ledgers = [[*one._model.ledger.item_sums, *one._model.ledger.item_ratings] for one in town.engines]
            assert all(np.allclose(ledger, ledgers[0]) for ledger in ledgers)
            view = town.ask(ViewUser(ann, history=40))
            history = sorted((entry.item, entry.rating) for entry in view.history)
            version = town.ask(AskVersion())
            kept.append(((own, tallies, ledgers[0]), history, version.users, version.ratings))
            states = [engine._model.state_id for engine in town.engines]
        for folder in (tmp_path / life, tmp_path / f"nothing of {life}"):  # from snapshots, and from the logs alone
            with Town(address, folder, shards=SHARDS, exchange=False) as town:
                assert [engine._model.state_id for engine in town.engines] == states
                assert not any(engine.complaints for engine in town.engines)
        assert main(["cluster", "verify", address, "--snapshots", str(tmp_path / life), "--decisions"]) == 0
    (joined, *told), (one, *wanted) = kept
    assert told == wanted
    for found, expected in zip(joined[:2], one[:2], strict=True):
        assert found.keys() == expected.keys()
        for name in found:
            assert np.allclose(found[name], expected[name], rtol=1e-9, atol=1e-9), name
    assert np.allclose(joined[2], one[2])


def test_what_comes_for_the_visitor_later_counts_for_the_user(town: Town) -> None:
    ann = on(0)
    open_decision = visitor(town, 1, None)
    guest = open_decision.user
    waiting = town.ask(Recommend(ann, candidates=["tea"]))
    town.ask(Feedback("own", event="click", user=ann, item="water"))
    town.ask(Feedback("before", event="click", user=guest, item="cake"))
    joined = town.ask(JoinUsers(guest, ann))
    assert (joined.visitor, joined.user, joined.joined) == (guest, ann, True)
    assert set(town.ask(ViewUser(ann)).pending) == {open_decision.item, waiting.item}
    town.ask(Feedback("a", event="click", decision_id=open_decision.decision_id, user=ann))
    assert town.ask(ViewUser(ann)).ratings == 3  # as soon as it is answered
    town.ask(Feedback("b", event="purchase", decision_id=open_decision.decision_id, user=guest))
    assert town.ask(Feedback("b", event="purchase", decision_id=open_decision.decision_id, user=guest)).duplicate
    assert town.ask(Feedback("before", event="click", user=guest, item="cake")).duplicate
    assert not town.ask(Feedback("c", event="purchase", user=guest, item="bread")).duplicate
    assert town.ask(Feedback("c", event="purchase", user=guest, item="bread")).duplicate
    later = town.ask(Recommend(guest, candidates=DRINKS))
    assert (later.user, later.user_ratings) == (ann, 4)
    batch = [Feedback(f"batch {user}", event="click", user=user, item="milk") for user in (guest, ann, on(2))]
    assert [type(answer) for answer in town.ask(FeedbackBatch(batch)).answers] == [Accepted] * 3
    assert [answer.duplicate for answer in town.ask(FeedbackBatch(batch)).answers if isinstance(answer, Accepted)] == [True] * 3
    late = [Feedback("late", event="click", decision_id=open_decision.decision_id)]
    assert isinstance(town.ask(FeedbackBatch(late)).answers[0], Accepted)
    assert town.ask(ViewUser(guest)).ratings == town.ask(ViewUser(ann)).ratings == 6
    assert town.ask(ViewDecision(open_decision.decision_id)).items[0].rating == 1.0
    town.settle()  # two answers are compared, and shards exchange in between
    assert town.ask(Suppose(guest, "tea", 5.0)).after == town.ask(Suppose(ann, "tea", 5.0)).after
    assert town.ask(ListItems(user=guest)).items == town.ask(ListItems(user=ann)).items
    assert sorted(user.user for user in town.ask(ListUsers()).users) == sorted([ann, on(2)])
    history = town.ask(ViewUser(ann, history=20)).history
    assert sorted(entry.item for entry in history) == sorted(["water", "cake", "bread", "milk", "milk", open_decision.item])
    assert town.ask(AskVersion()).ratings == 7
    assert {event.visitor for event in town.ask(ListEvents(n=100)).events if event.kind == "join"} == {guest}


def test_a_chain_of_joins_over_all_shards(town: Town) -> None:
    first, second, third = (visitor(town, shard) for shard in (1, 2, 0))
    town.ask(JoinUsers(first.user, second.user))
    town.ask(JoinUsers(second.user, third.user))
    town.ask(Feedback("late", event="purchase", decision_id=first.decision_id))  # goes the whole way
    town.settle()
    assert sorted(entry.rating for entry in town.ask(ViewUser(first.user, history=5)).history) == [1.0, 1.0, 5.0]
    assert town.ask(JoinUsers(third.user, on(1))).joined  # the first comes back to where it was
    for name in (second.user, on(1)):
        again = town.ask(JoinUsers(first.user, name))
        assert (again.joined, again.user) == (False, on(1))
    assert not town.ask(JoinUsers(on(1), first.user)).joined  # no circle
    town.ask(Feedback("later", event="click", decision_id=first.decision_id))
    town.settle()
    assert [entry.rating for entry in town.ask(ViewUser(first.user, history=5)).history] == [1.0, 1.0, 1.0]
    for name in (first.user, second.user, third.user, on(1)):
        assert town.ask(ViewUser(name)).ratings == 3
    assert town.ask(AskVersion()).users == 1


def test_what_cannot_be_joined_is_refused_and_changes_nothing(town: Town) -> None:
    guest = visitor(town, 1).user
    town.ask(JoinUsers(guest, on(0)))
    town.ask(Feedback("bob", event="click", user=on(2), item="tea"))
    town.settle()
    before = town.ask(AskVersion()).ratings
    for request, error, said in (
        ((guest, on(2)), BadValue, "joined with another user; accepted: a visitor who was not"),
        (("nobody", on(0)), UnknownUser, "has no ratings and no recent recommendations; accepted"),
        (("", on(0)), BadValue, "visitor has 0 characters"),
    ):
        with pytest.raises(error, match=said):
            town.ask(JoinUsers(*request))
    with pytest.raises(BadValue, match="accepted: that user, who is forgotten with all"):
        town.ask(ForgetUser(guest))
    assert not town.ask(JoinUsers(on(0), on(0))).joined
    assert town.ask(AskVersion()).ratings == before


def test_to_forget_a_user_is_to_forget_their_visitors_on_all_shards(town: Town, address: str) -> None:
    ann, bob = on(0), on(1)
    town.ask(Feedback("bob", event="click", user=bob, item="tea"))
    first, second = visitor(town, 1), visitor(town, 2)
    town.ask(Feedback("ann", event="purchase", user=ann, item="mate"))
    for decision in (first, second):
        town.ask(JoinUsers(decision.user, ann))
    town.ask(Feedback("late", event="purchase", decision_id=first.decision_id))
    town.ask(ForgetUser(ann))
    town.settle()
    assert (town.ask(AskVersion()).ratings, town.ask(AskVersion()).users) == (1, 1)
    for engine in town.engines:
        assert int(engine._model.ledger.item_ratings.sum()) == 1
    for decision in (first, second):
        with pytest.raises(UnknownDecision):
            town.ask(Feedback("much later", event="click", decision_id=decision.decision_id))
        with pytest.raises(UnknownUser):
            town.ask(JoinUsers(decision.user, bob))
    with contextlib.closing(psycopg.connect(address)) as outside:
        for name in (ann, first.user, second.user):
            for table, column in (("log", "body"), ("joins", "visitor"), ("joins", "known_as"), ("parcels", "content")):
                found = outside.execute(f"SELECT count(*) FROM albatross.{table} WHERE position(%s in {column}) > 0", (name.encode(),))
                assert found.fetchone() == (0,), table
    town.ask(Feedback("as a new one", event="click", user=first.user, item="tea"))
    assert town.ask(ViewUser(first.user)).ratings == 1


class Deadly:
    """The commits of an engine, of which one fails before it is made, or is made and never heard of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shard: int, method: str, made: bool) -> None:
        self.struck = False
        known = getattr(ShardLog, method)

        def strike(log: ShardLog, *arguments: object) -> None:
            if log.shard != shard or self.struck:
                return known(log, *arguments)  # type: ignore[no-any-return]
            self.struck = True
            if made:
                known(log, *arguments)
            raise StorageFailed("the connection is lost")

        monkeypatch.setattr(ShardLog, method, strike)


@pytest.mark.parametrize("made", [False, True], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize(("shard", "method"), [(1, "append"), (0, "take")], ids=["visitor's shard", "user's shard"])
def test_a_join_is_whole_whatever_dies(
    shard: int, method: str, made: bool, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard dies at each of the two commits of a join, and of a rating that is passed on. Then it recovers, and goes on by itself."""
    ann, guest = on(0), on(1, "v")
    for deed in ("join", "late"):
        with Town(address, tmp_path, options(ALB(rank=2)) if deed == "join" else None, shards=SHARDS, exchange=False) as town:
            if deed == "join":
                decision = town.ask(Recommend(guest, candidates=DRINKS))
                town.ask(Feedback("cake", event="click", user=guest, item="cake"))
            request = JoinUsers(guest, ann) if deed == "join" else Feedback("late", event="click", decision_id=decision.decision_id)
            with monkeypatch.context() as patched:
                deadly = Deadly(patched, shard, method, made)
                with contextlib.suppress(StorageFailed):
                    town.engines[1].ask(request)
                if shard == 0:
                    with pytest.raises(StorageFailed):
                        town.engines[0].ask(TakeParcels())
                assert deadly.struck
        with Town(address, tmp_path, shards=SHARDS) as town:  # the next owner of the shard
            again = town.ask(request)
            assert (again.joined if deed == "join" else not again.duplicate) == (shard == 1 and not made)  # type: ignore[attr-defined]
            town.settle()
            assert town.ask(ViewUser(ann)).ratings == (1 if deed == "join" else 2)
            assert [int(engine._model.ledger.item_ratings.sum()) for engine in town.engines] == [1 if deed == "join" else 2] * SHARDS
    with contextlib.closing(psycopg.connect(address)) as outside:
        assert outside.execute(PARCELS).fetchone() == (0,)
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path), "--decisions"]) == 0


def test_two_who_join_each_other_at_once_are_one(address: str, tmp_path: Path) -> None:
    """Neither shard has heard of the other's join when it decides: one of them does it, and the other sees it then."""
    ann, bob = on(0), on(1)
    with Town(address, tmp_path, options(ALB(rank=2)), shards=SHARDS) as town:
        for user in (ann, bob):
            town.ask(Feedback(f"of {user}", event="click", user=user, item="tea"))
        pending = [town.engines[shard_of(one, SHARDS)].submit(JoinUsers(one, other)) for one, other in ((ann, bob), (bob, ann))]
        answers = [future.result(60) for future in pending]
        joined: list[Any] = [answer.answer if isinstance(answer, Forwarded) else answer for answer in answers]
        assert sorted(answer.joined for answer in joined) == [False, True]
        assert len({answer.user for answer in joined}) == 1
        town.settle()
        assert town.ask(ViewUser(ann)).ratings == town.ask(ViewUser(bob)).ratings == 2


def test_an_owner_that_was_replaced_takes_nothing(address: str, tmp_path: Path) -> None:
    """What an owner reads, its successor may have taken before it writes."""
    ann, guest = on(0), on(1, "v")
    with Town(address, tmp_path, options(ALB(rank=2)), shards=SHARDS, exchange=False) as town:
        town.ask(Feedback("cake", event="click", user=guest, item="cake"))
        town.engines[1].ask(JoinUsers(guest, ann))
        log = town.engines[0]._store
        assert isinstance(log, ShardLog)
        with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
            outside.execute("UPDATE albatross.shards SET epoch = epoch + 1 WHERE shard = 0")
        with pytest.raises(StorageFailed, match="another process has replaced this one"):
            town.engines[0].ask(TakeParcels())
        with contextlib.closing(psycopg.connect(address)) as outside:
            assert outside.execute(PARCELS).fetchone() == (1,)
    with Town(address, tmp_path, shards=SHARDS) as town:
        town.settle()
        assert town.ask(ViewUser(ann)).ratings == 1


def test_a_policy_that_cannot_carry_refuses(tmp_path: Path) -> None:
    """One machine needs no such operation."""
    from albatross.policies.ids import IDS

    with Engine(tmp_path / "one", Options(policy=IDS(), scale=(1, 5))) as engine:
        engine.wait_ready()
        engine.ask(Feedback("e", 3, user="v", item="tea"))
        assert engine.ask(JoinUsers("v", "ann")).joined
