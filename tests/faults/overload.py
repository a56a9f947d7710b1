"""Far more requests than can be answered: how long those wait that are accepted, and whether anything acknowledged is lost.

`PYTHONPATH=tests:. python -m faults.overload [SECONDS]`. First sixteen clients ask one after the other, which is what the service can do.
Then a thousand connections send ratings without a pause, and again as soon as they are refused.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from faults.soak import Target

CALM = 16
CROWD = 1_000
"""Connections that send without a pause: with what each may have on its way, ten times what can be answered in time."""
MOST_MILLISECONDS = 250.0


@dataclass
class Load:
    statuses: Counter[int] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.seconds

    def percentile(self, share: float) -> float:
        return sorted(self.waits)[int(share * len(self.waits))] * 1e3


class Sender(asyncio.Protocol):
    """Sends one rating after the other by one connection, as quickly as it is answered. Written to cost little."""

    transport: asyncio.Transport

    def __init__(self, load: Load, name: str, key: str) -> None:
        self.load, self.name, self.key = load, name, key
        self.number = 0
        self.received = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def start(self, until: float) -> None:
        self.until = until
        self._send()

    def _send(self) -> None:
        self.number += 1
        self.event = f"{self.name}-{self.number}"
        rating = {"event_id": self.event, "user": f"u{self.number % 1000}", "item": f"i{self.number % 500}", "rating": 3}
        body = json.dumps(rating).encode()
        head = f"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.began = time.perf_counter()
        self.transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        self.received = b""
        now = time.perf_counter()
        status = int(head[9:12])
        self.load.statuses[status] += 1
        if status == 200:
            self.load.waits.append(now - self.began)
            self.load.acknowledged.add(self.event)
        if now < self.until:
            self._send()
        else:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def press(target: Target, connections: int, seconds: float, name: str) -> Load:
    """Send from so many connections for so long."""
    load, loop = Load(), asyncio.get_running_loop()
    senders: list[Sender] = []
    for number in range(connections):
        sender = Sender(load, f"{name}-{number}", target.keys["honest" if number % 2 else "hostile"])
        await loop.create_connection(lambda sender=sender: sender, "127.0.0.1", target.port)  # type: ignore[misc]
        senders.append(sender)
    began = time.perf_counter()
    for sender in senders:
        sender.start(began + seconds)
    await asyncio.gather(*(sender.ended for sender in senders))
    load.seconds = time.perf_counter() - began
    return load


async def overload(folder: Path, seconds: float) -> tuple[Load, Load, Target]:
    async with Target(folder, "json") as target:
        await press(target, CALM, 1.0, "warm")
        calm = await press(target, CALM, seconds, "calm")
        crowd = await press(target, CROWD, seconds, "crowd")
    return calm, crowd, target


def lost(folder: Path, *loads: Load) -> int:
    """Ratings that were acknowledged and are not in the log."""
    from albatross.service.storage.events import Rated
    from albatross.service.storage.migration import reading_log
    from albatross.service.storage.reading import read_events

    with reading_log(folder) as log:
        kept = {event.event_id for _, event in read_events(log) if isinstance(event, Rated)}
    return sum(len(load.acknowledged - kept) for load in loads)


def main(seconds: float) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        calm, crowd, target = asyncio.run(overload(Path(scratch) / "shop", seconds))
        missing = lost(Path(scratch) / "shop", calm, crowd)
    print(f"{CALM} connections: {calm.rate:,.0f} ratings/s, p99 {calm.percentile(0.99):.1f} ms")
    offered = sum(crowd.statuses.values()) / crowd.seconds
    print(
        f"{CROWD:,} connections: {offered:,.0f} requests/s, of them accepted {crowd.rate:,.0f}/s; by status "
        f"{dict(sorted(crowd.statuses.items()))}"
    )
    p99 = crowd.percentile(0.99)
    print(f"accepted: p50 {crowd.percentile(0.5):.1f} ms, p99 {p99:.1f} ms (needed: at most {MOST_MILLISECONDS:g}); lost {missing}")
    sound = p99 <= MOST_MILLISECONDS and not missing and set(crowd.statuses) <= {200, 429} and target.exit_code == 0
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0))
