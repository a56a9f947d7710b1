"""What most requests need is compiled before the first, by two processes if they can; the rest by another process beside serving."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from albatross import Recommender
from albatross.kernels.building import beside
from albatross.kernels.compiling import NotCompiled
from albatross.kernels.search import catalogue
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import NotReady, Overloaded, UnknownUser
from albatross.service.api.requests import (
    AskVersion,
    ForgetUser,
    JoinUsers,
    Recommend,
    SetRewards,
    UpsertItem,
    UpsertItems,
    ViewDecision,
    ViewUser,
)
from albatross.service.engine import aside, warming
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.queue import MOST_WITHHELD, RELEASED_AT_ONCE, Queue, most_withheld
from albatross.service.engine.tickets import Ticket
from albatross.service.http.wire.crowd import MOST_CONNECTIONS

SCRIPT = """
from albatross.policies.item_mean import ItemMean
from albatross.kernels.building import beside
from albatross.service.engine import warming
from albatross.service.engine.learned.options import Options, new_genesis
warming.usable_cores = lambda: 2
{change}
warming.warm(new_genesis(Options(policy=ItemMean(), scale=(1.0, 5.0))))
"""


@pytest.mark.parametrize(
    ("change", "compiled_here"),
    [
        ("", False),
        ("beside.BEGIN = 'raise SystemExit(3)'", True),
        ("warming.usable_cores = lambda: 1", True),
    ],
    ids=["by two processes", "the other one dies", "one core"],
)
def test_who_compiles_what_learns(tmp_path: Path, change: str, compiled_here: bool) -> None:
    script = SCRIPT.format(change=change)
    environment = os.environ | {"ALBATROSS_CACHE": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stderr for _ in range(2)
    )
    assert "(choose" in first
    assert ("(learn)" in first) is compiled_here
    assert second == ""  # whoever compiled it


LATER = """
from albatross import Recommender
from albatross.policies.item_mean import ItemMean
with Recommender("shop", scale=(1, 5), policy=ItemMean()) as shop:
    for user in ("ann", "visitor"):
        shop.rate_item(user, "tea", 4)
    assert shop.join("visitor", "ann").joined
"""


def test_a_join_is_compiled_by_another_process(tmp_path: Path) -> None:
    environment = os.environ | {"ALBATROSS_CACHE": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", LATER], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stderr
    assert "(choose" in told
    assert "(unite)" not in told


@pytest.fixture
def let_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """As if nothing were compiled: the other process, which compiles a part, ends only when this is called with that part."""

    @contextmanager
    def nothing_is_there() -> Iterator[None]:
        raise NotCompiled
        yield

    for part in ("then explaining", "the rest"):
        os.mkfifo(tmp_path / part)
    begin = f"""
import sys
task = sys.stdin.read()
for part in ("then explaining", "the rest"):
    if part in task:
        open({str(tmp_path)!r} + "/" + part).read()
"""
    monkeypatch.setattr(warming, "only_loaded", nothing_is_there)
    monkeypatch.setattr(warming, "usable_cores", lambda: 2)
    wanted = iter([True])
    monkeypatch.setattr(warming, "is_wanted", lambda *_: next(wanted, False))  # until the other process has begun
    monkeypatch.setattr(beside, "BEGIN", begin)
    return lambda part: (tmp_path / part).open("w").close()


def test_who_wants_an_explanation_waits_for_it_alone(tmp_path: Path, let_compile: Callable[[str], None]) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        shop.rate_item("ann", "tea", 4)
        shown = shop.recommend("ann")
        engine = shop.engine
        decided, told = engine.submit(Recommend("ann", explain=True)), engine.submit(Recommend("ann", explain="reasons"))
        viewed, read = engine.submit(ViewUser("ann")), engine.submit(ViewDecision(shown.decision_id))
        assert shop.recommend("ann").items[0].item == "tea"
        assert not any(answer.done() for answer in (decided, told, viewed, read))
        let_compile("then explaining")
        for explanation in (decided.result().explanation, told.result().explanation):
            assert explanation is not None
            assert explanation.items[0].item_ratings == 1
        assert viewed.result().ratings == 1
        assert read.result().items[0].item == "tea"


def test_who_needs_what_is_being_compiled_waits_alone(tmp_path: Path, let_compile: Callable[[str], None]) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        for user in ("ann", "visitor"):
            shop.rate_item(user, "tea", 4)
        joining, setting = shop.engine.submit(JoinUsers("visitor", "ann")), shop.engine.submit(SetRewards({"click": 2.0}))
        assert shop.recommend("ann").items[0].item == "tea"
        assert not joining.done()
        assert not setting.done()
        let_compile("then explaining")
        let_compile("the rest")
        assert joining.result().joined
        assert setting.result().events == {"click": 2.0}


def test_who_is_to_be_forgotten_is_not_joined_afterwards(tmp_path: Path, let_compile: Callable[[str], None]) -> None:
    """The join waits for the compiler. If the request to forget overtook it, the join would write the name again."""
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        for user in ("ann", "visitor"):
            shop.rate_item(user, "tea", 4)
        joining, forgetting = shop.engine.submit(JoinUsers("visitor", "ann")), shop.engine.submit(ForgetUser("ann"))
        shop.recommend("bob")
        assert not forgetting.done()
        let_compile("then explaining")
        let_compile("the rest")
        assert joining.result().joined
        assert forgetting.result().events > 1
        with pytest.raises(UnknownUser):
            shop.forget_user("visitor")


def test_who_waits_for_the_compiler_does_not_count_as_load() -> None:
    changed = threading.Condition()
    queue = Queue(changed, 6)
    with changed:
        queue.withhold(warming.is_changing)
    for number in range(3):
        queue.add(Ticket(JoinUsers(f"visitor {number}", "ann"), lambda _: None), 0.0)
    assert queue.take() == []
    assert (queue.capacity, queue.withheld) == (9, 3)
    for _ in range(6):
        queue.add(Ticket(AskVersion(), lambda _: None), 0.0)
    with changed:
        queue.withhold(None)
    assert (queue.capacity, queue.withheld) == (9, 3)  # until their turn
    assert len(queue.take()) == 6
    assert (queue.capacity, queue.withheld) == (6, 0)


def test_too_many_who_wait_for_the_compiler_refuse_only_their_like() -> None:
    changed = threading.Condition()
    queue = Queue(changed, 6)
    with changed:
        queue.withhold(warming.is_changing)
    for number in range(3):
        queue.add(Ticket(JoinUsers(f"visitor {number}", "ann"), lambda _: None), 0.0)
        assert queue.take() == []
    with pytest.raises(Overloaded, match="3 requests wait already"):
        queue.add(Ticket(JoinUsers("one more", "ann"), lambda _: None), 0.0)
    for _ in range(6):
        queue.add(Ticket(AskVersion(), lambda _: None), 0.0)
    with pytest.raises(Overloaded):
        queue.add(Ticket(AskVersion(), lambda _: None), 0.0)
    with changed:
        queue.withhold(None)
    assert [len(queue.take()) for _ in range(2)] == [6, 1]  # a join is alone
    assert len(queue.take_all()) == 2


def test_who_waited_for_the_compiler_is_answered_in_turn_with_others() -> None:
    """If all were next, nobody else would be answered for seconds."""
    changed = threading.Condition()
    queue = Queue(changed, 1_000)
    with changed:
        queue.withhold(warming.is_changing_or_explaining)
    waiting = [Ticket(ViewUser("ann"), lambda _: None) for _ in range(40)]
    for ticket in waiting:
        queue.add(ticket, 0.0)
    with changed:
        queue.withhold(None)
    queue.observe([Ticket(AskVersion(), lambda _: None)], 1e9)  # each takes as long as is possible
    answered: list[Ticket] = []
    for others in (2, 0, 1, 1):
        assert queue.capacity >= queue.withheld + 10
        for _ in range(others):
            queue.add(Ticket(AskVersion(), lambda _: None), time.monotonic())
        assert len(queue) >= others
        taken = queue.take()
        assert [type(ticket.request) for ticket in taken[:others]] == [AskVersion] * others
        assert len(taken) - others <= RELEASED_AT_ONCE
        answered += taken[others:]
    assert answered == waiting
    assert len(queue) == queue.withheld == 0


def test_a_request_to_forget_does_not_overtake_one_that_waits_for_its_turn() -> None:
    changed = threading.Condition()
    queue = Queue(changed, 100)
    with changed:
        queue.withhold(warming.is_changing)
    for number in range(RELEASED_AT_ONCE + 2):
        queue.add(Ticket(JoinUsers(f"visitor {number}", "ann"), lambda _: None), 0.0)
    with changed:
        queue.withhold(None)
    asked = [queue.take()[0].request]
    queue.add(Ticket(ForgetUser("ann"), lambda _: None), 0.0)
    while len(queue):
        asked.append(queue.take()[0].request)
    assert [type(request) for request in asked] == [JoinUsers] * (RELEASED_AT_ONCE + 2) + [ForgetUser]


@pytest.mark.parametrize(("most", "withheld"), [(1, 1), (5, 2), (100_000, MOST_WITHHELD)])
def test_half_of_the_queue_may_wait_for_the_compiler_but_not_all_connections(most: int, withheld: int) -> None:
    assert most_withheld(most) == withheld < MOST_CONNECTIONS


def test_requests_to_forget_that_wait_for_the_compiler_are_limited() -> None:
    changed = threading.Condition()
    queue = Queue(changed, 8)
    with changed:
        queue.withhold(warming.is_changing)
    queue.add(Ticket(JoinUsers("visitor", "ann"), lambda _: None), 0.0)
    for number in range(3):
        queue.add(Ticket(ForgetUser(f"u{number}"), lambda _: None), 0.0)
        assert queue.take() == []
    with pytest.raises(Overloaded, match="4 requests wait already"):
        queue.add(Ticket(ForgetUser("one more"), lambda _: None), 0.0)
    queue.add(Ticket(AskVersion(), lambda _: None), 0.0)


def test_who_came_before_waits_for_the_compiler_too_and_who_needs_it_no_longer_is_answered_in_order() -> None:
    changed = threading.Condition()
    queue = Queue(changed, 8)
    forget, view, join, late = ForgetUser("bob"), ViewUser("ann"), JoinUsers("visitor", "ann"), ForgetUser("ann")
    for request in (forget, view, join, late):
        queue.add(Ticket(request, lambda _: None), 0.0)
    with changed:
        queue.withhold(warming.is_changing_or_explaining)
        assert ([ticket.request for ticket in queue.take()], queue.withheld) == ([forget], 3)
        queue.withhold(warming.is_changing)
        assert ([ticket.request for ticket in queue.take()], queue.withheld) == ([view], 2)
        queue.withhold(None)
    assert [queue.take()[0].request for _ in range(2)] == [join, late]


def test_a_service_that_closes_does_not_wait_for_its_first_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, let_compile: Callable[[str], None]
) -> None:
    waits, wait_for = threading.Event(), beside.Beside.wait

    def noted(self: beside.Beside, enough: beside.Ending = beside.never) -> None:
        waits.set()
        wait_for(self, enough)

    monkeypatch.setattr(beside.Beside, "wait", noted)
    monkeypatch.setattr(warming, "is_wanted", lambda *_: True)  # the other process does not get there
    engine = Engine(tmp_path / "shop", Options(scale=(1.0, 5.0), policy=ItemMean()))
    assert waits.wait(60)
    closing = threading.Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(60)  # not a measure of anything: without this, the test would hang
    assert engine.readiness.phase == "closed"


def test_a_service_that_closes_ends_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, let_compile: Callable[[str], None]
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def noted(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        begun.append(subprocess.Popen(*arguments, **more))
        return begun[-1]

    monkeypatch.setattr(beside, "Popen", noted)
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        joining = shop.engine.submit(JoinUsers("visitor", "ann"))
        shop.ask(AskVersion())
    with pytest.raises(NotReady, match="closing"):
        joining.result(60)
    assert [process.returncode for process in begun] == [-signal.SIGKILL]


@pytest.mark.parametrize("found", [True, False], ids=["found", "it cannot be loaded"])
def test_a_catalogue_is_searched_when_the_search_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, let_compile: Callable[[str], None], found: bool
) -> None:
    for place in (catalogue, aside):
        monkeypatch.setattr(place, "SEARCHED_FROM", 256)
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2), floor=0.0) as shop:
        let_compile("then explaining")
        let_compile("the rest")
        shop.ask(UpsertItems([UpsertItem(f"i{number}") for number in range(600)]))
        shop.rate_item("ann", "i7", 2.0)
        agent = shop.engine._model.agent
        assert agent.n_items > 600
        assert not catalogue.is_large(agent.scratch.catalogue)
        before = shop.ask(ViewUser("ann")).top
        if not found:
            monkeypatch.setitem(warming.PARTS, "the rest", lambda *_: 1 / 0)
        let_compile("the rest")
        for thread in shop.engine._aside._warmers:
            thread.join()
        for _ in range(2):  # an engine looks whether it is there after it has answered
            shop.version()
        assert catalogue.is_large(agent.scratch.catalogue) is found
        assert shop.ask(ViewUser("ann")).top == before


def test_engines_of_a_process_have_the_rest_compiled_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, let_compile: Callable[[str], None]
) -> None:
    with ExitStack() as stack:
        shops = [stack.enter_context(Recommender(tmp_path / name, scale=(1, 5), policy=ItemMean())) for name in ("north", "south")]
        let_compile("then explaining")
        asked = [shop.engine.submit(SetRewards({"click": 2.0})) for shop in shops]
        let_compile("the rest")
        assert wait(asked, return_when=FIRST_COMPLETED).not_done
        let_compile("the rest")
        assert [answer.result().events for answer in asked] == [{"click": 2.0}] * 2
