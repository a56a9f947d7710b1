"""One request and its answer: its state while it arrives, and how the answer is sent."""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from albatross.service.api.errors import Overloaded
from albatross.service.http.metrics import Meter

if TYPE_CHECKING:
    from albatross.service.http.access.keys import Key
    from albatross.service.http.application import Application, ServedRoute

HEADERS = frozenset({b"host", b"origin", b"authorization", b"content-length", b"transfer-encoding", b"expect"})
"""The only header fields that are read."""

GONE = 499
"""The status under which requests are counted whose client left before the answer, as some proxies do."""
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Carrier(Protocol):
    """What an exchange needs of its connection."""

    def receive(self, exchange: "Exchange", body: bytes) -> None:
        """A part of the body."""

    def send(self, exchange: "Exchange", data: bytes) -> None:
        """The whole answer."""

    def write(self, exchange: "Exchange", data: bytes) -> bool:
        """A part of an answer that ends with the connection. Returns whether it was sent."""

    def proceed(self) -> None:
        """Go on: what was waited for has arrived."""

    def finish(self, exchange: "Exchange") -> None:
        """There are no more parts."""

    def release(self, exchange: "Exchange") -> None:
        """The exchange is over: free what it held."""


class Exchange:
    """A request, from its first byte to the end of its answer. Belongs to the event loop."""

    __slots__ = (
        "acted",
        "admitted",
        "answered",
        "began",
        "body",
        "complete",
        "cors",
        "headers",
        "held",
        "keep_alive",
        "key",
        "line",
        "meter",
        "method",
        "on_end",
        "owner",
        "placed",
        "served",
        "shed",
        "size",
        "streaming",
        "url",
    )

    def __init__(self, line: Carrier) -> None:
        self.line = line
        self.began = 0.0
        """When its handling began."""
        self.url = self.method = b""
        self.headers: dict[bytes, bytes] = {}
        self.keep_alive = True
        self.body: bytes | bytearray = b""
        self.size = 0
        """Bytes of the body so far."""
        self.held = 0
        """Bytes of the body that count as held in memory."""
        self.complete = False
        """Whether all of the request has arrived."""
        self.admitted = False
        """Whether it passed admission."""
        self.acted = False
        self.key: Key | None = None
        self.placed = False
        """Whether it has a place among the requests in flight."""
        self.answered = False
        self.streaming = False
        """Whether the answer continues until one side closes the connection."""
        self.shed = False
        """Whether it was refused for overload."""
        self.cors = b""
        """Header lines for a page of another allowed origin."""
        self.owner: Application | None = None
        """The application it belongs to, if several services share the port."""
        self.served: ServedRoute | None = None
        self.meter: Meter | None = None
        self.on_end: Callable[[Exchange], None] | None = None
        """Called when it is over, also for a stream."""

    def add_header(self, name: bytes, value: bytes) -> None:
        """A repeated field becomes a joined value, which no check accepts."""
        self.headers[name] = value if name not in self.headers else b"%b, %b" % (self.headers[name], value)

    def take_body(self) -> bytes:
        body, self.body = self.body, b""
        return bytes(body)

    def answer(self, status: int, kind: bytes, body: bytes, extra: bytes = b"") -> None:
        """Send the only answer. If the connection is gone it is not sent, but it is counted."""
        if self.answered:
            return
        self.answered = True
        self.shed = status == Overloaded.status
        data = b"%bcontent-type: %b\r\n%b%b%bcontent-length: %d\r\n\r\n%b" % (
            STATUS_LINES[status],
            kind,
            extra,
            self.cors,
            b"" if self.keep_alive else b"connection: close\r\n",
            len(body),
            b"" if self.method == b"HEAD" else body,
        )
        self._end(status)
        if self.on_end is not None:
            self.on_end(self)
        self.line.send(self, data)

    def answer_empty(self, extra: bytes) -> None:
        """Send an answer without a body."""
        if not self.answered:
            self.answered = True
            self._end(204)
            self.line.send(self, b"%b%b%b\r\n" % (STATUS_LINES[204], extra, self.cors))

    def begin_stream(self, kind: bytes) -> None:
        """Send the head of an answer that ends with the connection."""
        self.keep_alive, self.streaming = False, True
        data = b"%bcontent-type: %b\r\ncache-control: no-store\r\n%bconnection: close\r\n\r\n" % (STATUS_LINES[200], kind, self.cors)
        self._end(200)
        self.line.write(self, data)

    def abandon(self) -> None:
        """The connection is gone, perhaps before the answer."""
        if not self.answered:
            self.answered = True
            self._end(GONE)
        if self.on_end is not None:
            self.on_end(self)

    def _end(self, status: int) -> None:
        self.body = b""  # it is not needed and no longer counted
        self.line.release(self)
        if self.meter is not None:
            self.meter.observe(status, time.monotonic() - self.began)
            self.meter = None
