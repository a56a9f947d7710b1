"""Turns of batches. A batch takes a thousand times as long as a rating, so one client with many batches could starve the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from albatross.service.api.errors import Overloaded

MOST_BATCHES = 3
"""At most so many batches are worked on at once; at most one per key."""
MOST_WAITING = 32
MOST_WAITING_OF_KEY = 8


class Turns:
    """The batches at work and the batches that wait, first come first served. Belongs to one event loop."""

    def __init__(self) -> None:
        self._working: list[str | None] = []
        """Names of keys; None without a key."""
        self._waiting: list[tuple[str | None, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def take(self, key: str | None) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the work is done, even if the client has left."""
        if self._may_begin(key):
            self._working.append(key)
        else:
            await self._wait(key)
        try:
            yield
        finally:
            self._working.remove(key)
            self._call_next()

    async def _wait(self, key: str | None) -> None:
        of_key = sum(other == key for other, _ in self._waiting)
        if len(self._waiting) >= MOST_WAITING or (key is not None and of_key >= MOST_WAITING_OF_KEY):
            raise Overloaded(f"too many batches wait already; try again in {Overloaded.retry_after} s")
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, called))
        await called

    def _may_begin(self, key: str | None) -> bool:
        return len(self._working) < MOST_BATCHES and (key is None or key not in self._working)

    def _call_next(self) -> None:
        self._waiting = [(key, called) for key, called in self._waiting if not called.cancelled()]
        for place, (key, called) in enumerate(self._waiting):
            if self._may_begin(key):
                del self._waiting[place]
                self._working.append(key)
                called.set_result(None)
                return
