"""The two requests that come all the time, answered without the framework, which would take most of their time.

They read, ask and refuse with the same functions as the endpoints in `http`, which document them and answer the same.
"""

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from albatross.service.messages import Feedback, Recommend, Refused, Request
from albatross.service.problems import TooLarge, failed, header_pairs, headers_of, of_refused, send_body, send_problem
from albatross.service.serving import Service, read_as
from albatross.service.strict_json import NotJson

MAX_BODY = 2**20
ROUTES: dict[str, tuple[type[Request], str]] = {"/v1/recommend": (Recommend, "recommend"), "/v1/feedback": (Feedback, "feedback")}
"""What is asked at a path, and the scope that a key needs for it."""

_JSON = header_pairs({"content-type": "application/json"})


class Express:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["method"] != "POST" or scope["path"] not in ROUTES:
            await self.app(scope, receive, send)
            return
        try:
            body = await self._answer(scope, receive)
        except Refused as refused:
            await send_problem(of_refused(refused), send, headers_of(refused))
        except Exception as error:
            await send_problem(failed(scope["path"], error), send)
        else:
            await send_body(200, _JSON, body, send)

    async def _answer(self, scope: HTTPScope, receive: Receive) -> bytes:
        kind, needed = ROUTES[scope["path"]]
        headers = dict(scope["headers"])
        await self.service.admit(headers.get(b"authorization", b"").decode("latin-1"), needed)
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > MAX_BODY:
            raise TooLarge
        body = await _read(receive)
        return msgspec.json.encode(await self.service.ask(read_as(body, kind)))


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise NotJson("the connection ended before the body did")
        parts.append(event["body"])
        size += len(event["body"])
        if size > MAX_BODY:
            raise TooLarge
        if not event.get("more_body"):
            break
    if size == 0:
        raise NotJson("the body is empty")
    return b"".join(parts)
