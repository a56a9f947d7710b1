"""The front's connections to the shards. Each is made again when it breaks, or when its shard has another owner."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import psycopg

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import NotReady, Refused
from albatross.service.cluster.lines.addresses import ShardAddress, find_addresses, make_addresses
from albatross.service.cluster.lines.frames import RANDOM, BrokenLine, Frames, is_proof, proof_of, random_number
from albatross.service.cluster.lines.listening import PROOF_SECONDS, settle_socket
from albatross.service.cluster.lines.packing import packed_request, unpacked_answer
from albatross.service.cluster.lines.router import AWAY, Router, Settle
from albatross.service.engine.tickets import Settled, Ticket
from albatross.service.storage.postgres.session import Session, connect

AGAIN_SECONDS = 0.1
"""Seconds between two attempts to reach a shard."""
LOOK_SECONDS = 1.0
"""Seconds between two checks whether a shard has another owner, while all are reached."""


class Link:
    """The connection to one shard. Used in the event loop; `call` may be used from any thread."""

    on_reached: Callable[[], None]
    on_lost: Callable[[], None]

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._speaking: _Speaking | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._epoch = -1

    @property
    def connected(self) -> bool:
        return self._speaking is not None

    def call(self, tickets: Sequence[Ticket], settle: Settle) -> None:
        """Send requests."""
        if threading.get_ident() == self._thread:
            self._send(tickets, settle)
            return
        try:
            self._loop.call_soon_threadsafe(self._send, tickets, settle)
        except RuntimeError:  # the loop has ended
            settle([(ticket, NotReady(AWAY)) for ticket in tickets])

    def _send(self, tickets: Sequence[Ticket], settle: Settle) -> None:
        if self._speaking is None:
            settle([(ticket, NotReady(AWAY)) for ticket in tickets])
        else:
            self._speaking.send(tickets, settle)

    def follow(self, address: ShardAddress | None) -> None:
        """Be connected with the owner of the shard, who is at this address; None: nobody owns it."""
        if self._speaking is not None and (address is None or address.epoch != self._epoch):
            self._speaking.drop()
        if address is not None and self._speaking is None and (self._connecting is None or self._connecting.done()):
            self._connecting = self._loop.create_task(self._connect(address))

    async def _connect(self, address: ShardAddress) -> None:
        speaking = _Speaking(address.secret, self._lost)
        with contextlib.suppress(OSError, TimeoutError):  # it is not there yet, or no more
            try:
                async with asyncio.timeout(PROOF_SECONDS):
                    await self._loop.create_connection(lambda: speaking, address.host, address.port)
                    await speaking.proved
            except BaseException:
                speaking.drop()
                raise
            if not speaking.ended:
                self._speaking, self._epoch = speaking, address.epoch
                self.on_reached()

    def _lost(self, speaking: "_Speaking") -> None:
        if self._speaking is speaking:
            self._speaking = None
            self.on_lost()

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._speaking is not None:
            self._speaking.drop()


class _Speaking(asyncio.Protocol):
    """One connection: first both sides prove what they are, then requests go out and answers come back."""

    def __init__(self, secret: bytes, on_lost: Callable[["_Speaking"], None]) -> None:
        self._secret, self._on_lost = secret, on_lost
        self.proved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = False
        self._transport: asyncio.Transport | None = None
        self._shown = b""
        self._second = random_number()
        self._frames = Frames()
        self._settle: Settle | None = None
        self._asked: dict[int, Ticket] = {}
        """Requests under way, in the order in which they were sent."""
        self._count = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        settle_socket(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        try:
            if self.proved.done():
                self._hear(data)
            else:
                self._prove(data)
        except BrokenLine as error:
            self._end(error)

    def _prove(self, data: bytes) -> None:
        """The shard sends a random number, and is shown a proof; then it shows its own."""
        before, self._shown = len(self._shown), self._shown + data
        assert self._transport is not None
        if before < RANDOM <= len(self._shown):
            self._transport.write(self._second + proof_of(self._secret, "front", self._shown[:RANDOM], self._second))
        if len(self._shown) < 2 * RANDOM:
            return
        if len(self._shown) > 2 * RANDOM or not is_proof(self._shown[RANDOM:], self._secret, "shard", self._shown[:RANDOM], self._second):
            raise BrokenLine("the other side is not the owner of the shard")
        self.proved.set_result(None)

    def send(self, tickets: Sequence[Ticket], settle: Settle) -> None:
        self._settle = settle
        parts: list[bytes] = []
        refused: list[tuple[Ticket, Settled]] = []
        for ticket in tickets:
            self._count += 1
            try:
                parts.append(packed_request(self._count, ticket.request))
            except Refused as refusal:
                refused.append((ticket, refusal))
                continue
            self._asked[self._count] = ticket
        assert self._transport is not None
        self._transport.write(b"".join(parts))
        if refused:
            settle(refused)

    def _hear(self, data: bytes) -> None:
        settled: list[tuple[Ticket, Settled]] = []
        try:
            for number, content in self._frames.feed(data):
                ticket = self._asked[number]
                settled.append((ticket, unpacked_answer(content, ticket.request)))
                del self._asked[number]
        except KeyError:
            raise BrokenLine("an answer that nobody has asked for") from None
        finally:
            if settled and self._settle is not None:
                self._settle(settled)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or ConnectionResetError("the shard has closed the connection"))

    def drop(self) -> None:
        self._end(ConnectionAbortedError("the connection is not needed any more"))

    def _end(self, error: Exception) -> None:
        """The outcome of all that is under way is unknown."""
        self.ended = True
        if self._transport is not None:
            self._transport.abort()
        if not self.proved.done():
            self.proved.set_exception(error if isinstance(error, OSError) else ConnectionError(str(error)))
            self.proved.exception()  # nobody may be waiting for it any more
        self._on_lost(self)
        asked, self._asked = list(self._asked.values()), {}
        if asked and self._settle is not None:
            self._settle([(ticket, NotReady(AWAY)) for ticket in asked])


class Links:
    """Connections to all shards, whose addresses are looked up in the database again and again."""

    def __init__(self, database: str, links: Sequence[Link], routers: Sequence[Router]) -> None:
        """`routers`: told when their shards are reached, and when the connection is lost."""
        self._database, self._links = database, links
        self._session: Session | None = None
        self._lost = asyncio.Event()
        for link, router in zip(links, routers, strict=True):
            link.on_reached, link.on_lost = router.reached, partial(self._lose, router)
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def _lose(self, router: Router) -> None:
        router.lost()
        self._lost.set()

    async def _keep(self) -> None:
        while True:
            known = await asyncio.to_thread(self._look)
            if known is not None:
                for shard, link in enumerate(self._links):
                    link.follow(known.get(shard))
            self._lost.clear()
            missing = not all(link.connected for link in self._links)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.sleep(AGAIN_SECONDS) if missing else self._lost.wait(), LOOK_SECONDS)

    def _look(self) -> dict[int, ShardAddress] | None:
        """None while the database is away: connections stay as they are."""
        try:
            if self._session is None:
                self._session = connect(self._database, writing=True, application_name="albatross addresses")
                make_addresses(self._session)
            return find_addresses(self._session)
        except (InvalidInput, psycopg.Error):
            if self._session is not None:
                self._session.close()
            self._session = None
            return None

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        for link in self._links:
            link.close()
        if self._session is not None:
            self._session.close()
