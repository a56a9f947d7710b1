"""Servers to measure, their requests, and the results."""

import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from benchmarks.serving.loopback import Connection

USERS, ITEMS, RANK = 1_000, 1_700, 5
IN_FLIGHT = 16
MANY_IN_FLIGHT = 64
WARM_UP, REQUESTS = 1_000, 2_000
SHED_SECONDS = 0.1
"""Pause before a client that was refused for overload asks again; needed only on a busy machine."""
EVENTS = ("look", "click", "stay", "cart", "buy")
"""Events with rewards 1 to 5."""

Ask = Callable[[int], tuple[str, bytes]]


@dataclass(frozen=True)
class Load:
    """The result of many requests, in seconds."""

    rate: float
    waits: list[float]
    network: float
    """Processor time per request of the network thread: reading, checking, writing."""
    engine: float
    """The same of the engine's thread: deciding, learning, the log."""

    @property
    def processor(self) -> float:
        return self.network + self.engine

    def percentile(self, share: float) -> float:
        return sorted(self.waits)[int(share * len(self.waits))] * 1e3


def processor_times(process: int) -> tuple[float, float]:
    """Processor seconds of the first thread of a process, and of all others."""
    spent = {int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9 for task in Path(f"/proc/{process}/task").iterdir()}
    first = spent.pop(process)
    return first, sum(spent.values())


class Server:
    """A process that answers on a port."""

    process: asyncio.subprocess.Process
    port: int

    def __init__(self) -> None:
        self._connections: list[Connection] = []

    async def __aexit__(self, *error: object) -> None:
        for connection in self._connections:
            connection.close()
        self.process.terminate()
        await self.process.communicate()

    async def load(self, ask: Ask, requests: int = REQUESTS, in_flight: int = IN_FLIGHT) -> Load:
        """Send requests over so many connections, which stay open for the next load."""
        waits: list[float] = []
        numbers = itertools.count()
        while len(self._connections) < in_flight:
            self._connections.append(await Connection.open(self.port))

        async def work(connection: Connection) -> None:
            while (number := next(numbers)) < requests:
                path, body = ask(number)
                began = time.perf_counter()
                status, answer = await connection.post(path, body)
                waits.append(time.perf_counter() - began)
                while status == 429:  # the machine is overloaded
                    await asyncio.sleep(SHED_SECONDS)
                    status, answer = await connection.post(path, body)
                if status != 200:
                    raise RuntimeError(f"status {status}: {answer!r}")

        before, began = processor_times(self.process.pid), time.perf_counter()
        await asyncio.gather(*map(work, self._connections[:in_flight]))
        seconds, after = time.perf_counter() - began, processor_times(self.process.pid)
        return Load(requests / seconds, waits, (after[0] - before[0]) / requests, (after[1] - before[1]) / requests)


class Service(Server):
    """`albatross serve` with a policy, once `fill` has filled it: 1,700 items and some history."""

    def __init__(self, folder: Path, policy: Sequence[str]) -> None:
        super().__init__()
        self.folder, self.policy = folder, policy

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-c", "import sys, albatross.cli; sys.exit(albatross.cli.main())", "serve", str(self.folder)]
        events = ",".join(f"{name}={worth}" for worth, name in enumerate(EVENTS, start=1))
        settings = ["--scale=1..5", f"--events={events}", "--port=0", "--log=json", *self.policy]
        self.process = await asyncio.create_subprocess_exec(*command, *settings, stderr=asyncio.subprocess.PIPE)
        assert self.process.stderr is not None
        line = {"event": ""}
        while line["event"] != "ready":
            written = await self.process.stderr.readline()
            if not written.startswith(b"{"):  # output of the compiler, the first time
                continue
            line = json.loads(written)
            if line["event"] == "listening":
                self.port = int(line["url"].rpartition(":")[2])
        return self


class Echo(Server):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.serving.echo", str(self.length)]
        self.process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert self.process.stdout is not None
        self.port = int(await self.process.stdout.readline())
        return self


def recommend(number: int) -> tuple[str, bytes]:
    return "/v1/recommend", b'{"user": "u%d"}' % (number * 7919 % USERS)


def feedback(prefix: str) -> Ask:
    def ask(number: int) -> tuple[str, bytes]:
        user, item = number * 7919 % USERS, number * 104_729 % ITEMS
        event = {"event_id": f"{prefix}-{number}", "user": f"u{user}", "item": f"i{item}", "rating": 1 + number % 5}
        return "/v1/feedback", json.dumps(event).encode()

    return ask


def recommend_with(more: bytes) -> Ask:
    """The same with further fields."""

    def ask(number: int) -> tuple[str, bytes]:
        return "/v1/recommend", b'{"user": "u%d", %b}' % (number * 7919 % USERS, more)

    return ask


def event(prefix: str) -> Ask:
    """The named event for a rating."""

    def ask(number: int) -> tuple[str, bytes]:
        user, item = number * 7919 % USERS, number * 104_729 % ITEMS
        happened = {"event_id": f"{prefix}-{number}", "user": f"u{user}", "item": f"i{item}", "event": EVENTS[number % len(EVENTS)]}
        return "/v1/feedback", json.dumps(happened).encode()

    return ask


async def fill(server: Service) -> None:
    """Every user and every item is known and has a rating; items have a category."""
    connection = await Connection.open(server.port)
    ratings = (feedback("fill")(number)[1] for number in range(2 * ITEMS))
    described = (json.dumps({"item": f"i{item}", "attributes": {"category": f"c{item % 10}"}}).encode() for item in range(ITEMS))
    for path, lines in (("/v1/feedback/batch", ratings), ("/v1/items/batch", described)):
        status, answer = await connection.post(path, b"\n".join(lines))
        if status != 200 or b'"status":4' in answer:
            raise RuntimeError(f"status {status}: {answer[:200]!r}")
    connection.close()
    await server.load(recommend, WARM_UP)
    await server.load(feedback("warm"), WARM_UP)


def median(loads: Sequence[Load]) -> Load:
    """The load of median processor time; waits are those of all."""
    middle = sorted(loads, key=lambda load: load.processor)[len(loads) // 2]
    return replace(middle, rate=statistics.median([load.rate for load in loads]), waits=[wait for load in loads for wait in load.waits])


def ratio(loads: Sequence[Load], others: Sequence[Load]) -> float:
    """The median ratio of processor times measured one after the other: the speed of a shared machine changes from second to second."""
    return statistics.median([load.processor / other.processor for load, other in zip(loads, others, strict=True)])


async def answer_length(port: int, ask: Ask) -> int:
    connection = await Connection.open(port)
    _, answer = await connection.post(*ask(0))
    connection.close()
    return len(answer)
