"""The page for an arena that runs in this process. The arena sends pictures; the page sets its speed.

It uses the same wire, names and files as a recommender, without an engine, a folder or keys. Only this machine can reach it.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from albatross.service.api.errors import BadValue, MethodNotAllowed, NotFound, NotReady, Overloaded, Refused
from albatross.service.api.route import EVENTS, JSON
from albatross.service.http.access.names import LOOPBACK, Names
from albatross.service.http.documents.pages import page_files
from albatross.service.http.metrics import Meter
from albatross.service.http.news import MOST_STREAMS
from albatross.service.http.problems import MEDIA_TYPE, headers_of, of_error
from albatross.service.http.strict_json import read_as
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.crowd import Crowd
from albatross.service.http.wire.exchange import Exchange

FASTEST = 1e12
"""Steps a second: no limit."""
KEEP_UP_SECONDS = 1.0
DRAIN_SECONDS = 1.0
NOTHING_NEW = b": nothing new\n\n"

PICTURE, STREAM, SPEED = b"/v1/arena", b"/v1/arena/stream", b"/v1/arena/speed"
GET, READ = (b"GET",), (b"GET", b"HEAD")

encode = msgspec.json.Encoder().encode


class Speed(msgspec.Struct, forbid_unknown_fields=True):
    """Steps per second. None: no limit. 0: pause."""

    speed: float | None


class Stage:
    """Shows pictures and holds the speed. The arena's thread calls `show` and `allow`; the rest belongs to one event loop."""

    def __init__(self, speed: float = FASTEST) -> None:
        self.wire = Meter()
        self.crowd = Crowd(4 * MOST_STREAMS)
        self._names = Names(LOOPBACK)
        self._files = page_files("arena")
        self._paths: dict[bytes, tuple[tuple[bytes, ...], Callable[[Exchange], None]]] = {
            PICTURE: (GET, self._answer_picture),
            STREAM: (GET, self._answer_stream),
            SPEED: ((b"POST",), self._set_speed),
            **dict.fromkeys(self._files, (READ, self._answer_file)),
        }
        self._speed, self._changed = speed, threading.Condition()
        self._picture = b""
        self._listeners: dict[Exchange, bool] = {}
        """The listeners, and whether each has the newest picture."""
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    # Called by the arena's thread.

    def show(self, picture: dict[str, Any]) -> None:
        """Send the next picture to all listeners."""
        encoded = encode(picture)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell, encoded)

    def allow(self) -> float:
        """Steps per second. Waits while the speed is 0."""
        with self._changed:
            while self._speed == 0:
                self._changed.wait()
            return self._speed

    @contextmanager
    def serve(self, listening: socket.socket) -> Iterator[None]:
        """Serve in a thread of its own, within this context."""
        begun, loop = threading.Event(), asyncio.new_event_loop()

        async def serving() -> None:
            server = await loop.create_server(lambda: Connection(self, self.crowd), sock=listening)
            begun.set()
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self.crowd.watch()), tasks.create_task(self._keep_up())]
                await self._ending.wait()
                server.close()
                for task in beside:
                    task.cancel()
            for exchange in list(self._listeners):
                exchange.line.finish(exchange)
            await self.crowd.disperse(DRAIN_SECONDS)

        def run() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serving())

        thread = threading.Thread(target=run, name="stage")
        thread.start()
        begun.wait()
        self._loop = loop
        try:
            yield
        finally:
            self._loop = None
            loop.call_soon_threadsafe(self._ending.set)
            thread.join()

    # Called by a connection.

    def open(self, exchange: Exchange) -> None:
        """The head has arrived: admit or refuse the request. May answer at once."""
        try:
            self._names.check(exchange)
            if _path_of(exchange) not in self._paths:
                raise NotFound(f"there is no such path; accepted: /, {PICTURE.decode()}, {STREAM.decode()}, {SPEED.decode()}")
            methods, _ = self._paths[_path_of(exchange)]
            if exchange.method not in methods:
                accepted = b", ".join(methods)
                error = MethodNotAllowed(f"the path has another method; accepted: {accepted.decode()}")
                self.refuse(exchange, error, b"allow: %b\r\n" % accepted)
                return
            exchange.admitted = True
        except Refused as error:
            self.refuse(exchange, error)

    def act(self, exchange: Exchange) -> None:
        """A request has arrived completely: answer it."""
        try:
            self._paths[_path_of(exchange)][1](exchange)
        except Exception as error:
            self.refuse(exchange, error)

    def leave(self, exchange: Exchange) -> None:
        """There is nothing to free."""

    def refuse(self, exchange: Exchange, error: BaseException, extra: bytes = b"") -> None:
        """Answer with an error."""
        if not exchange.answered:
            content = of_error(error)
            exchange.answer(content.status, MEDIA_TYPE, encode(content), headers_of(error) + extra)

    # Answers.

    def _answer_file(self, exchange: Exchange) -> None:
        found = self._files[_path_of(exchange)]
        exchange.answer(200, found.kind, found.content, found.headers)

    def _answer_picture(self, exchange: Exchange) -> None:
        if not self._picture:
            raise NotReady("nothing has begun yet")
        exchange.answer(200, JSON.encode(), self._picture)

    def _answer_stream(self, exchange: Exchange) -> None:
        if len(self._listeners) >= MOST_STREAMS:
            raise Overloaded(f"{MOST_STREAMS} streams are open; accepted: no more")
        self._listeners[exchange] = False
        exchange.on_end = self._forget
        exchange.begin_stream(EVENTS.encode())
        exchange.line.write(exchange, self._speed_event())
        self._send_picture(exchange)

    def _forget(self, listener: Exchange) -> None:
        self._listeners.pop(listener, None)

    def _set_speed(self, exchange: Exchange) -> None:
        wanted = read_as(exchange.take_body(), Speed).speed
        if wanted is not None and not 0 <= wanted <= FASTEST:
            raise BadValue(f"speed is {wanted:g}; accepted: steps a second, 0 to wait, null for no limit")
        with self._changed:
            self._speed = FASTEST if wanted is None else float(wanted)
            self._changed.notify_all()
        exchange.answer(200, JSON.encode(), self._speed_told())
        for listener in list(self._listeners):
            listener.line.write(listener, self._speed_event())

    def _speed_told(self) -> bytes:
        return encode(Speed(None if self._speed == FASTEST else self._speed))

    def _speed_event(self) -> bytes:
        return _event(b"speed", self._speed_told())

    def _tell(self, picture: bytes) -> None:
        self._picture = picture
        for listener in list(self._listeners):
            self._send_picture(listener)

    def _send_picture(self, listener: Exchange) -> None:
        self._listeners[listener] = bool(self._picture) and listener.line.write(listener, _event(b"picture", self._picture))

    async def _keep_up(self) -> None:
        """Send the newest picture to listeners that missed one because their line was full, and a sign of life to the others."""
        while True:
            await asyncio.sleep(KEEP_UP_SECONDS)
            for listener, newest in list(self._listeners.items()):
                if newest:
                    listener.line.write(listener, NOTHING_NEW)
                else:
                    self._send_picture(listener)


def _path_of(exchange: Exchange) -> bytes:
    return exchange.url.partition(b"?")[0]


def _event(kind: bytes, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind, data)
