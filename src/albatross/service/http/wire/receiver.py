"""From bytes to requests: the parser is httptools, and what it keeps is counted.

A client says the same head again and again, but for the length of the body. The parser would come to the same result, by a dozen calls;
so a connection remembers the last few heads.
"""

import re
from collections import deque
from typing import NamedTuple

import httptools

from albatross.service.http.logs import unforeseen
from albatross.service.http.wire.exchange import HEADERS, Exchange, Line

MAX_HEAD = 2**16
"""Bytes of a request line and its headers, as most servers have it."""
MAX_OVERHEAD = 2**16
"""Bytes behind a head that are no body: the sizes and extensions of chunks, and what may follow the last one …"""
OVERHEAD_RATE = 16
"""… and so many more for each byte of a body, as somebody may send it byte by byte."""
PIECE = 2**14
"""Bytes of a body that the parser gets at a time."""
SMALL_PIECE = 2**9
"""The same where requests may begin: as many as fit into these can wait on one connection."""

LONGEST_REMEMBERED = 2**10
"""Bytes of a head that is remembered, at most …"""
MOST_REMEMBERED = 4
"""… and how many of them a connection remembers."""
MOST_DIGITS = 5
"""Digits in the length of a body whose request is known again, at most."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([1-9][0-9]*)\r\n", re.IGNORECASE)


class Head(NamedTuple):
    """A head as the parser understood it, in two parts: what stands before the length of the body and what stands behind."""

    before: bytes
    behind: bytes
    method: bytes
    url: bytes
    headers: dict[bytes, bytes]


class NotHttp(Exception):
    """What came is not HTTP as its specification has it."""


class HeadTooLarge(Exception):
    """The head that is arriving has more bytes than are accepted."""


class Receiver:
    """What has arrived on one connection. The callbacks of the parser only collect."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._parser = httptools.HttpRequestParser(self)
        self.pipeline: deque[Exchange] = deque()
        """Requests whose head is complete, and that nobody has taken yet."""
        self.receiving: Exchange | None = None
        """What is arriving."""
        self.in_head = False
        """Whether that is a head."""
        self.over = False
        """Whether the client wants no more answers than to what it has sent."""
        self._head = 0
        """Bytes of the head that is arriving, and of what stood before it in the same piece."""
        self._length: int | None = None
        """Bytes of the body that is arriving, where that was said before."""
        self._delivered = self._overhead = self._silence = 0
        """Bytes of the body so far, of what came with it, and of what came since the last of the body."""
        self._heads: list[Head] = []

    def recall(self, data: bytes) -> Exchange | None:
        """The request, if this is all of one whose head is remembered, and nothing else is going on."""
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
        """Remember the head of what came, if that was exactly one request with a body and the next may follow it."""
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
        self._heads.append(Head(head[:start], head[end:], exchange.method, exchange.url, exchange.headers))

    def feed(self, data: bytes, position: int) -> int:
        """Look at the next piece of what came; returns where the one after it begins. Raises `NotHttp` or `HeadTooLarge`."""
        known = self.receiving if self.in_head else None
        body = None if self.in_head else self.receiving
        clean = self.receiving is None and not self.pipeline and not position
        delivered = self._delivered
        size = self._size()
        piece = data[position : position + size] if position or len(data) > size else data
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self.over = True
        except httptools.HttpParserCallbackError as error:
            unforeseen(error.__context__)
            raise NotHttp from None
        except httptools.HttpParserError:
            if not self.over:  # what comes after the last request is never looked at
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

    def _size(self) -> int:
        """Bytes of the next piece: many only where they are of a body, so that it does not become hundreds of requests at once."""
        if self.in_head:
            return min(SMALL_PIECE, MAX_HEAD - self._head)
        if self.receiving is None or self._length is None:
            return SMALL_PIECE
        return min(PIECE, max(SMALL_PIECE, self._length - self._delivered))

    def _count(self, fed: int, delivered: int) -> None:
        """Refuse what goes on without end and is no body: the parser collects it, in a time that grows with the square of its length."""
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
        if name in HEADERS and self.in_head:  # what comes after a chunked body is none of the head
            self.receiving.add_header(name, value)  # type: ignore[union-attr]

    def on_headers_complete(self) -> None:
        exchange, parser = self.receiving, self._parser
        assert exchange is not None
        self.in_head = False
        exchange.method = parser.get_method()
        exchange.keep_alive = parser.should_keep_alive() and not parser.should_upgrade() and parser.get_http_version() == "1.1"
        length = exchange.headers.get(b"content-length")
        self._length = None if length is None else int(length.lstrip(b"0") or b"0")  # Python converts no thousands of digits
        self._delivered = self._overhead = self._silence = 0
        self.pipeline.append(exchange)

    def on_body(self, body: bytes) -> None:
        self._delivered += len(body)
        self._line.receive(self.receiving, body)  # type: ignore[arg-type]

    def on_message_complete(self) -> None:
        exchange, self.receiving = self.receiving, None
        assert exchange is not None
        exchange.complete = True
        if not exchange.keep_alive:
            self.over = True
