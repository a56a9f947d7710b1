"""From bytes to requests. httptools parses; what it collects is bounded.

A client repeats the same head, except for the length of the body. Parsing it again gives the same result with a dozen calls. So a
connection remembers the last few heads.
"""

import re
from collections import deque
from typing import NamedTuple

import httptools

from albatross.service.http.logs import unforeseen
from albatross.service.http.wire.exchange import HEADERS, Carrier, Exchange

MAX_HEAD = 2**16
"""Bytes of a request line and its headers. Most servers have this limit."""
MAX_OVERHEAD = 2**16
"""Bytes after a head that are not body: sizes and extensions of chunks, and trailers …"""
OVERHEAD_RATE = 16
"""… and so many more per byte of the body, because a client may send it byte by byte."""
PIECE = 2**14
"""Bytes of a body that are parsed at once."""
SMALL_PIECE = 2**9
"""The same where new requests may begin. It bounds the number of requests that wait on one connection."""

LONGEST_REMEMBERED = 2**10
"""Limit of a remembered head in bytes …"""
MOST_REMEMBERED = 4
"""… and number of heads that a connection remembers."""
MOST_DIGITS = 5
"""Limit of digits in the length of a body, for a request with a remembered head."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([1-9][0-9]*)\r\n", re.IGNORECASE)


class RequestHead(NamedTuple):
    """A parsed head in two parts: before and after the length of the body."""

    before: bytes
    behind: bytes
    method: bytes
    url: bytes
    headers: dict[bytes, bytes]


class NotHttp(Exception):
    """The bytes are not valid HTTP."""


class HeadTooLarge(Exception):
    """The arriving head has more bytes than accepted."""


class _Body:
    """Receives the body of a request whose head was parsed before, and nothing behind it."""

    def __init__(self, receiver: "Receiver") -> None:
        self._receiver = receiver

    def on_body(self, body: bytes) -> None:
        if not self._receiver.over:
            self._receiver.on_body(body)

    def on_message_complete(self) -> None:
        if not self._receiver.over:
            self._receiver.on_message_complete()


class Receiver:
    """Bytes that arrive on one connection. The parser's callbacks only collect."""

    def __init__(self, line: Carrier) -> None:
        self._line = line
        self._parser = httptools.HttpRequestParser(self)
        self.pipeline: deque[Exchange] = deque()
        """Requests with a complete head that have not been taken yet."""
        self.receiving: Exchange | None = None
        """The request that is arriving."""
        self.in_head = False
        """Whether its head is still arriving."""
        self.over = False
        """Whether no more requests follow on this connection."""
        self._head = 0
        """Bytes of the arriving head, including what stood before it in the same piece."""
        self._length: int | None = None
        """Bytes of the arriving body, if its length was declared."""
        self._delivered = self._overhead = self._silence = 0
        """Bytes of the body so far, of other data that came with it, and since the last byte of the body."""
        self._skipped = False
        """Whether the parser skips the body of the arriving request, because it asks for another protocol."""
        self._heads: list[RequestHead] = []

    def recall(self, data: bytes) -> Exchange | None:
        """The request, if `data` is exactly one request with a remembered head and nothing else is in progress."""
        if self.receiving is not None or self.over:
            return None
        for head in self._heads:
            before, behind, method, url, headers = head
            if data.startswith(before):
                start = len(before)
                end = data.find(b"\r", start, start + MOST_DIGITS + 1)
                length = data[start:end] if end > 0 else b""
                if length.isdigit() and data.startswith(behind, end) and int(length) == len(data) - end - len(behind) > 0:
                    exchange = Exchange(self._line)
                    exchange.method, exchange.url = method, url
                    exchange.headers = {**headers, b"content-length": length}
                    exchange.body = data[end + len(behind) :]
                    exchange.size = len(exchange.body)
                    exchange.complete = True
                    return exchange
        return None

    def _remember(self, data: bytes) -> None:
        """Remember the head, if `data` was exactly one request with a body and another request may follow."""
        exchange = self.pipeline[0] if len(self.pipeline) == 1 else None
        if exchange is None or not exchange.complete or not exchange.keep_alive or not self._length or b"expect" in exchange.headers:
            return
        head = data[: len(data) - self._length]
        lengths = _LENGTH.findall(head)
        if len(head) > LONGEST_REMEMBERED or lengths != [exchange.headers[b"content-length"]] or not data.endswith(exchange.body):
            return
        start, end = _LENGTH.search(head).span(1)  # type: ignore[union-attr]
        if len(self._heads) == MOST_REMEMBERED:
            del self._heads[0]
        self._heads.append(RequestHead(head[:start], head[end:], exchange.method, exchange.url, exchange.headers))

    def feed(self, data: bytes, position: int) -> int:
        """Parse the next piece. Returns where the following piece begins. Raises `NotHttp` or `HeadTooLarge`."""
        known = self.receiving if self.in_head else None
        body = None if self.in_head else self.receiving
        clean = self.receiving is None and not self.pipeline and not position
        delivered = self._delivered
        size = self._size()
        piece = data[position : position + size] if position or len(data) > size else data
        try:
            self._parse(piece)
        except httptools.HttpParserCallbackError as error:
            unforeseen(error.__context__)
            raise NotHttp from None
        except httptools.HttpParserError:
            if not self.over:  # what comes after the last request is ignored
                raise NotHttp from None
        if self.in_head:
            self._head = len(piece) if known is not self.receiving else self._head + len(piece)
            if self._head >= MAX_HEAD:
                raise HeadTooLarge
        elif body is not None and body is self.receiving:
            self._count(len(piece), self._delivered - delivered)
        if clean and piece is data and self.receiving is None and not self.over:
            self._remember(data)
        return position + len(piece)

    def _parse(self, piece: bytes) -> None:
        """A request that asks for another protocol is answered as it is, and is the last one. Some clients ask for HTTP/2 this way."""
        try:
            self._parser.feed_data(piece)
            return
        except httptools.HttpParserUpgrade as upgrade:
            rest = piece[upgrade.args[0] :]
        if not self._skipped:
            self.over = True
            return
        self._skipped = False
        coding = self.receiving.headers.get(b"transfer-encoding")  # type: ignore[union-attr]
        framing = b"content-length: %d" % (self._length or 0) if coding is None else b"transfer-encoding: " + coding
        self._parser = httptools.HttpRequestParser(_Body(self))
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n\r\n" % framing)
        if rest:
            self._parser.feed_data(rest)

    def _size(self) -> int:
        """Size of the next piece. It is large only inside a body, so that one piece cannot become hundreds of requests."""
        if self.in_head:
            return min(SMALL_PIECE, MAX_HEAD - self._head)
        if self.receiving is None or self._length is None:
            return SMALL_PIECE
        return min(PIECE, max(SMALL_PIECE, self._length - self._delivered))

    def _count(self, fed: int, delivered: int) -> None:
        """Refuse endless data that is not body: the parser collects it in time quadratic in its length."""
        self._overhead += fed - delivered
        self._silence = fed if delivered else self._silence + fed
        if self._silence > MAX_OVERHEAD or self._overhead > MAX_OVERHEAD + OVERHEAD_RATE * self._delivered:
            raise NotHttp

    def on_message_begin(self) -> None:
        self.receiving = Exchange(self._line)
        self.in_head = True

    def on_url(self, url: bytes) -> None:
        self.receiving.url += url  # type: ignore[union-attr]

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in HEADERS and self.in_head:  # a trailer of a chunked body is not part of the head
            self.receiving.add_header(name, value)  # type: ignore[union-attr]

    def on_headers_complete(self) -> None:
        exchange, parser = self.receiving, self._parser
        assert exchange is not None
        self.in_head = False
        exchange.method = parser.get_method()
        exchange.keep_alive = parser.should_keep_alive() and not parser.should_upgrade() and parser.get_http_version() == "1.1"
        if parser.get_http_version() != "1.1":
            exchange.headers.pop(b"expect", None)  # an older client would take the leave to send for the answer
        length = exchange.headers.get(b"content-length")
        self._length = None if length is None else int(length.lstrip(b"0") or b"0")  # Python does not convert thousands of digits
        self._delivered = self._overhead = self._silence = 0
        self._skipped = parser.should_upgrade() and (bool(self._length) or b"transfer-encoding" in exchange.headers)
        self.pipeline.append(exchange)

    def on_body(self, body: bytes) -> None:
        self._delivered += len(body)
        self._line.receive(self.receiving, body)  # type: ignore[arg-type]

    def on_message_complete(self) -> None:
        if self._skipped:
            return
        exchange, self.receiving = self.receiving, None
        assert exchange is not None
        exchange.complete = True
        if not exchange.keep_alive:
            self.over = True
