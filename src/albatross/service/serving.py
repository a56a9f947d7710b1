"""What all endpoints share: asking the engine, letting callers in, and telling the news."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec
from litestar.response import ServerSentEventMessage

from albatross.service import messages
from albatross.service.engine import Engine
from albatross.service.keys import Keys
from albatross.service.messages import BadValue, NotReady, Overloaded
from albatross.service.metrics import Metrics
from albatross.service.problems import Denied, Unauthorized
from albatross.service.strict_json import parse

MAX_STREAMS = 32
STREAM_SECONDS = 1.0
"""How often a stream looks whether there is anything new."""

T = TypeVar("T")


def read_as(body: bytes, kind: type[T]) -> T:
    """A JSON document as a message: strictly, so that no number may stand in quotation marks and no field is unknown."""
    try:
        return msgspec.convert(parse(body), kind)
    except msgspec.ValidationError as error:
        raise BadValue(str(error)) from None


class Service:
    """The engine and the keys of one folder, for those who ask over the network. Belongs to one event loop."""

    def __init__(self, engine: Engine, keys: Keys, metrics: Metrics, needs_key: bool) -> None:
        """`needs_key`: also where there is no key yet, as beyond this machine nobody is let in without."""
        self.engine = engine
        self.keys = keys
        self.metrics = metrics
        self.needs_key = needs_key
        self.ending = asyncio.Event()
        self.in_flight: Callable[[], int] = lambda: 0
        self._streams = 0
        self._guess = asyncio.Semaphore(1)

    async def ask(self, request: messages.Request) -> Any:
        """The engine's answer, or why there is none."""
        loop = asyncio.get_running_loop()
        answered = loop.create_future()

        def settle(result: "Future[Any]") -> None:
            if answered.cancelled():
                return
            error = result.exception()
            if error is None:
                answered.set_result(result.result())
            else:
                answered.set_exception(error)

        self.engine.submit(request).add_done_callback(lambda result: loop.call_soon_threadsafe(settle, result))
        return await answered

    async def admit(self, authorization: str, scope: str) -> None:
        """Refuse who has no key for this."""
        if not (self.needs_key or self.keys):
            return
        word, _, given = authorization.partition(" ")
        given = given.strip()
        if word.lower() != "bearer" or not given:
            raise Unauthorized("there is no key; accepted: the header Authorization: Bearer KEY")
        key = self.keys.known(given)
        if key is None:
            async with self._guess:  # guesses wait for one another, and nobody else for them
                key = await asyncio.to_thread(self.keys.verify, given)
        if key is None:
            raise Unauthorized("the key is not one of this service")
        if scope not in key.scopes:
            raise Denied(f"the key has the scope {', '.join(key.scopes)}; accepted: {scope}")

    async def open_stream(self) -> AsyncIterator[ServerSentEventMessage]:
        """The news, refused, if at all, before the first byte of an answer."""
        if self._streams >= MAX_STREAMS:
            raise Overloaded(f"{MAX_STREAMS} streams are open; accepted: no more")
        await self.ask(messages.AskVersion(state=False))
        return self._news()

    async def _news(self) -> AsyncIterator[ServerSentEventMessage]:
        """The head of the log and the series, whenever there is something new, until the service ends."""
        self._streams += 1
        try:
            seq = -1
            while not self.ending.is_set():
                version = await self.ask(messages.AskVersion(state=False))
                if version.seq == seq:
                    yield ServerSentEventMessage(data=None, comment="nothing new")
                else:
                    seq = version.seq
                    yield ServerSentEventMessage(data=msgspec.json.encode(version).decode(), event="version", id=seq)
                    series = await self.ask(messages.AskSeries())
                    yield ServerSentEventMessage(data=msgspec.json.encode(series).decode(), event="series", id=seq)
                try:
                    await asyncio.wait_for(self.ending.wait(), STREAM_SECONDS)
                except TimeoutError:
                    continue
        except (NotReady, Overloaded):
            return
        finally:
            self._streams -= 1
