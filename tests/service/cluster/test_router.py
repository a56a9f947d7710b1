"""What a front does with requests for a shard: together, in their order, and again where the shard is gone."""

import copyreg
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from albatross.service.api.answers import Accepted, BatchAccepted, Refusal, Series
from albatross.service.api.errors import BadValue, NotReady, Overloaded
from albatross.service.api.requests import AskSeries, Feedback, FeedbackBatch, ForgetUser, Request
from albatross.service.cluster import router as router_module
from albatross.service.cluster.lanes import Lanes
from albatross.service.cluster.packing import pack_batches, unpacked_answers, unpacked_batch
from albatross.service.cluster.router import CALLS, WORTH, Router, Settled
from albatross.service.engine.sharing import AskSums, Sums
from albatross.service.engine.tickets import Promise
from albatross.service.storage.placing import shard_of


class FarShard:
    """Takes calls, and answers when a test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], Future[Settled]]] = []
        self._changed = threading.Condition()

    def __call__(self, requests: list[Request[Any]]) -> "Future[Settled]":
        future: Future[Settled] = Future()
        with self._changed:
            self.calls.append(([request.event_id for request in requests if isinstance(request, Feedback)], future))
            self._changed.notify_all()
        return future

    def wait_for(self, count: int) -> list[str]:
        """The events of the last call, once there were so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, 60)
        return self.calls[count - 1][0]

    def answer(self, call: int) -> None:
        events, future = self.calls[call - 1]
        future.set_result([Accepted(1, True, False, 1) if name != "bad" else BadValue("bad") for name in events])

    def lose(self, call: int) -> None:
        self.calls[call - 1][1].set_exception(ConnectionError("the shard is gone"))


@pytest.fixture
def shard() -> FarShard:
    return FarShard()


@pytest.fixture
def router(shard: FarShard) -> Iterator[Router]:
    router = Router(shard, most=10)
    yield router
    router.close()


def ask(router: Router, *names: str) -> list[Promise]:
    promises = [Promise(Feedback(name, 3, user="ann", item="tea"), Future()) for name in names]
    for refused in router.put(promises):
        assert isinstance(refused, Promise)
        assert refused.error is not None
        refused.future.set_exception(refused.error)
    return promises


def test_all_that_waits_goes_in_one_call(router: Router, shard: FarShard) -> None:
    first = ask(router, "first")
    assert shard.wait_for(1) == ["first"]
    rest = ask(router, "a", "bad") + ask(router, "b")
    assert len(shard.calls) == 1  # so few wait for the call before
    shard.answer(1)
    assert shard.wait_for(2) == ["a", "bad", "b"]
    shard.answer(2)
    assert [promise.future.result(60).applied for promise in (*first, rest[0], rest[2])] == [True] * 3
    assert isinstance(rest[1].future.exception(60), BadValue)
    assert router.readiness.ready


def test_many_do_not_wait_for_the_call_before(router: Router, shard: FarShard) -> None:
    first = ask(router, "first")
    shard.wait_for(1)
    many = [Promise(FeedbackBatch([Feedback(f"{place} {number}", 3, user="ann", item="tea") for number in range(WORTH)]), Future())
            for place in range(2)]  # fmt: skip
    router.put(many[:1])
    shard.wait_for(CALLS)
    router.put(many[1:])
    assert len(shard.calls) == CALLS  # no more are under way at one time
    shard.answer(1)
    shard.wait_for(CALLS + 1)
    assert first[0].future.result(60).applied
    for call, promise in enumerate(many, start=2):
        shard.calls[call - 1][1].set_result([BatchAccepted([])])
        assert promise.future.result(60) == BatchAccepted([])


def test_what_a_lost_shard_did_not_answer_is_asked_again_in_order(router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "AGAIN_SECONDS", 0.001)
    asked = ask(router, "a", "b")
    shard.wait_for(1)
    shard.lose(1)
    assert shard.wait_for(2) == ["a", "b"]
    assert not router.readiness.ready
    shard.answer(2)
    assert all(promise.future.result(60).applied for promise in asked)
    assert router.readiness.ready


def test_nobody_waits_for_the_answer_to_what_takes_long(router: Router, shard: FarShard) -> None:
    slow = Promise(ForgetUser("ann"), Future())
    first = ask(router, "first")
    shard.wait_for(1)
    router.put([slow, *(later := [Promise(Feedback("a", 3, user="ann", item="tea"), Future())])])
    assert shard.wait_for(2) == []  # the slow one, alone, and while the first is under way
    shard.answer(1)
    assert shard.wait_for(3) == ["a"]
    shard.answer(3)
    (last,) = ask(router, "b")
    assert shard.wait_for(4) == ["b"]
    shard.answer(4)
    assert all(promise.future.result(60).applied for promise in (*first, *later, last))
    shard.calls[1][1].set_result([BadValue("nobody")])
    assert isinstance(slow.future.exception(60), BadValue)


def test_nobody_waits_for_ever(router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "MOST_SECONDS", -1.0)
    (asked,) = ask(router, "a")
    shard.wait_for(1)
    shard.lose(1)
    assert isinstance(asked.future.exception(60), NotReady)


def test_more_than_may_wait_is_refused_and_closing_answers_what_waits(shard: FarShard) -> None:
    router = Router(shard, most=3)
    promises = ask(router, "first")
    shard.wait_for(1)
    promises += ask(router, "a", "b", "c")
    assert isinstance(ask(router, "d")[0].future.exception(60), Overloaded)
    closing = threading.Thread(target=router.close)
    closing.start()
    for call in (1, 2):
        shard.wait_for(call)
        shard.answer(call)
    closing.join()
    assert all(promise.future.result(60).applied for promise in promises)
    assert isinstance(ask(router, "late")[0].future.exception(60), NotReady)


class Counting:
    """A shard with so many ratings, all of them 3, while it is there. Every call is answered before it returns."""

    def __init__(self, ratings: int) -> None:
        self.ratings = ratings
        self.away = False

    def __call__(self, requests: list[Request[Any]]) -> "Future[Settled]":
        future: Future[Settled] = Future()
        if self.away:
            future.set_exception(ConnectionError("the shard is gone"))
        else:
            assert {type(request) for request in requests} == {AskSums}
            rows = [[1.0, 3.0, 0.0, 0.0, 0.0, 9.0]] * self.ratings + [[0.0] * 6] * (512 - self.ratings)
            future.set_result([Sums(1, self.ratings, rows) for _ in requests])
        return future


def test_how_it_goes_is_shown_while_a_shard_is_away() -> None:
    shards = [Counting(4), Counting(6)]
    lanes = Lanes(shards, most=10)
    for router in lanes.routers:
        router.reached()

    def ratings() -> int:
        promise: Promise = Promise(AskSeries(), Future())
        assert lanes.put([promise]) == []
        series = promise.future.result(60)
        assert isinstance(series, Series)
        return sum(series.ratings)

    assert ratings() == 10
    shards[0].ratings, shards[1].ratings, shards[1].away = 5, 7, True
    assert ratings() == 5 + 6  # of the second what it said last, found out by asking it
    assert not lanes.readiness.ready
    assert ratings() == 5 + 6  # and without asking
    shards[1].away = False
    lanes.routers[1].reached()
    assert ratings() == 5 + 7
    lanes.close()


def test_batches_travel_as_bytes() -> None:
    before = dict(copyreg.dispatch_table)
    try:
        pack_batches()
        batch = FeedbackBatch([Feedback("a", 3.5, user="ann", item="tea"), Feedback("b", decision_id="1-x", event="click")])
        answers = BatchAccepted([Accepted(7, True, False, 9), Refusal(422, "bad-value", "rating is 9")])
        for sent in (batch, answers):
            content = pickle.dumps(sent)
            assert pickle.loads(content) == sent
            assert b"Feedback" not in content.replace(b"FeedbackBatch", b"")  # no objects one by one
            assert b"Accepted" not in content
        assert unpacked_batch.__module__ == unpacked_answers.__module__  # what the other process must find
    finally:
        copyreg.dispatch_table.clear()
        copyreg.dispatch_table.update(before)


def test_users_of_other_shards_are_served_while_one_is_congested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "PATIENCE", -1.0)  # whatever waits has waited too long
    shards = [FarShard(), FarShard()]
    lanes = Lanes(shards, most=10)
    for router in lanes.routers:
        router.reached()
    names = [next(name for name in map(str, range(99)) if shard_of(name, 2) == shard) for shard in range(2)]
    asked = [Promise(Feedback(f"e{place}", 3, user=names[shard], item="tea"), Future()) for place, shard in enumerate((0, 0, 0, 1))]
    assert lanes.put(asked[:1]) == []
    shards[0].wait_for(1)
    assert lanes.put(asked[1:2]) == []  # waits for the call before
    assert not lanes.congested
    assert lanes.put(asked[2:]) == asked[2:3]
    assert isinstance(asked[2].error, Overloaded)
    for shard, calls in zip(shards, ((1, 2), (1,)), strict=True):
        for call in calls:
            shard.wait_for(call)
            shard.answer(call)
    assert all(promise.future.result(60).applied for promise in (*asked[:2], asked[3]))
    lanes.close()
