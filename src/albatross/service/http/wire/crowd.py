"""All connections: how many there may be, how slow they may be, and how much memory their bodies may take.

A connection holds a descriptor and a body holds memory, for as long as the client likes. So both are bounded. At a bound, the
connection that has kept us waiting longest is closed, not the newest one.
"""

import asyncio
import contextlib
import time
from typing import Protocol

from albatross.service.api.errors import Overloaded, Refused, TooSlow
from albatross.service.http.wire.exchange import Exchange

HEAD_SECONDS = 10.0
"""From a new connection, or the first byte of a later request, to the end of the head."""
IDLE_SECONDS = 75.0
"""Between two requests. Longer than proxies keep idle connections, so that the proxy closes first."""
BODY_SECONDS = 10.0
"""For a body …"""
BODY_RATE = 2**16
"""… and one second more for each so many bytes that have arrived."""
READ_SECONDS = 30.0
"""For a client to read what it was sent."""
LINGER_SECONDS = 2.0
"""For a client to stop sending after it was refused."""
SWEEP_SECONDS = 1.0
MOST_CONNECTIONS = 4096
SPARE_DESCRIPTORS = 128
"""For the log, the snapshots and the libraries."""
MOST_BODY_BYTES = 2**26
"""Bytes of all bodies in memory."""

CROWDED = Overloaded("too many bodies are being sent at once; try again in a second")
SLOW_BODY = TooSlow(f"the body did not arrive within {BODY_SECONDS:g} s and a second more for every {BODY_RATE // 1024} KiB of it")


class Member(Protocol):
    """What the crowd needs of a connection."""

    def hang_up(self) -> None:
        """End at once, whatever is in progress."""

    def give_up_head(self) -> None:
        """End: no complete head came in time."""

    def give_up_body(self) -> None:
        """End: no complete body came in time."""

    def refuse(self, error: Refused) -> None:
        """Refuse the request that is being received."""

    def end(self) -> None:
        """End as soon as what has been received is answered."""


class Crowd:
    """All connections of a service. Belongs to the event loop."""

    def __init__(self, most: int = MOST_CONNECTIONS, most_bytes: int = MOST_BODY_BYTES) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.members: set[Member] = set()
        self.heads: dict[Member, float] = {}
        """Members without a complete head, longest waiting first, and their deadlines."""
        self.bodies: dict[Member, Exchange] = {}
        """Members that are sending a body, in the order of their heads."""
        self.unread: dict[Member, float] = {}
        """Members that do not read their answer, and their deadlines."""
        self.bytes = 0
        self.ending = False

    def enter(self, member: Member) -> bool:
        """Whether there is room for one more. If needed, the member that has waited longest is disconnected."""
        if self.ending:
            return False
        if len(self.members) >= self.most:
            longest = next(iter(self.heads or self.bodies or self.unread), None)
            if longest is None:
                return False
            longest.hang_up()
        self.members.add(member)
        self.heads[member] = time.monotonic() + HEAD_SECONDS
        return True

    def leave(self, member: Member) -> None:
        self.members.discard(member)
        self.heads.pop(member, None)
        self.bodies.pop(member, None)
        self.unread.pop(member, None)

    def hold(self, exchange: Exchange, size: int) -> bool:
        """Whether so many more bytes of a body may be kept. If needed, the oldest incomplete bodies are refused."""
        self.bytes += size
        exchange.held += size
        while self.bytes > self.most_bytes:
            slowest = next((member for member, other in self.bodies.items() if other is not exchange and other.held), None)
            if slowest is None:
                return False
            slowest.refuse(CROWDED)
        return True

    def let_go(self, exchange: Exchange) -> None:
        self.bytes -= exchange.held
        exchange.held = 0

    def sweep(self) -> None:
        """Disconnect members whose deadline has passed."""
        now = time.monotonic()
        for member in [member for member, until in self.heads.items() if until < now]:
            member.give_up_head()
        for member in [member for member, until in self.unread.items() if until < now]:
            member.hang_up()
        for member, exchange in list(self.bodies.items()):
            if now - exchange.began > BODY_SECONDS + exchange.size / BODY_RATE:
                member.give_up_body()

    async def watch(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    async def drain(self, seconds: float) -> None:
        """Accept no more requests, and wait up to `seconds` for the answers of those in flight; all other connections end."""
        self.ending = True
        for member in list(self.members):
            member.end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.members:
                    await asyncio.sleep(0.01)

    async def disperse(self, seconds: float) -> None:
        """The same. Then all connections end."""
        await self.drain(seconds)
        for member in list(self.members):
            member.hang_up()
