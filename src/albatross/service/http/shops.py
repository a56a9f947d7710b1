"""Several services behind one port: `/shops/NAME/`, then the paths of a service. Each shop has its own keys, engine and settings.

A name is looked up among the shops found at the start (or at SIGHUP): the path of a request never touches the disk.
"""

import asyncio
import html
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from albatross.service.api.answers import Alive, Phase, Readiness
from albatross.service.api.errors import MethodNotAllowed, NotFound, NotReady, Overloaded
from albatross.service.api.requests import AskVersion
from albatross.service.api.route import HEALTH, METRICS, PAGE, READY
from albatross.service.engine.tickets import Ticket
from albatross.service.http.access.admission import Admission
from albatross.service.http.access.keys import Keys, Unverified
from albatross.service.http.application import JSON, Application, encode, path_of
from albatross.service.http.documents.pages import FRESH, GUARDS, KINDS, File, page_files
from albatross.service.http.metrics import CONTENT_TYPE, Meter, Metrics, Source, expose
from albatross.service.http.problems import MEDIA_TYPE, headers_of, of_error
from albatross.service.http.wire.crowd import Crowd
from albatross.service.http.wire.exchange import Exchange

PREFIX = "/shops/"
MOST_IN_FLIGHT = 4096
"""Limit of requests in flight for all shops together. Each shop has a limit of its own too."""
READ = (b"GET", b"HEAD")

OPENING, FAILED = Readiness(False, "opening", 0, 0, 0), Readiness(False, "failed", 0, 0, 0)


class AllReady(msgspec.Struct):
    """Whether the process is ready, and the phase of each shop. A failed shop does not hold up the others."""

    ready: bool
    shops: dict[str, Phase]


class Shop:
    """One shop, served or not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.application: Application | None = None
        """None: it could not be opened, or it failed."""

    @property
    def readiness(self) -> Readiness:
        return FAILED if self.application is None else self.application.engine.readiness


class Shops:
    """All shops, and the paths of the process itself. Belongs to one event loop."""

    def __init__(self, keys: Keys, hosts: Sequence[str], key_needed: bool, crowd: Crowd) -> None:
        """`keys`: of the whole process. They give access to its metrics and to no shop."""
        self.wire = Meter()
        self.crowd = crowd
        self.by_name: dict[bytes, Shop] = {}
        self._key_needed = key_needed
        self._admission = Admission(_Nobody(), keys, MOST_IN_FLIGHT, hosts, (), key_needed)
        self._files = {path: file for path, file in page_files().items() if path != PAGE.encode()}
        self._style = next(path for path in self._files if path.endswith(b"/style.css")).decode()
        self._paths: dict[bytes, Callable[[Exchange], None]] = {
            PAGE.encode(): self._answer_index,
            HEALTH.encode(): lambda exchange: exchange.answer(200, JSON, encode(Alive(True))),
            READY.encode(): self._answer_readiness,
            METRICS.encode(): self._answer_metrics,
            **dict.fromkeys(self._files, self._answer_file),
        }
        self._tasks: set[asyncio.Task[None]] = set()

    def hush(self) -> None:
        """End the streams of all shops."""
        for shop in self.by_name.values():
            if shop.application is not None:
                shop.application.news.close()

    # Called by a connection.

    def open(self, exchange: Exchange) -> None:
        """The head has arrived: find its shop, and admit or refuse the request. May answer at once."""
        try:
            self._admit(exchange)
        except Exception as error:
            self.refuse(exchange, error)

    def act(self, exchange: Exchange) -> None:
        """An admitted request has arrived completely: answer it, now or later."""
        try:
            if exchange.owner is None:
                self._paths[path_of(exchange.url)](exchange)
                return
            if exchange.served is not None and exchange.served.scope is not None:
                self._check_load()
        except Exception as error:
            self.refuse(exchange, error)
            return
        exchange.owner.act(exchange)

    def leave(self, exchange: Exchange) -> None:
        if exchange.owner is not None:
            exchange.owner.leave(exchange)

    def refuse(self, exchange: Exchange, error: BaseException) -> None:
        """Answer with an error."""
        if exchange.owner is not None:
            exchange.owner.refuse(exchange, error)
        elif not exchange.answered:
            if b"expect" in exchange.headers and not exchange.complete:
                exchange.keep_alive = False  # the client may or may not send the body
            content = of_error(error)
            allow = b"allow: GET, HEAD\r\n" if isinstance(error, MethodNotAllowed) else b""
            exchange.answer(content.status, MEDIA_TYPE, encode(content), headers_of(error) + allow)

    # Admission.

    def _admit(self, exchange: Exchange) -> None:
        path = path_of(exchange.url)
        if path.startswith(PREFIX.encode()):
            name, _, rest = path[len(PREFIX) :].partition(b"/")
            shop = self.by_name.get(name)
            if shop is not None and shop.application is not None:
                exchange.owner, exchange.url = shop.application, b"/" + rest
                shop.application.open(exchange)
                return
        exchange.meter = self.wire
        self._admission.names.check(exchange)
        if path.startswith(PREFIX.encode()):
            if shop is None:
                raise NotFound("there is no such shop; accepted: the folders that were there when the process began, or at its last SIGHUP")
            raise NotReady("this shop cannot be served now; the log of the process says why")
        if path not in self._paths:
            raise NotFound(f"there is no such path; accepted: {PAGE}, {HEALTH}, {READY}, {METRICS} and {PREFIX}NAME/…")
        if exchange.method not in READ:
            raise MethodNotAllowed("the path has another method; accepted: GET, HEAD")
        if path == METRICS.encode():
            self._admission.key_needed = self._key_needed or any(self._needs_key(shop) for shop in self.by_name.values())
            try:
                self._admission.check_key(exchange, "read")
            except Unverified:
                self._run(exchange, self._verify(exchange))
                return
        exchange.admitted = True

    async def _verify(self, exchange: Exchange) -> None:
        await self._admission.verify_key(exchange, "read")
        exchange.admitted = True
        exchange.line.proceed()

    def _needs_key(self, shop: Shop) -> bool:
        try:
            return shop.application is not None and shop.application.admission.key_is_needed()
        except NotReady:  # there were keys, and they cannot be read
            return True

    def _check_load(self) -> None:
        served = [shop.application for shop in self.by_name.values() if shop.application is not None]
        if sum(max(0, each.admission.in_flight - each.engine.withheld) for each in served) >= MOST_IN_FLIGHT:
            raise Overloaded(f"{MOST_IN_FLIGHT} requests are being answered already; try again in {Overloaded.retry_after} s")

    # Answers.

    def _answer_readiness(self, exchange: Exchange) -> None:
        phases = {shop.name: shop.readiness.phase for shop in self.by_name.values()}
        settled = [phase for phase in phases.values() if phase != "failed"]
        if self.crowd.ending or any(phase != "ready" for phase in settled) or (phases and not settled):
            raise NotReady("; ".join(f"{name}: {phase}" for name, phase in phases.items() if phase != "ready") or "the service is ending")
        exchange.answer(200, JSON, encode(AllReady(True, phases)))

    def _answer_metrics(self, exchange: Exchange) -> None:
        async def answer() -> None:
            sources: dict[str | None, Source] = {}
            for shop in list(self.by_name.values()):
                application = shop.application
                if application is None:
                    sources[shop.name] = Source(Metrics(()), FAILED, None, 0)
                    continue
                readiness = shop.readiness
                version = await application.bridge.ask(AskVersion("none")) if readiness.ready else None
                sources[shop.name] = Source(application.metrics, readiness, version, application.admission.in_flight)
            exchange.answer(200, CONTENT_TYPE, expose(sources, len(self.crowd.members), self.crowd.bytes))

        self._run(exchange, answer())

    def _answer_index(self, exchange: Exchange) -> None:
        lines = [_line(shop.name, shop.readiness) for shop in sorted(self.by_name.values(), key=lambda shop: shop.name)]
        body = "".join(lines) or "<p>There is no shop yet: make a folder here, and send SIGHUP.</p>"
        exchange.answer(200, KINDS["html"], _INDEX.format(style=self._style, body=body).encode(), GUARDS + FRESH)

    def _answer_file(self, exchange: Exchange) -> None:
        found: File = self._files[path_of(exchange.url)]
        exchange.answer(200, found.kind, found.content, found.headers)

    def _run(self, exchange: Exchange, answering: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            try:
                await answering
            except Exception as error:
                self.refuse(exchange, error)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_INDEX = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>albatross: shops</title>
<link rel="stylesheet" href="{style}">
</head>
<body>
<main id="page">
<h1>Shops</h1>
{body}
</main>
</body>
</html>
"""


def _line(name: str, readiness: Readiness) -> str:
    shown = html.escape(name)
    named = shown if readiness.phase == "failed" else f'<a href="{PREFIX}{shown}/">{shown}</a>'
    return f'<p class="card">{named} <span class="about">{readiness.phase}</span></p>\n'


class _Nobody:
    """The process itself has no engine."""

    readiness, congested, capacity, withheld, breadth = OPENING, False, MOST_IN_FLIGHT, 0, 1

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        raise NotReady("there is no engine here")
