"""HTTP on the wire, bounded: what is not HTTP, or has a head without end, gets a problem document and no memory."""

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from albatross.service.problems import MEDIA_TYPE, Problem, problem

MAX_HEAD = 2**16
"""Bytes of a request line and its headers, as most servers have it."""

NOT_HTTP = problem(400, "not-http", "the request is not HTTP as its specification has it")
HEAD_TOO_LARGE = problem(431, "head-too-large", f"the request line and the headers have more than {MAX_HEAD} bytes; accepted: up to that")


class BoundedProtocol(HttpToolsProtocol):
    """The parser keeps all of a head until it is complete, so somebody must count."""

    _head = 0
    """Bytes received since the last complete head or message."""

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._head > MAX_HEAD and not self.transport.is_closing():
            self._end(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._head = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._end(NOT_HTTP)

    def _end(self, content: Problem) -> None:
        """Answer, and hear no more."""
        body = msgspec.json.encode(content)
        lines = [
            f"HTTP/1.1 {content.status} {content.title}",
            f"content-type: {MEDIA_TYPE}",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
