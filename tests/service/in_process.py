"""The HTTP room with an engine that does as it is told, in the test's own process: for what is about the network alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from albatross.service.api.answers import Accepted, Answer, BatchAccepted, Decision, Readiness, Series, ShownItem
from albatross.service.api.requests import AskSeries, Feedback, FeedbackBatch, Recommend, Request
from albatross.service.api.routes import BY_REQUEST
from albatross.service.engine.tickets import Ticket
from albatross.service.http.access.admission import Admission
from albatross.service.http.access.keys import Keys
from albatross.service.http.access.names import LOOPBACK
from albatross.service.http.application import Application
from albatross.service.http.bridge import Bridge
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.crowd import Crowd


class Obedient:
    """An engine that answers at once, unless it is told to wait or to refuse."""

    def __init__(self) -> None:
        self.readiness = Readiness(True, "ready", 1, 1, 0)
        self.congested = False
        self.capacity = 1_000_000
        self.withheld = 0
        self.breadth = 1
        self.asked: list[Request[Any]] = []
        self.refuse: Callable[[Request[Any]], Exception | None] = lambda _: None
        self.held: list[Ticket] | None = None
        """Where requests are kept unanswered, if they are to wait."""

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        refused = []
        for ticket in tickets:
            self.asked.append(ticket.request)
            if self.held is not None:
                self.held.append(ticket)
                continue
            ticket.error = self.refuse(ticket.request)
            if ticket.error is None:
                ticket.answer = answer_to(ticket.request)
            refused.append(ticket)
        return refused

    def let_go(self) -> None:
        """Answer what waits."""
        waiting, self.held = self.held or [], None
        for ticket in waiting:
            ticket.answer = answer_to(ticket.request)
        waiting[0].tell(waiting)


def answer_to(request: Request[Any]) -> Answer:
    if isinstance(request, Recommend):
        return Decision("1-a", request.user or "visitor-1-a", "alb", 1, [ShownItem("tea", 1, 1.0, 1.0, 0.0, 1.0)], 0)
    if isinstance(request, Feedback):
        return Accepted(1, True, False, 1)
    if isinstance(request, FeedbackBatch):
        return BatchAccepted([Accepted(1, True, False, 1) for _ in request.events])
    if isinstance(request, AskSeries):
        return Series(1, [], [], [], [], [])
    answer: Answer = BY_REQUEST[type(request)].answered
    return answer


class Talk:
    """A connection on which a test says what it likes, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    def post(self, path: str, body: bytes, headers: str = "") -> None:
        self.say(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def get(self, path: str, headers: str = "") -> None:
        self.say(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())

    async def hear(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return int(lines[0][9:12]), headers, body

    async def status(self) -> int:
        return (await self.hear())[0]

    async def code(self) -> str:
        """The code of the problem that is the next answer."""
        found: str = json.loads((await self.hear())[2])["code"]
        return found

    async def ended(self) -> bytes:
        """What is left to hear, once the server has hung up."""
        try:
            return await self._reader.read()
        except ConnectionError:
            return b""

    async def line(self) -> bytes:
        return await self._reader.readline()

    def close(self) -> None:
        self._writer.close()


class Service:
    def __init__(self, engine: Obedient, application: Application, crowd: Crowd, port: int) -> None:
        self.engine, self.application, self.crowd, self.port = engine, application, crowd, port
        self.talks: list[Talk] = []

    async def talk(self) -> Talk:
        self.talks.append(await Talk.open(self.port))
        return self.talks[-1]

    async def settled(self) -> None:
        """Let the loop do what can be done now."""
        for _ in range(20):
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(folder: Path, *, places: int = 100, most: int = 100, most_bytes: int = 2**26) -> AsyncIterator[Service]:
    engine, crowd = Obedient(), Crowd(most, most_bytes)
    loop = asyncio.get_running_loop()
    admission = Admission(engine, Keys(folder), places, LOOPBACK, ["https://shop.example"], key_needed=False)
    application = Application(Bridge(engine, loop), admission, crowd, (1.0, 5.0))
    server = await loop.create_server(lambda: Connection(application, crowd), "127.0.0.1", 0)
    service = Service(engine, application, crowd, server.sockets[0].getsockname()[1])
    try:
        yield service
    finally:
        for talk in service.talks:
            talk.close()
        server.close()
        application.news.close()
        await crowd.disperse(0.0)
        await service.settled()
        await server.wait_closed()


def run(folder: Path, play: Callable[[Service], Awaitable[None]], **limits: int) -> None:
    """Let a test play with a service in an event loop."""

    async def whole() -> None:
        async with asyncio.timeout(60), serving(folder, **limits) as service:  # a hang is a failure, not a long wait
            await play(service)

    asyncio.run(whole())
