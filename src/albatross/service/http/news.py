"""Server-sent events: the version of the model and the series, when there is something new.

One task asks the engine for all listeners, so many open pages cost no more than one.
"""

import asyncio
import contextlib

import msgspec

from albatross.service.api.errors import NotReady, Overloaded, Refused
from albatross.service.api.requests import AskSeries, AskVersion
from albatross.service.api.route import EVENTS, Scope
from albatross.service.http.access.admission import Admission
from albatross.service.http.bridge import Bridge
from albatross.service.http.wire.exchange import Exchange

MOST_STREAMS = 32
STREAM_SECONDS = 1.0
"""Interval between checks for something new."""

SCOPE: Scope = "read"
"""The scope that a listener's key needs, as long as it listens."""

_NOTHING_NEW = b": nothing new\n\n"


class News:
    """The listeners and what each was sent last. Belongs to one event loop."""

    def __init__(self, bridge: Bridge, admission: Admission) -> None:
        self._bridge, self._admission = bridge, admission
        self._places: set[Exchange] = set()
        self._told: dict[Exchange, int] = {}
        """The last event that each listener was told of."""
        self._telling: asyncio.Task[None] | None = None
        self._joined = asyncio.Event()
        self._closed = False

    def admit(self, exchange: Exchange) -> None:
        """Reserve a place for a listener. This comes before any await, so the limit is exact."""
        if len(self._places) >= MOST_STREAMS:
            raise Overloaded(f"{MOST_STREAMS} streams are open; accepted: no more")
        self._places.add(exchange)

    def leave(self, exchange: Exchange) -> None:
        self._places.discard(exchange)
        self._told.pop(exchange, None)

    async def begin(self, exchange: Exchange) -> None:
        """Begin a stream, if the engine answers. The first news are sent at once."""
        await self._bridge.ask(AskVersion("none"))
        if exchange not in self._places:
            return  # the client left in the meantime
        if self._closed:
            raise NotReady("the service is ending")
        exchange.begin_stream(EVENTS.encode())
        self._told[exchange] = -1
        self._joined.set()
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    def close(self) -> None:
        """End all streams, also those that have not begun yet."""
        self._closed = True
        if self._telling is not None:
            self._telling.cancel()
        self._end_all()

    async def _tell(self) -> None:
        while self._told:
            self._joined.clear()
            try:
                await self._tell_once()
            except Refused:  # the engine is closing or overloaded
                if not self._bridge.engine.readiness.ready:
                    break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STREAM_SECONDS):
                    await self._joined.wait()
        self._end_all()

    async def _tell_once(self) -> None:
        self._end_unwelcome()
        version = await self._bridge.ask(AskVersion("none"))
        news = b""
        if any(told != version.seq for told in self._told.values()):
            series = await self._bridge.ask(AskSeries())
            news = _event("version", version.seq, msgspec.json.encode(version)) + _event("series", version.seq, msgspec.json.encode(series))
        for exchange, told in self._told.items():
            if exchange.line.write(exchange, _NOTHING_NEW if told == version.seq else news):
                self._told[exchange] = version.seq

    def _end_unwelcome(self) -> None:
        """End the streams whose key would not be admitted now."""
        for exchange in list(self._told):
            try:
                self._admission.check_again(exchange, SCOPE)
            except Refused:
                del self._told[exchange]
                exchange.line.finish(exchange)

    def _end_all(self) -> None:
        for exchange in list(self._told):
            exchange.line.finish(exchange)
        self._told.clear()


def _event(kind: str, seq: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, kind.encode(), data)
