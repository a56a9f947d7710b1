"""The HTTP application, built from the table of routes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httptools
import msgspec

from albatross.service.api.answers import Alive
from albatross.service.api.errors import MethodNotAllowed, NotFound, NotReady, StorageFailed
from albatross.service.api.requests import AskVersion, Feedback, UpsertItem
from albatross.service.api.route import ACCESS, BATCH, HEALTH, ITEM_BATCH, METRICS, NDJSON, PAGE, READY, SCHEMA, STREAM, Route, Scope
from albatross.service.api.routes import ROUTES
from albatross.service.api.views import Access
from albatross.service.http.access.admission import PREFLIGHT, Admission
from albatross.service.http.access.keys import SCOPES, Unverified
from albatross.service.http.access.turns import Turns
from albatross.service.http.bodies import BatchLine, answer_lines
from albatross.service.http.bridge import Bridge, Posted
from albatross.service.http.documents import openapi
from albatross.service.http.documents.pages import client_files, page_files
from albatross.service.http.metrics import CONTENT_TYPE, OTHER, Meter, Metrics, Source, expose
from albatross.service.http.news import News
from albatross.service.http.problems import MEDIA_TYPE, headers_of, of_error
from albatross.service.http.strict_json import read_as
from albatross.service.http.wire.crowd import Crowd
from albatross.service.http.wire.exchange import Exchange
from albatross.service.http.wire.refusals import BODY_TOO_LARGE, MAX_BODY

JSON = b"application/json"

encode = msgspec.json.Encoder().encode


class ServedRoute:
    """A route with everything needed to serve it."""

    __slots__ = ("allow", "asks", "handler", "meter", "method", "methods", "reads", "scope")

    def __init__(self, route: Route, handler: Callable[[Exchange, "ServedRoute"], None], meter: Meter) -> None:
        self.handler, self.meter = handler, meter
        self.method = route.method.encode()
        self.methods = (b"GET", b"HEAD") if route.path == PAGE else (self.method,)
        self.allow = b"allow: %b\r\n" % b", ".join(self.methods)
        self.reads, self.asks = route.reads, route.asks
        self.scope: Scope | None = route.scope


class Application:
    """Handles requests. Belongs to one event loop."""

    def __init__(self, bridge: Bridge, admission: Admission, crowd: Crowd, scale: tuple[float, float], prefix: str = "") -> None:
        """`prefix`: what callers see before each path; it is removed before the path is looked up."""
        self.bridge, self.admission, self.crowd = bridge, admission, crowd
        self.engine = bridge.engine
        self.metrics = Metrics(route.path for route in ROUTES)
        self.wire = self.metrics.meters[OTHER]
        self.news = News(bridge, admission)
        self.turns = Turns()
        self._descriptions = {needed: encode(openapi.describe(scale, needed, prefix)) for needed in (False, True)}
        self._tasks: set[asyncio.Task[None]] = set()
        special = {
            BATCH: self._answer_batch,
            ITEM_BATCH: self._answer_batch,
            STREAM: self._answer_stream,
            METRICS: self._answer_metrics,
            HEALTH: self._answer_health,
            READY: self._answer_readiness,
            SCHEMA: self._answer_schema,
            ACCESS: self._answer_access,
            PAGE: self._answer_page,
        }
        self._routes = {
            route.path.encode(): ServedRoute(route, special.get(route.path, self._ask_engine), self.metrics.meters[route.path])
            for route in ROUTES
        }
        self._files = page_files(prefix=prefix) | client_files()
        page = self._routes[PAGE.encode()]
        self._routes |= dict.fromkeys(self._files, page)

    # Called by a connection.

    def open(self, exchange: Exchange) -> None:
        """The head has arrived: admit or refuse the request. May answer at once."""
        try:
            self._admit(exchange)
        except Exception as error:
            self.refuse(exchange, error)

    def act(self, exchange: Exchange) -> None:
        """An admitted request has arrived completely: answer it, now or later."""
        served = exchange.served
        assert served is not None
        try:
            if served.scope is not None:
                self.admission.check_again(exchange, served.scope)  # receiving the body may have taken long
                self.admission.enter(exchange)
            served.handler(exchange, served)
        except Exception as error:
            self.refuse(exchange, error)

    def leave(self, exchange: Exchange) -> None:
        """The exchange is over, or it has become a stream."""
        self.admission.leave(exchange)

    def refuse(self, exchange: Exchange, error: BaseException, extra: bytes = b"") -> None:
        """Answer with an error."""
        if exchange.answered:
            return
        if b"expect" in exchange.headers and not exchange.complete:
            exchange.keep_alive = False  # the client may or may not send the body
        content = of_error(error)
        exchange.answer(content.status, MEDIA_TYPE, encode(content), headers_of(error) + extra)

    # Admission.

    def _admit(self, exchange: Exchange) -> None:
        served = exchange.served = self._routes.get(exchange.url) or self._routes.get(path_of(exchange.url))
        exchange.meter = self.wire if served is None else served.meter
        self.admission.names.check(exchange)
        if served is None:
            raise NotFound("there is no such path; accepted: those that /schema lists")
        if exchange.method not in served.methods:
            if exchange.method == b"OPTIONS" and exchange.cors:
                exchange.answer_empty(PREFLIGHT)
            else:
                error = MethodNotAllowed(f"the path has another method; accepted: {b', '.join(served.methods).decode()}")
                self.refuse(exchange, error, served.allow)
            return
        if served.scope is not None:
            try:
                self.admission.check_key(exchange, served.scope)
            except Unverified:
                self._run(exchange, self._verify(exchange, served.scope))
                return
            self.admission.check_load()
        length = exchange.headers.get(b"content-length", b"").lstrip(b"0")
        if len(length) > 6 and int(length) > MAX_BODY:  # the parser accepts digits only
            self.refuse(exchange, BODY_TOO_LARGE)
            return
        exchange.admitted = True

    async def _verify(self, exchange: Exchange, scope: Scope) -> None:
        await self.admission.verify_key(exchange, scope)
        self.admission.check_load()
        exchange.admitted = True
        exchange.line.proceed()

    # Answers.

    def _ask_engine(self, exchange: Exchange, served: ServedRoute) -> None:
        reads = served.reads
        request = served.asks if reads is None else read_as(exchange.take_body(), reads)
        assert request is not None
        self.bridge.send(request, exchange, self._settle)

    def _settle(self, question: Posted) -> None:
        if question.error is None:
            question.exchange.answer(200, JSON, encode(question.answer))
        else:
            self.refuse(question.exchange, question.error)

    def _answer_batch(self, exchange: Exchange, served: ServedRoute) -> None:
        async def answer() -> None:
            async with self.turns.take(None if exchange.key is None else exchange.key.name):
                if not exchange.answered:  # the client may have left while waiting
                    reads = UpsertItem if served.reads is UpsertItem else Feedback
                    exchange.answer(200, NDJSON.encode(), await self._lines(exchange.take_body(), reads))

        self._run(exchange, answer())

    async def _lines(self, body: bytes, reads: type[BatchLine]) -> bytes:
        return await answer_lines(body, self.bridge.ask, reads, self.engine.breadth)

    def _answer_stream(self, exchange: Exchange, served: ServedRoute) -> None:
        self.news.admit(exchange)
        exchange.on_end = self.news.leave
        self._run(exchange, self.news.begin(exchange))

    def _answer_metrics(self, exchange: Exchange, served: ServedRoute) -> None:
        async def answer() -> None:
            readiness = self.engine.readiness
            version = await self.bridge.ask(AskVersion("none")) if readiness.ready else None
            told = Source(self.metrics, readiness, version, self.admission.in_flight)
            exchange.answer(200, CONTENT_TYPE, expose({None: told}, len(self.crowd.members), self.crowd.bytes))

        self._run(exchange, answer())

    def _answer_health(self, exchange: Exchange, served: ServedRoute) -> None:
        readiness = self.engine.readiness
        if readiness.phase == "failed":
            raise StorageFailed(readiness.detail or "the engine failed")
        exchange.answer(200, JSON, encode(Alive(True)))

    def _answer_readiness(self, exchange: Exchange, served: ServedRoute) -> None:
        readiness = self.engine.readiness
        if self.crowd.ending or not readiness.ready:
            detail = f"; {readiness.detail}" if readiness.detail else ""
            raise NotReady(f"{readiness.phase}: {readiness.done} of {readiness.total} events{detail}")
        exchange.answer(200, JSON, encode(readiness))

    def _answer_schema(self, exchange: Exchange, served: ServedRoute) -> None:
        try:
            needed = self.admission.key_is_needed()
        except NotReady:
            needed = True
        exchange.answer(200, JSON, self._descriptions[needed])

    def _answer_access(self, exchange: Exchange, served: ServedRoute) -> None:
        async def answer() -> None:
            if not self.admission.key_is_needed():
                told = Access(False, list(SCOPES))
            else:
                key = await self.admission.identify(exchange)
                told = Access(True, []) if key is None else Access(True, list(key.scopes), key.name, key.expires)
            exchange.answer(200, JSON, encode(told))

        self._run(exchange, answer())

    def _answer_page(self, exchange: Exchange, served: ServedRoute) -> None:
        found = self._files[path_of(exchange.url)]
        exchange.answer(200, found.kind, found.content, found.headers)

    def _run(self, exchange: Exchange, answering: Coroutine[Any, Any, None]) -> None:
        """Answer in a task, for answers that need more than one request to the engine."""

        async def run() -> None:
            try:
                await answering
            except Exception as error:
                self.refuse(exchange, error)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def path_of(url: bytes) -> bytes:
    """The path alone. No route reads a query, and a proxy may send an absolute URL.

    >>> path_of(b"/healthz?now"), path_of(b"http://localhost/healthz")
    (b'/healthz', b'/healthz')
    """
    if not url.startswith(b"/"):
        try:
            return httptools.parse_url(url).path or b""
        except httptools.HttpParserInvalidURLError:
            return b""
    return url.partition(b"?")[0]
