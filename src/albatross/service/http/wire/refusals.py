"""What a connection says by itself, without the application: to bytes that are not HTTP, too many, or too slow."""

import msgspec

from albatross.service.api.answers import Problem
from albatross.service.api.errors import NotJson, NotReady, TooLarge, TooSlow
from albatross.service.http.problems import MEDIA_TYPE, of_error, problem
from albatross.service.http.wire.crowd import HEAD_SECONDS
from albatross.service.http.wire.exchange import STATUS_LINES
from albatross.service.http.wire.receiver import MAX_HEAD

MAX_BODY = 2**20

NOT_HTTP = problem(400, "not-http", "the request is not valid HTTP")
HEAD_TOO_LARGE = problem(431, "head-too-large", f"the request line and the headers have more than {MAX_HEAD} bytes; accepted: up to that")
HEAD_TOO_SLOW = of_error(TooSlow(f"the request line and the headers did not arrive within {HEAD_SECONDS:g} s"))
NOT_HTTP_BODY = NotJson("the body is not valid HTTP")
BODY_TOO_LARGE = TooLarge(f"the body is larger than {MAX_BODY} bytes; accepted: up to that")
ENDING = NotReady("the service is ending")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def farewell(content: Problem) -> bytes:
    """The answer to bytes that never became a request. It is the last one of its connection."""
    body = msgspec.json.encode(content)
    head = b"%bcontent-type: %b\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % (STATUS_LINES[content.status], MEDIA_TYPE, len(body)) + body
