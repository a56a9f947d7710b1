"""From bytes to requests: the parser is httptools, and what it keeps is counted."""

from collections import deque

import httptools

from albatross.service.http.exchange import HEADERS, Exchange, Line
from albatross.service.http.logs import unforeseen

MAX_HEAD = 2**16
"""Bytes of a request line and its headers, as most servers have it."""
PIECE = 2**14
"""Bytes that the parser gets at a time: as many requests as fit into these can wait on one connection."""


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

    def feed(self, data: bytes, position: int) -> int:
        """Look at the next piece of what came; returns where the one after it begins. Raises `NotHttp` or `HeadTooLarge`."""
        known = self.receiving if self.in_head else None
        size = PIECE if known is None else min(PIECE, MAX_HEAD - self._head)
        piece = data[position : position + size] if len(data) > size else data
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
        return position + len(piece)

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
        self.pipeline.append(exchange)

    def on_body(self, body: bytes) -> None:
        self._line.receive(self.receiving, body)  # type: ignore[arg-type]

    def on_message_complete(self) -> None:
        exchange, self.receiving = self.receiving, None
        assert exchange is not None
        exchange.complete = True
        if not exchange.keep_alive:
            self.over = True
