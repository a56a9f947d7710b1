"""What a cluster holds against one engine: `python -m benchmarks.cluster.against_one [EVENTS]`.

On one machine: a PostgreSQL, one engine that serves a database of it, a cluster of one front and two shards, and the client. They are
measured by turns, in one run, so that the ratios say something on a busy machine, too. Processor time is that of each kind of process.
"""

import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albatross import Agent
from albatross.core.sharing.exchange import Exchange, Payload
from albatross.policies.alb import ALB
from albatross.policies.mean_field import MeanField
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.engine.learned.options import Options
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks import machine
from benchmarks.serving.loopback import Connection

USERS, ITEMS, RANK, SHARDS = 1_000, 1_700, 5, 2
IN_FLIGHT, REQUESTS, ROUNDS = 16, 1_500, 3
MANY = 64
"""Requests under way where a call to a shard is worth its cost."""
LINES, BATCHES = 1_000, 4
"""Lines of a batch, and batches under way at one time."""
EVENTS = 100_000
"""On each shard, before one is killed."""
FRESH, TURNS = 25, 25
"""Ratings on each shard between two exchanges, and how many of these."""
PROGRAM = "import sys, albatross.cli; sys.exit(albatross.cli.main())"

Ask = Callable[[int], tuple[str, bytes]]


class Measured(NamedTuple):
    rate: float
    waits: list[float]
    processor: dict[str, float]
    """Seconds per request, by kind of process."""


@contextlib.contextmanager
def command(folder: Path, *words: str) -> Iterator[None]:
    """A command of albatross, until the end of the block."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stdout=log, stderr=log, start_new_session=True)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def seconds_of(pids: list[int]) -> float:
    """Processor time of these processes: of their threads, because the kernel counts those in nanoseconds."""
    total = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            with contextlib.suppress(OSError):
                total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def postgres_of(server: PrivatePostgres) -> list[int]:
    postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
    return [int(child) for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()]


async def wait_ready(port: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            connection = await Connection.open(port)
            status, _ = await connection.ask("GET", "/readyz")
            connection.close()
            if status == 200:
                return
        await asyncio.sleep(0.1)


async def load(port: int, ask: Ask, count: int, in_flight: int) -> tuple[float, list[float]]:
    """Seconds for so many requests, and how long each waited."""
    numbers, waits = iter(range(count)), []

    async def client() -> None:
        connection = await Connection.open(port)
        for number in numbers:
            path, body = ask(number)
            while True:
                began = time.perf_counter()
                status, content = await connection.post(path, body)
                if status not in (429, 503):
                    break
                await asyncio.sleep(0.02)
            if status != 200:
                raise RuntimeError(f"{path} was answered with {status}: {content[:200]!r}")
            waits.append(time.perf_counter() - began)
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(in_flight)))
    return time.perf_counter() - began, waits


class Asking:
    """Requests with ids that never come twice."""

    def __init__(self) -> None:
        self._count = 0

    def rating(self) -> dict[str, Any]:
        self._count += 1
        number = self._count
        return {"event_id": f"e{number}", "user": f"u{number * 7 % USERS}", "item": f"i{number * 31 % ITEMS}", "rating": 1 + number % 5}

    def feedback(self, _: int) -> tuple[str, bytes]:
        return "/v1/feedback", json.dumps(self.rating()).encode()

    def recommend(self, number: int) -> tuple[str, bytes]:
        return "/v1/recommend", json.dumps({"user": f"u{number * 7 % USERS}"}).encode()

    def batch(self, _: int) -> tuple[str, bytes]:
        return "/v1/feedback/batch", self.lines(LINES)

    def lines(self, count: int) -> bytes:
        return b"\n".join(json.dumps(self.rating()).encode() for _ in range(count))


async def measure(port: int, ask: Ask, count: int, in_flight: int, kinds: dict[str, list[int]]) -> Measured:
    asked = [ask(number) for number in range(count)]  # what a client would have at hand
    before = {kind: seconds_of(pids) for kind, pids in kinds.items()}
    seconds, waits = await load(port, asked.__getitem__, count, in_flight)
    return Measured(count / seconds, waits, {kind: (seconds_of(pids) - before[kind]) / count for kind, pids in kinds.items()})


def told(name: str, measured: Measured, unit: int = 1) -> str:
    cost = ", ".join(f"{kind} {seconds / unit * 1e6:,.0f}" for kind, seconds in measured.processor.items())
    waits = sorted(measured.waits)
    p99 = waits[int(0.99 * (len(waits) - 1))] * 1e3
    return f"  {name:<10}{measured.rate * unit:10,.0f} a second, p99 {p99:7.1f} ms; processor time each in µs: {cost}"


async def compare(server: PrivatePostgres, one: int, several: int, single: dict[str, list[int]], cluster: dict[str, list[int]]) -> None:
    asking = {one: Asking(), several: Asking()}
    for port in (one, several):
        await load(port, asking[port].batch, 4, 1)
    shapes: tuple[tuple[str, str, int, int, int], ...] = (
        ("durable feedbacks", "feedback", REQUESTS, IN_FLIGHT, 1),
        ("recommendations", "recommend", REQUESTS, IN_FLIGHT, 1),
        (f"durable feedbacks, {MANY} under way", "feedback", 2 * REQUESTS, MANY, 1),
        (f"recommendations, {MANY} under way", "recommend", 2 * REQUESTS, MANY, 1),
        ("events in NDJSON batches", "batch", 40, BATCHES, LINES),
    )
    for name, method, count, in_flight, unit in shapes:
        found: dict[int, list[Measured]] = {one: [], several: []}
        for _ in range(ROUNDS):
            for port, kinds in ((one, single), (several, cluster)):
                ask = getattr(asking[port], method)
                found[port].append(await measure(port, ask, count, in_flight, {**kinds, "PostgreSQL": postgres_of(server)}))
        best = {port: max(rounds, key=lambda measured: measured.rate) for port, rounds in found.items()}
        ratio = statistics.median(b.rate / a.rate for a, b in zip(found[one], found[several], strict=True))
        print(f"{name}: the cluster does {ratio:.2f} times what one engine does (median of {ROUNDS} turns)")
        print(told("one engine", best[one], unit))
        print(told("cluster", best[several], unit), flush=True)


async def recover(address: str, port: int, events: int) -> None:
    """Kill a shard with so many events, and see how long its users wait, and whether those of the other notice."""
    asking = Asking()
    asking._count = 10**9
    began = time.perf_counter()
    await load(port, asking.batch, -(-events * SHARDS // LINES), BATCHES)
    print(f"\n{events * SHARDS:,} events more in {time.perf_counter() - began:.0f} s")
    near, away = (next(f"u{number}" for number in range(USERS) if shard_of(f"u{number}", SHARDS) == shard) for shard in (1, 0))

    def ask(user: str) -> Ask:
        return lambda _: ("/v1/recommend", json.dumps({"user": user, "candidates": ["i1", "i2"]}).encode())

    async def undisturbed(until: "asyncio.Task[float] | None") -> float:
        waits: list[float] = []
        while (until is None and len(waits) < 300) or (until is not None and not until.done()):
            waits += (await load(port, ask(near), 10, 2))[1]
        return sorted(waits)[int(0.99 * (len(waits) - 1))] * 1e3

    before = await undisturbed(None)
    victim = running.status(address)["shards"][0]
    os.kill(victim["pid"], signal.SIGKILL)

    async def back() -> float:
        return (await load(port, ask(away), 1, 1))[0]

    waiting = asyncio.create_task(back())
    during = await undisturbed(waiting)
    print(f"A shard with {victim['seq']:,} events is killed: its users wait {await waiting:.1f} s")
    print(f"Users of the other shard: p99 {before:.0f} ms before, {during:.0f} ms meanwhile", flush=True)


async def run(server: PrivatePostgres, scratch: Path, events: int) -> None:
    options = Options(policy=ALB(rank=RANK), scale=(1, 5))
    one, several = (server.create_database(name) for name in ("one", "several"))
    running.make(one, 1, options)
    running.make(several, SHARDS, options)
    ports = []
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            held, port = free_port("127.0.0.1")
            ports.append(port)
            held.close()
        for name in ("one", "several"):
            (scratch / name).mkdir()
        stack.enter_context(command(scratch / "one", "serve", one, "--port", str(ports[0]), "--snapshots", str(scratch / "one")))
        words = ("cluster", "start", several, "--fronts", "1", "--port", str(ports[1]), "--snapshots", str(scratch / "several"))
        stack.enter_context(command(scratch / "several", *words))
        for port in ports:
            await wait_ready(port)
        known = running.status(several)
        cluster = {"front": [front["pid"] for front in known["fronts"]], "shards": [shard["pid"] for shard in known["shards"]]}
        owner = next(line for line in PostgresHome(one).facts() if "process" in line)
        single = {"engine": [int(owner.rpartition("process ")[2])]}
        await compare(server, ports[0], ports[1], single, cluster)
        if events:
            await recover(several, ports[1], events)


def exchange() -> None:
    """What one exchange of two shards costs each, and how large it is."""
    for policy in (ALB(rank=RANK), MeanField(rank=RANK)):
        shards = [Exchange(Agent(policy, USERS, ITEMS), shard, SHARDS) for shard in range(SHARDS)]
        random = np.random.default_rng(0)
        found = []
        for turn in range(TURNS):
            count = FRESH if turn else USERS * 5
            for shard in shards:
                given = (random.integers(USERS, size=count), random.integers(ITEMS, size=count), random.integers(1, 6, size=count) * 1.0)
                shard.agent.replay(*given)
            began = time.process_time()
            version = [shard.take().to_bytes() for shard in shards]
            taken = time.process_time()
            for shard in shards:
                shard.fold([Payload.from_bytes(content) for content in version])
            folded = time.process_time()
            found.append((taken - began, folded - taken, sum(map(len, version))))
        take, fold, size = (statistics.median(column) / SHARDS for column in zip(*found[3:], strict=True))
        cost = f"take {take * 1e3:.2f} ms, fold {fold * 1e3:.2f} ms, {size:,.0f} bytes"
        print(f"{policy.policy_name()}, after {FRESH} ratings on each of {SHARDS} shards: {cost}")


def main(events: int) -> None:
    print("\n".join(machine.describe()))
    exchange()
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server:
        asyncio.run(run(server, Path(scratch), events))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
