"""Connections between fronts and shards: who may speak, and what becomes of requests when a connection breaks."""

import asyncio
import contextlib
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import pytest

from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import NotReady
from albatross.service.api.requests import AskVersion, Feedback, Recommend, Request
from albatross.service.cluster.lines import listening as listening_module
from albatross.service.cluster.lines import router as router_module
from albatross.service.cluster.lines.addresses import ShardAddress
from albatross.service.cluster.lines.frames import HEAD, MOST_BYTES, RANDOM, Frames, proof_of, random_number
from albatross.service.cluster.lines.links import Link
from albatross.service.cluster.lines.listening import Listening
from albatross.service.cluster.lines.packing import packed_answer, packed_request, unpacked_answer
from albatross.service.cluster.lines.router import Router
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Promise

SECRET = random_number()


class Served:
    """An engine that listens for fronts."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine(folder, Options(policy=ItemMean(), scale=(1, 5)))
        self.engine.wait_ready()
        self.owned = True
        self.listening = Listening(self.engine, "127.0.0.1", SECRET, lambda: self.owned)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.listening.port), timeout=60)

    def enter(self, secret: bytes = SECRET) -> tuple[socket.socket, bytes]:
        """A connection that has shown a proof, and what came back."""
        connected, second = self.connect(), random_number()
        first = received(connected, RANDOM)
        connected.sendall(second + proof_of(secret, "front", first, second))
        shown = received(connected, RANDOM)
        assert shown in (b"", proof_of(secret, "shard", first, second))
        return connected, shown


def received(connected: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer if the other side hangs up."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while len(found) < count and (part := connected.recv(count - len(found))):
            found += part
    return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "shop")
    yield served
    served.engine.close()
    served.listening.close()


def test_a_shard_without_descriptors_takes_connections_again_later(served: Served) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as first, socket.socket() as second:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # all below are in use
        try:
            first.connect(("127.0.0.1", served.listening.port))  # it may get the descriptor that the waiting thread has already
            second.connect(("127.0.0.1", served.listening.port))
            second.settimeout(0.3)
            with pytest.raises(TimeoutError):  # nobody has taken it
                second.recv(RANDOM)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        second.settimeout(60)
        assert len(received(second, RANDOM)) == RANDOM


class Fronted:
    """A front with one shard, in an event loop of its own."""

    def __init__(self, port: int, secret: bytes = SECRET) -> None:
        self.address = ShardAddress(1, "127.0.0.1", port, secret)
        self.tries = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._keeper, self._ended = threading.Thread(target=self._keep), threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self.link: Link = self.do(Link)
        self.router = Router(self.link.call, 1_000)
        self.link.on_reached, self.link.on_lost = self.router.reached, lambda: None
        self._keeper.start()
        return self

    def _keep(self) -> None:
        """As long as there is no connection, try to make one."""
        while not self._ended.wait(0.01):
            if not self.link.connected:
                self.tries += 1
                self.do(lambda: self.link.follow(self.address))

    def do(self, act: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def cut(self) -> None:
        """Cut the connection, if there is one."""
        if (speaking := self.link._speaking) is not None and speaking._transport is not None:
            self.do(speaking._transport.abort)

    def send(self, request: Request[Any]) -> "Future[Any]":
        promise = Promise(request, Future())
        assert self.router.put([promise]) == []
        return promise.future

    def __exit__(self, *_: object) -> None:
        self.router.close()
        self._ended.set()
        self._keeper.join()
        self.do(self.link.close)
        self.do(lambda: None)  # what that has begun ends
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def rating(number: int) -> Feedback:
    return Feedback(f"e{number}", 3, user=f"u{number % 7}", item="tea")


def test_a_front_and_a_shard_that_know_the_secret_speak(served: Served) -> None:
    with Fronted(served.listening.port) as front:
        answers = [front.send(rating(number)) for number in range(50)]
        assert sorted(answer.result(60).seq for answer in answers) == list(range(3, 53))  # after the beginning and the item
        assert front.send(Recommend("ann")).result(60).item == "tea"


def test_without_the_secret_nothing_is_read(served: Served) -> None:
    connected, shown = served.enter(secret=random_number())
    with connected:
        assert shown == b""  # it was hung up on, and learned nothing
    connected, shown = served.enter()
    with connected:
        connected.sendall(packed_request(1, rating(1)))
        head = received(connected, HEAD.size)
        content = received(connected, HEAD.unpack(head)[0])
        assert not isinstance(unpacked_answer(content, rating(1)), BaseException)
    assert served.engine.ask(AskVersion()).ratings == 1


def test_a_proof_is_of_no_use_on_another_connection(served: Served) -> None:
    """Who has heard a front prove itself cannot repeat it: each connection has its own random numbers."""
    second = random_number()
    with served.connect() as one, served.connect() as other:
        first = received(one, RANDOM)
        received(other, RANDOM)
        shown = second + proof_of(SECRET, "front", first, second)
        other.sendall(shown)
        assert received(other, RANDOM) == b""
        one.sendall(shown)
        assert received(one, RANDOM) == proof_of(SECRET, "shard", first, second)


def test_a_front_tells_nothing_to_who_is_not_its_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port may be another program's by now. It gets a proof that it cannot use, and no request."""
    heard = b""
    with socket.create_server(("127.0.0.1", 0)) as stranger, Fronted(stranger.getsockname()[1]) as front:
        answer = front.send(rating(1))
        for _ in range(2):  # it is tried again, and tells nothing again
            accepted, _ = stranger.accept()
            with accepted:
                accepted.sendall(random_number())
                heard += received(accepted, 2 * RANDOM)
                accepted.sendall(random_number())
                heard += received(accepted, 1)
        assert len(heard) == 4 * RANDOM
        assert not front.router.readiness.ready
        assert not answer.done()
        monkeypatch.setattr(router_module, "MOST_SECONDS", -1.0)
        assert isinstance(answer.exception(60), NotReady)


@pytest.mark.parametrize("length", [MOST_BYTES + 1, 2**32 - 1])
def test_a_message_that_is_too_long_ends_the_connection_at_once(served: Served, length: int) -> None:
    connected, _ = served.enter()
    with connected:
        connected.sendall(HEAD.pack(length, 1) + b"x" * 1_000)
        assert received(connected, 1) == b""
    with Fronted(served.listening.port) as front:  # others are served
        assert front.send(rating(2)).result(60).applied


def test_what_is_no_request_is_refused_and_the_others_are_answered(served: Served) -> None:
    connected, _ = served.enter()
    with connected:
        connected.sendall(HEAD.pack(4, 5) + b"\x02hi!" + packed_request(6, rating(1)))
        frames: list[tuple[int, bytes]] = []
        reading = Frames()
        while len(frames) < 2:
            frames += reading.feed(connected.recv(2**16))
        assert [number for number, _ in frames] == [5, 6]
        assert str(unpacked_answer(frames[0][1], rating(1))) == "the shard does not know such a request"


@pytest.mark.parametrize("part", [b"", b"x", b"x" * (2 * RANDOM - 1)])
def test_who_does_not_prove_anything_is_hung_up_on(served: Served, monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    monkeypatch.setattr(listening_module, "PROOF_SECONDS", 0.05)
    with served.connect() as connected:
        connected.sendall(part)
        assert len(received(connected, 2**10)) == RANDOM  # and then nothing more
    served.enter()[0].close()


def test_those_who_prove_nothing_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_module, "MOST_UNPROVED", 2)
    served = Served(tmp_path)
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(served.connect()) for _ in range(2)]
        for connected in waiting:
            assert len(received(connected, RANDOM)) == RANDOM
        late = stack.enter_context(served.connect())
        assert received(late, RANDOM) == b""
    served.engine.close()
    served.listening.close()


def test_nothing_is_lost_and_nothing_counts_twice_when_connections_are_cut(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "AGAIN_SECONDS", 0.001)
    with Fronted(served.listening.port) as front:
        answers: list[Future[Any]] = []
        for turn in range(20):
            answers += [front.send(rating(number)) for number in range(turn * 30, turn * 30 + 30)]
            answers[turn * 30].result(60)  # so there is a connection, and some of the others are under way
            front.cut()
        assert all(answer.result(60).applied for answer in answers)
        assert front.tries > 1
    assert served.engine.ask(AskVersion()).ratings == 600


def test_a_shard_that_may_have_been_replaced_says_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paused for longer than its lease: even reads are not answered from its model, until it knows that it is the owner."""
    monkeypatch.setattr(router_module, "AGAIN_SECONDS", 0.001)
    with Fronted(served.listening.port) as front:
        assert front.send(rating(1)).result(60).applied
        served.owned = False
        asked = front.send(AskVersion())
        while front.router.readiness.ready:
            pass  # the refusal is on its way
        assert not asked.done()
        served.owned = True
        assert asked.result(60).ratings == 1


def test_a_front_does_not_take_an_answer_to_nothing(served: Served) -> None:
    with Fronted(served.listening.port) as front:
        front.send(rating(1)).result(60)
        (line,) = served.listening._lines
        line._send(packed_answer(99, NotReady("nobody has asked")))
        assert front.send(rating(2)).result(60).applied  # on another connection
        assert front.tries > 1


def test_a_front_that_does_not_read_keeps_nobody_waiting(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers wait in memory, up to a limit; then it is cut off. The engine goes on meanwhile."""
    monkeypatch.setattr(listening_module, "MOST_UNSENT", 2**20)
    connected, _ = served.enter()
    with connected:
        lines = served.listening._lines
        number = 0
        while not lines:
            pass  # the proof has only just been sent
        while lines:  # until it is cut off
            with contextlib.suppress(OSError):
                connected.sendall(b"".join(packed_request(number + step, AskVersion("none")) for step in range(100)))
            number += 100
            assert served.engine.ask(AskVersion("none")).seq == 1
        assert number > 1_000
