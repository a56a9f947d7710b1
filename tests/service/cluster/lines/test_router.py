"""What a front does with requests for a shard: at once, in their order, and again where the shard is gone."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from albatross.service.api.answers import Accepted, Decision, Series
from albatross.service.api.errors import BadValue, EventInFlight, NotReady, Overloaded, Refused
from albatross.service.api.requests import AskSeries, Feedback, ForgetUser, Recommend
from albatross.service.cluster.lanes import Lanes
from albatross.service.cluster.lines import router as router_module
from albatross.service.cluster.lines.router import Router, Settle
from albatross.service.engine.sharing import AskSums, Sums
from albatross.service.engine.tickets import Promise, Settled, Ticket
from albatross.service.storage.placing import shard_of


class FarShard:
    """Takes calls, and answers when a test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[Ticket], Settle]] = []
        self._changed = threading.Condition()

    def __call__(self, tickets: Sequence[Ticket], settle: Settle) -> None:
        with self._changed:
            self.calls.append((list(tickets), settle))
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        """The events of the last call, once there were so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, 60)
        return [ticket.request.event_id for ticket in self.calls[count - 1][0] if isinstance(ticket.request, Feedback)]

    def answer(self, call: int, *names: str) -> None:
        """Answer a call, or these events of it."""
        tickets, settle = self.calls[call - 1]
        asked = [(ticket, ticket.request.event_id) for ticket in tickets if isinstance(ticket.request, Feedback)]
        settle(
            [
                (ticket, Accepted(1, True, False, 1) if name != "bad" else BadValue("bad"))
                for ticket, name in asked
                if name in (names or [name])
            ]
        )

    def refuse(self, call: int, error: BaseException) -> None:
        self.settle(call, error)

    def settle(self, call: int, result: Settled) -> None:
        tickets, settle = self.calls[call - 1]
        settle([(ticket, result) for ticket in tickets])


@pytest.fixture
def shard() -> FarShard:
    return FarShard()


@pytest.fixture
def router(shard: FarShard) -> Iterator[Router]:
    router = Router(shard, most=10)
    router.reached()
    yield router
    router.close()


def ask(router: Router, *names: str) -> list[Promise]:
    promises = [Promise(Feedback(name, 3, user="ann", item="tea"), Future()) for name in names]
    for refused in router.put(promises):
        assert isinstance(refused, Promise)
        assert refused.error is not None
        refused.future.set_exception(refused.error)
    return promises


def test_requests_go_at_once_and_each_answer_is_passed_on_as_it_comes(router: Router, shard: FarShard) -> None:
    asked = ask(router, "a", "bad", "b") + ask(router, "c")
    assert shard.wait_for(1) == ["a", "bad", "b"]
    assert shard.wait_for(2) == ["c"]  # without waiting for the first
    shard.answer(2)
    assert asked[3].future.result(60).applied
    shard.answer(1, "a", "bad")
    assert asked[0].future.result(60).applied
    assert isinstance(asked[1].future.exception(60), BadValue)
    assert not asked[2].future.done()
    shard.answer(1, "b")
    assert asked[2].future.result(60).applied
    assert router.readiness.ready


def test_before_a_shard_is_reached_requests_wait(shard: FarShard) -> None:
    router = Router(shard, most=10)
    asked = ask(router, "a") + ask(router, "b")
    assert not router.readiness.ready
    assert not router.wait_reached(0)
    router.reached()
    assert [name for call in range(1, len(shard.calls) + 1) for name in shard.wait_for(call)] == ["a", "b"]
    for call in range(1, len(shard.calls) + 1):
        shard.answer(call)
    assert all(promise.future.result(60).applied for promise in asked)
    router.close()


def test_what_a_lost_shard_did_not_answer_is_asked_again_in_order(router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "AGAIN_SECONDS", 0.001)
    asked = ask(router, "a", "b", "c")
    shard.answer(1, "b")
    tickets, settle = shard.calls[0]
    settle([(ticket, NotReady("gone")) for ticket in (tickets[0], tickets[2])])
    assert shard.wait_for(2) == ["a", "c"]
    assert not router.readiness.ready
    shard.answer(2)
    assert all(promise.future.result(60).applied for promise in asked)
    assert router.readiness.ready


@pytest.mark.parametrize("met", [EventInFlight("still"), Overloaded("too many")])
def test_what_is_sent_again_may_meet_its_first_attempt(
    router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch, met: Refused
) -> None:
    """If only the connection is lost, the shard may still be at work on the first attempt. Others are told."""
    monkeypatch.setattr(router_module, "AGAIN_SECONDS", 0.001)
    (first,) = ask(router, "a")
    shard.refuse(1, met)
    assert first.future.exception(60) is met
    (second,) = ask(router, "a")
    shard.refuse(2, NotReady("gone"))
    assert shard.wait_for(3) == ["a"]
    shard.refuse(3, met)
    assert shard.wait_for(4) == ["a"]
    shard.answer(4)
    assert second.future.result(60).applied
    assert not router._repeated


def test_a_shard_that_takes_long_over_one_request_is_not_congested(
    router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router_module, "MOST_PATIENCE", -1.0)  # whatever is under way takes too long
    slow = Promise(ForgetUser("ann"), Future())
    router.put([slow])
    assert not router.congested
    (quick,) = ask(router, "a")
    assert router.congested
    shard.answer(2)
    assert quick.future.result(60).applied
    assert not router.congested
    shard.refuse(1, BadValue("nobody"))
    assert isinstance(slow.future.exception(60), BadValue)


def test_a_shard_that_still_compiles_what_explains_is_not_congested(
    router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router_module, "MOST_PATIENCE", -1.0)  # whatever is under way takes too long
    explaining = [Promise(Recommend("ann", explain=True), Future()) for _ in range(6)]
    assert router.put(explaining) == explaining[5:]  # half of what may wait
    assert isinstance(explaining[5].error, Overloaded)
    assert not router.congested
    assert router.withheld == 5
    answers = ask(router, *"abcdefghijk")
    assert [isinstance(answer.future.exception(0), Overloaded) for answer in answers if answer.future.done()] == [True]
    shard.answer(2)
    shard.settle(1, Decision("1-a", "ann", "alb", 1, [], 0))
    assert router.withheld == 0
    (explained,) = [Promise(Recommend("ann", explain=True), Future())]
    router.put([explained])
    assert router.congested  # it is compiled, so this one is late
    shard.settle(3, NotReady("gone"))
    assert shard.wait_for(4) == []
    assert not router.congested  # the next process may have to compile it again
    shard.settle(4, Decision("1-a", "ann", "alb", 1, [], 0))
    assert explained.future.result(60).decision_id == "1-a"


def test_nobody_waits_for_ever(router: Router, shard: FarShard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "MOST_SECONDS", -1.0)
    (asked,) = ask(router, "a")
    shard.refuse(1, NotReady("gone"))
    assert isinstance(asked.future.exception(60), NotReady)


def test_more_than_may_wait_is_refused_and_closing_waits_for_answers(shard: FarShard) -> None:
    router = Router(shard, most=3)
    router.reached()
    promises = ask(router, "a", "b", "c")
    assert isinstance(ask(router, "d")[0].future.exception(60), Overloaded)
    closing = threading.Thread(target=router.close)
    closing.start()
    while not router._closed:
        pass  # the thread is on its way
    assert isinstance(ask(router, "late")[0].future.exception(60), NotReady)
    assert closing.is_alive()
    shard.answer(1)
    closing.join()
    assert all(promise.future.result(60).applied for promise in promises)


class Counting:
    """A shard with so many ratings, all of them 3, while it is there. Every call is answered before it returns."""

    def __init__(self, ratings: int) -> None:
        self.ratings = ratings
        self.away = False

    def __call__(self, tickets: Sequence[Ticket], settle: Settle) -> None:
        assert {type(ticket.request) for ticket in tickets} == {AskSums}
        rows = [[1.0, 3.0, 0.0, 0.0, 0.0, 9.0]] * self.ratings + [[0.0] * 6] * (512 - self.ratings)
        settle([(ticket, NotReady("gone") if self.away else Sums(1, self.ratings, rows)) for ticket in tickets])


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


def test_users_of_other_shards_are_served_while_one_is_congested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "MOST_PATIENCE", -1.0)  # whatever is under way takes too long
    shards = [FarShard(), FarShard()]
    lanes = Lanes(shards, most=10)
    for router in lanes.routers:
        router.reached()
    names = [next(name for name in map(str, range(99)) if shard_of(name, 2) == shard) for shard in range(2)]
    asked = [Promise(Feedback(f"e{place}", 3, user=names[shard], item="tea"), Future()) for place, shard in enumerate((0, 0, 1))]
    assert lanes.put(asked[:1]) == []
    assert not lanes.congested
    assert lanes.put(asked[1:]) == asked[1:2]
    assert isinstance(asked[1].error, Overloaded)
    for shard in shards:
        shard.answer(1)
    assert all(promise.future.result(60).applied for promise in (asked[0], asked[2]))
    lanes.close()
