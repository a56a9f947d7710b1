"""The shard's side of its connections to fronts: requests go to the engine's queue as they arrive, answers back group by group.

Each connection has a thread that reads. Answers are sent by the engine's own thread, which never waits for a front: what a front does not
read in time is sent by another thread.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence

from albatross.service.api.answers import Answer
from albatross.service.api.errors import BadValue, NotReady
from albatross.service.cluster.lines.frames import MOST_BYTES, RANDOM, Frames, is_proof, proof_of, random_number
from albatross.service.cluster.lines.packing import packed_answer, unpacked_request
from albatross.service.engine.engine import Engine
from albatross.service.engine.tickets import Ticket

PROOF_SECONDS = 5.0
"""How long a front may take to prove that it is one."""
MOST_UNPROVED = 32
"""Limit of connections that have proved nothing yet."""
MOST_UNSENT = 2 * MOST_BYTES
"""A front that leaves more than so many bytes unread is cut off."""
AGAIN_SECONDS = 0.1
"""Pause after a connection that could not be taken."""
RECEIVED = 2**18
"""Bytes received at a time."""
SILENCE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 10_000))
"""A network that is silently lost is noticed within about ten seconds."""
UNSURE = "this process may have been replaced; another will answer"


class Listening:
    """Takes connections until it is closed."""

    def __init__(self, engine: Engine, host: str, secret: bytes, is_owner: Callable[[], bool]) -> None:
        """`is_owner`: whether nobody else can have become the owner of the shard. If not, nothing is answered."""
        self._engine, self._secret, self._is_owner = engine, secret, is_owner
        self._unproved = threading.Semaphore(MOST_UNPROVED)
        self._closed = threading.Event()
        self._lines: set[_Line] = set()
        self._socket = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=MOST_UNPROVED)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name="albatross-listening", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError:  # closed, or there is no descriptor left, which may pass
                if self._closed.wait(AGAIN_SECONDS):
                    return
                continue
            if self._unproved.acquire(blocking=False):
                threading.Thread(target=self._attend, args=(accepted,), name="albatross-line", daemon=True).start()
            else:
                accepted.close()

    def _attend(self, accepted: socket.socket) -> None:
        """The main function of the thread of one connection."""
        with accepted:
            try:
                is_front = prove(accepted, self._secret)
            except OSError:
                is_front = False
            finally:
                self._unproved.release()
            if is_front:
                settle_socket(accepted)
                line = _Line(accepted, self._engine, self._is_owner)
                self._lines.add(line)
                with contextlib.suppress(OSError):  # a front that is gone asks again, another one
                    line.read()
                self._lines.discard(line)

    def close(self) -> None:
        self._closed.set()
        hang_up(self._socket)
        self._socket.close()
        for line in list(self._lines):
            line.hang_up()


def prove(accepted: socket.socket, secret: bytes) -> bool:
    """Whether the other side is a front. Then it knows that this side is a shard."""
    end = time.monotonic() + PROOF_SECONDS
    first = random_number()
    accepted.settimeout(PROOF_SECONDS)
    accepted.sendall(first)
    shown = b""
    while len(shown) < 2 * RANDOM:
        accepted.settimeout(max(end - time.monotonic(), 0.001))
        part = accepted.recv(2 * RANDOM - len(shown))
        if not part:
            return False
        shown += part
    second, proof = shown[:RANDOM], shown[RANDOM:]
    if not is_proof(proof, secret, "front", first, second):
        return False
    accepted.sendall(proof_of(secret, "shard", first, second))
    accepted.settimeout(None)
    return True


def settle_socket(connected: socket.socket) -> None:
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SILENCE:
        if hasattr(socket, name):  # not every system has all of them
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def hang_up(connected: socket.socket) -> None:
    """End a connection, also for a thread that waits for it."""
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


class _Asked(Ticket):
    """A request of a front."""

    __slots__ = ("number",)

    number: int


class _Line:
    """The connection of a front that has proved to be one."""

    def __init__(self, connected: socket.socket, engine: Engine, is_owner: Callable[[], bool]) -> None:
        self._socket, self._engine, self._is_owner = connected, engine, is_owner
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._tell = self._told  # always the same object: all answers of a group are told in one call

    def read(self) -> None:
        """Pass requests on until the front is gone."""
        frames = Frames()
        while data := self._socket.recv(RECEIVED):
            tickets: list[_Asked] = []
            for number, content in frames.feed(data):
                try:
                    request = unpacked_request(content)
                except ValueError:
                    self._send(packed_answer(number, BadValue("the shard does not know such a request")))
                    continue
                ticket = _Asked(request, self._tell)
                ticket.number = number
                tickets.append(ticket)
            if refused := self._engine.put(tickets):
                self._told(refused)

    def _told(self, tickets: Sequence[Ticket]) -> None:
        unsure = None if self._is_owner() else NotReady(UNSURE)
        parts = []
        for ticket in tickets:
            assert isinstance(ticket, _Asked)
            settled: Answer | BaseException | None = unsure or ticket.error or ticket.answer
            assert settled is not None
            parts.append(packed_answer(ticket.number, settled))
        self._send(b"".join(parts))

    def _send(self, content: bytes) -> None:
        """Send at once what the front can take, and the rest later. Never waits."""
        with self._lock:
            if not self._unsent:
                try:
                    sent = self._socket.send(content, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    return  # the front is gone; it asks again
                if sent == len(content):
                    return
                content = content[sent:]
                threading.Thread(target=self._send_rest, name="albatross-sending", daemon=True).start()
            self._unsent += content
            if len(self._unsent) > MOST_UNSENT:
                self.hang_up()

    def _send_rest(self) -> None:
        while True:
            with self._lock:
                part = bytes(self._unsent[:RECEIVED])
            if not part:
                return
            try:
                self._socket.sendall(part)
            except OSError:
                return  # `_unsent` stays, so nothing more is sent
            with self._lock:
                del self._unsent[: len(part)]
                if not self._unsent:
                    return

    def hang_up(self) -> None:
        hang_up(self._socket)
