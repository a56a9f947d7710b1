"""Several shards, each an engine over the log of its own users: what one learns, all know, and each replays alone."""

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest
from places import Place
from town import Town

from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.answers import Accepted, Refusal, Version
from albatross.service.api.errors import BadValue, NotWritten, Refused, UnknownDecision, UnknownItem
from albatross.service.api.requests import (
    AskDisk,
    AskSeries,
    AskVersion,
    Feedback,
    FeedbackBatch,
    ForgetUser,
    ListEvents,
    ListItems,
    ListUsers,
    LookBack,
    Recommend,
    Request,
    RestoreItem,
    RetireItem,
    SetRewards,
    SimilarItems,
    Suppose,
    TakeBackup,
    TakeSnapshot,
    UpsertItem,
    UpsertItems,
    Verify,
    ViewDecision,
    ViewUser,
)
from albatross.service.api.route import JSON
from albatross.service.api.routes import ROUTES
from albatross.service.api.rules import Where
from albatross.service.cluster import exchanging as exchanging_module
from albatross.service.cluster.exchanging import CLOSE, WAIT, Exchanging
from albatross.service.cluster.merging import plan_of
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.ledger import mean_rating
from albatross.service.engine.learned.options import Options
from albatross.service.engine.learned.shared import Content
from albatross.service.engine.sharing import TakeAdded
from albatross.service.storage.events import Item, encode
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.lease import Fenced, Lease
from albatross.service.storage.postgres.sharing import ShardLog, check_copied
from albatross.service.storage.store import CatalogueMoved, DamagedLog, Row

OPTIONS = Options(policy=ItemMean(), scale=(1, 5), events={"click": 1, "purchase": 5})
USERS = [f"u{number}" for number in range(12)]


def rate(town: Town, count: int, seed: int = 0, items: int = 9) -> list[tuple[str, str, float]]:
    """Ratings of random users, some of them of decisions; returns who rated what and how much."""
    random = np.random.default_rng(seed)
    given = []
    for number in range(count):
        user, item, rating = USERS[random.integers(len(USERS))], f"i{random.integers(items)}", float(random.integers(1, 6))
        if number % 2:
            decision = town.ask(Recommend(user, candidates=[item]))
            town.ask(Feedback(f"{seed}-{number}", rating, decision_id=decision.decision_id))
        else:
            town.ask(Feedback(f"{seed}-{number}", rating, user=user, item=item))
        given.append((user, item, rating))
    return given


def sums(town: Town, shard: int) -> dict[str, tuple[int, float]]:
    """Of every item: how many ratings, and their sum, as the shard knows them from all."""
    model = town.engines[shard]._model
    return {
        name: (int(model.ledger.item_ratings[number]), round(float(model.ledger.item_sums[number]), 9))
        for number, name in enumerate(model.items.names)
        if model.ledger.item_ratings[number]
    }


def expected(given: Sequence[tuple[str, str, float]]) -> dict[str, tuple[int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for _, item, rating in given:
        count, total = found.get(item, (0, 0.0))
        found[item] = (count + 1, total + rating)
    return found


def test_what_one_shard_learns_all_know_and_each_replays_alone(databases: Place, tmp_path: Path) -> None:
    address = databases.address("shop")
    with Town(address, tmp_path, Options(policy=ALB(rank=2), scale=(1, 5)), shards=3) as town:
        given = rate(town, 60)
        version = town.settle()
        assert version > 0
        for shard, engine in enumerate(town.engines):
            assert sums(town, shard) == expected(given)
            assert mean_rating(engine._model.ledger) == pytest.approx(np.mean([rating for _, _, rating in given]))
            assert set(engine._model.users.names) == {user for user, _, _ in given if shard_of(user, 3) == shard}
        grams = [engine._model.agent.state.item_grams for engine in town.engines]
        assert all(np.allclose(one, grams[0], rtol=1e-12) for one in grams)
        assert np.abs(grams[0]).sum() > 0
        decision = town.ask(Recommend("stranger"))
        assert decision.item_version == version
        assert decision.decision_id.endswith(f"-{shard_of('stranger', 3)}")
        town.settle()
        states = [engine._model.state_id for engine in town.engines]
        report = town.ask(Verify())  # while they run, from the logs and the payloads alone
        assert report.passed, report.detail
        whole = town.ask(AskVersion())
        assert (whole.ratings, whole.shards, whole.seq) == (60, 3, sum(engine._store.head.seq for engine in town.engines))
        assert report.state_id == whole.state_id
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path), "--decisions"]) == 0
    with Town(address, tmp_path, shards=3, exchange=False) as town:  # from the snapshots
        assert [engine._model.state_id for engine in town.engines] == states
        assert [engine.complaints for engine in town.engines] == [[], [], []]
    with Town(address, tmp_path, shards=3) as town:
        given += rate(town, 20, seed=1)
        town.settle()
        assert [sums(town, shard) for shard in range(3)] == [expected(given)] * 3
        states = [engine._model.state_id for engine in town.engines]
    with Town(address, tmp_path / "nothing", shards=3, exchange=False) as town:  # from the logs alone
        assert [engine._model.state_id for engine in town.engines] == states


def test_one_shard_of_a_cluster_is_the_engine_of_one_machine(databases: Place, tmp_path: Path) -> None:
    with (
        Town(databases.address("shop"), tmp_path / "town", OPTIONS, shards=1, exchange=False) as town,
        Engine(tmp_path / "one", OPTIONS) as one,
    ):
        one.wait_ready()
        for number in range(10):
            for ask in (town.ask, one.ask):
                ask(Feedback(f"e{number}", 1 + number % 5, user=f"u{number % 3}", item=f"i{number % 4}"))
        for name in ("state_id", "seq", "ratings", "item_version", "shards"):
            assert getattr(town.ask(AskVersion()), name) == getattr(one.ask(AskVersion()), name)


def test_the_catalogue_is_one_for_all_shards(databases: Place, tmp_path: Path) -> None:
    address = databases.address("shop")
    with Town(address, tmp_path, OPTIONS, shards=3, exchange=False) as town:
        first, second = (next(user for user in USERS if shard_of(user, 3) == shard) for shard in (1, 2))
        town.ask(Feedback("e1", 3, user=first, item="by rating"))  # each shard brings an item that the others have not heard of
        town.ask(Recommend(second, candidates=["by candidate", "by rating"]))
        town.ask(UpsertItem("by upsert", attributes={"kind": "tea"}))
        names = ["by rating", "by candidate", "by upsert"]
        assert [engine._model.items.names for engine in town.engines] == [names] * 3
        answer = town.ask(UpsertItems([UpsertItem("more"), UpsertItem("")]))
        assert [type(one).__name__ for one in answer.answers] == ["ItemAccepted", "Refusal"]
        town.ask(RetireItem("by rating"))
        town.ask(SetRewards({"click": 2}))
        for user in (first, second):  # on every shard when it is answered
            assert town.ask(Recommend(user, where=Where(attribute="kind", is_="tea"))).item == "by upsert"
            assert [item.retired for item in town.ask(ListItems(user=user)).items] == [True, False, False, False]
            assert town.ask(Feedback(f"click of {user}", user=user, item="more", event="click")).applied
            with pytest.raises(BadValue):
                town.ask(Feedback("another", user=user, item="more", event="purchase"))
        town.ask(RestoreItem("by rating"))
        with pytest.raises(UnknownItem):
            town.ask(RetireItem("nothing"))
        assert [engine._model.retired for engine in town.engines] == [set()] * 3
        copied = {check_copied(address, shard) for shard in range(3)}
        assert copied == {8}
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        outside.execute("UPDATE albatross.log SET body = set_byte(body, 20, 1) WHERE shard = 1 AND seq = 2")
    with pytest.raises(DamagedLog, match="its copy of event 1 of the catalogue is a different event"):
        check_copied(address, 1)
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path)]) != 0


def test_who_was_slower_at_the_catalogue_writes_nothing_and_who_was_replaced_neither(databases: Place, tmp_path: Path) -> None:
    address = databases.address("shop")
    Town(address, tmp_path, OPTIONS, shards=2)
    logs = [ShardLog(address, shard) for shard in range(2)]
    with contextlib.ExitStack() as stack:
        for log in logs:
            stack.callback(log.close)
        logs[0].append([Row(encode(Item(0.0, "first")))])
        head = logs[1].head
        with pytest.raises(CatalogueMoved):
            logs[1].append([Row(encode(Item(0.0, "second")))])
        assert logs[1].head == head
        assert [row.body for row in logs[1].follow()] == [encode(Item(0.0, "first"))]
        assert logs[1].follow() == []
        with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
            outside.execute("UPDATE albatross.shards SET until = 'epoch' WHERE shard = 1")
            outside.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'albatross lease'")
        stack.callback(Lease(address, 1).release)
        logs[1].lease.lost = None  # it was paused, and has not noticed
        with pytest.raises(Fenced):
            logs[1].append([Row(encode(Item(0.0, "third")))])
    assert check_copied(address, 0) == check_copied(address, 1) == 1


def test_a_batch_is_answered_in_its_order_and_each_event_counts_once(databases: Place, tmp_path: Path) -> None:
    with Town(databases.address("shop"), tmp_path, OPTIONS, shards=3, exchange=False) as town:
        events = [Feedback(f"e{number}", 1 + number % 5, user=USERS[number % 12], item="tea") for number in range(30)]
        bad = [Feedback("bad", 9, user="ann", item="tea"), Feedback("nobody", 3)]
        answers = town.ask(FeedbackBatch([*events[:10], *bad, *events[10:]])).answers
        assert [isinstance(answer, Refusal) for answer in answers] == [False] * 10 + [True, True] + [False] * 20
        for event, answer in zip(events, answers[:10] + answers[12:], strict=True):
            assert isinstance(answer, Accepted)
            again = town.ask(event)
            assert (again.seq, again.duplicate) == (answer.seq, True)
        assert town.ask(AskVersion()).ratings == 30
        assert town.ask(FeedbackBatch([])).answers == []


def test_what_is_asked_of_all_shards(databases: Place, tmp_path: Path) -> None:
    with Town(databases.address("shop"), tmp_path, OPTIONS, shards=3) as town:
        given = rate(town, 50)
        town.settle()
        rated = {user for user, _, _ in given}
        for n in (1, 2, 5, 100):
            found, after = [], 0
            while True:
                page = town.ask(ListUsers(n=n, after=after))
                found += [entry.user for entry in page.users]
                assert len(page.users) <= n
                assert page.total == len(rated)
                if page.next is None:
                    break
                after = page.next
            assert sorted(found) == sorted(rated)
        assert [entry.user for entry in town.ask(ListUsers(search="U11")).users] == ["u11"]
        listed = {entry.item: entry.ratings for entry in town.ask(ListItems()).items}
        assert listed == {item: count for item, (count, _) in expected(given).items()}
        newest = town.ask(ListEvents(n=10)).events
        times = [event.at or 0.0 for event in newest]
        assert times == sorted(times, reverse=True)
        assert {event.shard for event in town.ask(ListEvents(n=100)).events} == {0, 1, 2}
        assert [event.seq for event in town.ask(ListEvents(n=2, before=5, shard=1)).events] == [4, 3]
        home = shard_of("u3", 3)
        past_all = (LookBack(3), LookBack(3, shard=3), LookBack(3, "u3", shard=(home + 1) % 3))
        for refused in (ListEvents(before=5), ListEvents(shard=3), *past_all):
            with pytest.raises(Refused, match="accepted: "):
                town.ask(refused)
        with pytest.raises(NotWritten, match="PostgreSQL's own backups"):
            town.ask(TakeBackup())
        for asked in (LookBack(10**9, "u3"), LookBack(10**9, "u3", shard=home)):
            past = town.ask(asked)
            assert (past.seq, past.state_id) == (town.engines[home]._store.head.seq, town.engines[home]._model.state_id)
            assert past.user is not None
        series = town.ask(AskSeries())
        assert sum(series.ratings) == 50
        mean = sum(count * (reward or 0) for count, reward in zip(series.ratings, series.reward, strict=True)) / 50
        assert mean == pytest.approx(sum(rating for _, _, rating in given) / 50)
        decision = town.ask(Recommend("u3", candidates=["i1", "i2"]))
        assert town.ask(ViewDecision(decision.decision_id)).user == "u3"
        for wrong in ("1-00000000-1", "1-00000000-9", "1-00000000", "x"):
            with pytest.raises(UnknownDecision):
                town.ask(ViewDecision(wrong))
        with pytest.raises(BadValue, match="not the one this decision was made for"):
            town.ask(Feedback("other", 3, decision_id=decision.decision_id, user="u4"))
        assert town.ask(ViewUser("u3")).ratings == sum(user == "u3" for user, _, _ in given)
        assert town.ask(Suppose("u3", "i1", 5)).user == "u3"
        with pytest.raises(BadValue, match="keeps no vectors"):
            town.ask(SimilarItems("i1"))
        assert town.ask(AskDisk()).seq == sum(engine._store.head.seq for engine in town.engines)
        assert town.ask(TakeSnapshot()).path.count(".npz") == 3


class Unforeseen(Request[Version], frozen=True):
    """A request that came later, and nobody has said what several shards do with it."""


def test_what_nobody_has_thought_of_is_refused_and_not_answered_by_any_shard() -> None:
    with pytest.raises(BadValue, match="Unforeseen cannot be answered where there are 3 shards"):
        plan_of(Unforeseen(), 3)
    refused = set()
    for route in ROUTES:
        if route.gives == JSON and (route.reads or route.asks):
            asked: Any = route.asks if route.reads is None else msgspec.convert(route.examples[0][1], route.reads)
            try:
                plan_of(asked, 3)
            except BadValue:
                refused.add(type(asked).__name__)
    assert refused == {"LookBack"}


def test_who_is_forgotten_is_taken_from_all_shards(databases: Place, tmp_path: Path) -> None:
    with Town(databases.address("shop"), tmp_path, OPTIONS, shards=2) as town:
        given = rate(town, 40)
        town.settle()
        town.ask(ForgetUser("u3"))
        town.settle()
        left = [one for one in given if one[0] != "u3"]
        assert len(left) < len(given)
        assert [sums(town, shard) for shard in range(2)] == [expected(left)] * 2
        means = {item.item: item.mean for item in town.ask(ListItems(user=USERS[0])).items}
        for item, (count, total) in expected(left).items():
            assert means[item] == pytest.approx(total / count)
        assert town.ask(Verify()).passed


def test_a_payload_that_comes_twice_counts_once(databases: Place, tmp_path: Path) -> None:
    """As from an owner that was paused and does not know that its payload is part of a version."""
    address = databases.address("shop")
    with Town(address, tmp_path, OPTIONS, shards=2, exchange=False) as town:
        given = rate(town, 20)
        late = town.engines[0].ask(TakeAdded())
        with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
            for _ in range(2):
                outside.execute(WAIT, (0, late.told, late.catalogue, late.content))
                outside.execute(CLOSE)
            assert outside.execute("SELECT count(*), max(version) FROM albatross.payloads").fetchone() == (1, 1)
    with Town(address, tmp_path, shards=2) as town:
        given += rate(town, 10, seed=1)
        town.settle()
        assert [sums(town, shard) for shard in range(2)] == [expected(given)] * 2


def test_what_was_lost_before_it_became_a_version_is_said_again(databases: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the server: what waits is not in its journal."""
    address = databases.address("shop")
    monkeypatch.setattr(exchanging_module, "CLOSE", "SELECT 1")  # no version is ever made
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
    with (
        Town(address, tmp_path, OPTIONS, shards=2) as town,
        contextlib.closing(psycopg.connect(address, autocommit=True)) as outside,
    ):
        town.ask(Feedback("once", 3, user="u3", item="i1"))
        home = shard_of("u3", 2)
        end = time.monotonic() + 60

        def wait_for_word() -> bool:
            while time.monotonic() < end:
                found = outside.execute("SELECT content FROM albatross.waiting WHERE shard = %s", (home,)).fetchone()
                if found is not None and Content.from_bytes(found[0]).items.size:
                    return True
            return False

        assert wait_for_word()
        while town.exchanging[home]._news():
            assert time.monotonic() < end
        outside.execute("TRUNCATE albatross.waiting")
        outside.execute(ending, ("albatross exchange",))
        assert wait_for_word()


def test_an_exchange_that_fails_again_and_again_is_complained_about(
    databases: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, attempts = threading.Event(), iter(range(5))

    def fail(self: Exchanging) -> None:
        if self._shard == 0 and next(attempts, None) is None:
            failed.set()
        raise InvalidInput("the exchange is\nnot possible")

    monkeypatch.setattr(exchanging_module, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(Exchanging, "_exchange", fail)
    with Town(databases.address("shop"), tmp_path, OPTIONS, shards=2) as town:
        assert failed.wait(60)
        complaints = [complaint for complaint in town.engines[0].complaints if "exchange" in complaint]
    assert complaints == ["shard 0 could not exchange with the others: InvalidInput: the exchange is"]


def test_a_lost_or_other_payload_is_noticed(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = databases.address("shop")
    with Town(address, tmp_path, OPTIONS, shards=2) as town:
        rate(town, 10)
        town.settle()
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        outside.execute("UPDATE albatross.payloads SET content = content || 'x' WHERE version = 1")
    capsys.readouterr()
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path)]) != 0
    assert "the payloads of version 1 are not those" in capsys.readouterr().err


def test_what_several_shards_cannot_do_is_refused(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = databases.address("shop")
    for arguments, sentence in (
        (["--shards", "2", "--policy", "pts"], "policy 'pts' runs on one shard"),
        (["--shards", "0"], "accepted: 1 to 256"),
    ):
        assert main(["cluster", "init", address, "--scale", "1..5", *arguments]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean", "--shards", "2"]) == 0
    for command in (
        ["serve", address],
        ["verify", address],
        ["backup", address, str(tmp_path / "copy")],
        ["doctor", address, "--accept-loss"],
    ):
        assert main(command) == 2
        assert "has 2 shards" in capsys.readouterr().err


def test_shards_that_lost_their_ends_go_on_when_told_so(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As when a replica that was behind is promoted: logs and heads are consistent, and older than the snapshots."""
    address = databases.address("shop")
    with Town(address, tmp_path, Options(policy=ItemMean(), scale=(1, 5)), exchange=False) as town:
        rate(town, 20)
        heads = [engine.ask(AskVersion()).seq for engine in town.engines]
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        for shard, seq in enumerate(heads):
            outside.execute("DELETE FROM albatross.log WHERE shard = %s AND seq = %s", (shard, seq))
        command = ["cluster", "accept-loss", address, "--snapshots", str(tmp_path)]
        assert main(command) == 2  # the heads say that there is more
        assert "No command can mend this" in capsys.readouterr().err
        for shard, seq in enumerate(heads):
            outside.execute("DELETE FROM albatross.handles WHERE shard = %s AND seq = %s", (shard, seq))
            last = "(SELECT seq, chain FROM albatross.log WHERE shard = %s ORDER BY seq DESC LIMIT 1)"
            outside.execute(f"UPDATE albatross.shards SET (seq, chain) = {last} WHERE shard = %s", (shard, shard))
    with pytest.raises(DamagedLog, match="albatross cluster accept-loss"), Town(address, tmp_path):
        pass
    assert main(command) == 0
    assert f"shard 1: from now on the log ends at event {heads[1] - 1}" in capsys.readouterr().out
    with Town(address, tmp_path) as town:
        assert [engine.ask(AskVersion()).seq for engine in town.engines] >= [head - 1 for head in heads]
        assert town.ask(AskVersion()).ratings == 18
