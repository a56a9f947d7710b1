"""How much a server holds: `python -m benchmarks.service`.

A server process and a client process on one machine. The client keeps so many requests in flight over as many connections; every rating is
durable before it is answered. Time on the clock is what users wait for, so run it on a machine that does nothing else. Processor time is
printed beside it, and as a multiple of what a bare uvicorn takes to echo bodies of the same sizes, measured by turns in the same run.
"""

import asyncio
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import uvloop

from albatross import Agent
from albatross.policies.alb import ALB
from albatross.service.api.requests import Feedback
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.log import SQLiteLog
from albatross.service.storage.mark import Head, Mark
from albatross.service.storage.store import Row
from benchmarks import machine
from benchmarks.loopback import Connection

USERS, ITEMS, RANK = 1_000, 1_700, 5
IN_FLIGHT = 16
WARM_UP, REQUESTS = 1_000, 12_000
LEAST_FEEDBACKS, LEAST_RECOMMENDATIONS, MOST_MILLISECONDS = 1_000, 2_000, 25.0
MOST_ECHOES = 2.2
"""A request may cost so many times what an echo costs."""
ROUNDS = 3
"""How often each is measured; the least of the processor times counts, as whatever else runs only adds to it."""

Ask = Callable[[int], tuple[str, bytes]]


@dataclass(frozen=True)
class Load:
    """What came of many requests, in seconds."""

    rate: float
    waits: list[float]
    network: float
    """Processor time a request of the thread that talks to the network: reading, checking, writing."""
    engine: float
    """The same of the engine's thread: deciding, learning, the log."""

    @property
    def processor(self) -> float:
        return self.network + self.engine

    def percentile(self, share: float) -> float:
        return sorted(self.waits)[int(share * len(self.waits))] * 1e3


def processor_times(process: int) -> tuple[float, float]:
    """Seconds that the first thread of a process and all others have computed so far."""
    spent: dict[int, float] = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        spent[int(task.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    first = spent.pop(process)
    return first, sum(spent.values())


class Server:
    """A process that answers on a port."""

    process: asyncio.subprocess.Process
    port: int

    async def __aexit__(self, *error: object) -> None:
        self.process.terminate()
        await self.process.communicate()

    async def load(self, ask: Ask, requests: int = REQUESTS) -> Load:
        waits: list[float] = []
        numbers = itertools.count()

        async def work() -> None:
            connection = await Connection.open(self.port)
            while (number := next(numbers)) < requests:
                path, body = ask(number)
                began = time.perf_counter()
                status, answer = await connection.post(path, body)
                waits.append(time.perf_counter() - began)
                if status != 200:
                    raise RuntimeError(f"status {status}: {answer!r}")
            connection.close()

        before, began = processor_times(self.process.pid), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
        seconds, after = time.perf_counter() - began, processor_times(self.process.pid)
        return Load(requests / seconds, waits, (after[0] - before[0]) / requests, (after[1] - before[1]) / requests)


class Service(Server):
    """`albatross serve` with 1,700 items and some history."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-c", "import sys, albatross.cli; sys.exit(albatross.cli.main())", "serve", str(self.folder)]
        settings = ["--scale=1..5", "--policy=alb", f"--set=rank={RANK}", "--port=0", "--log=json"]
        self.process = await asyncio.create_subprocess_exec(*command, *settings, stderr=asyncio.subprocess.PIPE)
        assert self.process.stderr is not None
        line = {"event": ""}
        while line["event"] != "ready":
            written = await self.process.stderr.readline()
            if not written.startswith(b"{"):  # what the compiler says, the first time
                continue
            line = json.loads(written)
            if line["event"] == "listening":
                self.port = int(line["url"].rpartition(":")[2])
        return self


class Echo(Server):
    def __init__(self, length: int) -> None:
        self.length = length

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.echo", str(self.length)]
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


async def fill(server: Service) -> None:
    """Every user and every item is known and has a rating."""
    connection = await Connection.open(server.port)
    lines = (feedback("fill")(number)[1] for number in range(2 * ITEMS))
    status, answer = await connection.post("/v1/feedback/batch", b"\n".join(lines))
    if status != 200 or b'"status":4' in answer:
        raise RuntimeError(f"status {status}: {answer[:200]!r}")
    connection.close()
    await server.load(recommend, WARM_UP)
    await server.load(feedback("warm"), WARM_UP)


def cheapest(loads: Sequence[Load]) -> Load:
    return min(loads, key=lambda load: load.processor)


async def answer_length(port: int, ask: Ask) -> int:
    connection = await Connection.open(port)
    _, answer = await connection.post(*ask(0))
    connection.close()
    return len(answer)


async def measure(scratch: Path) -> tuple[Load, Load, Load, Load]:
    """A recommendation, its echo, a durable feedback, its echo."""
    async with Service(scratch / "commit") as service:
        await fill(service)
        loads: dict[str, list[Load]] = {name: [] for name in ("recommendation", "its echo", "feedback", "echo of that")}
        for turn in range(ROUNDS):
            rate = feedback(f"durable {turn}")
            for name, ask in (("recommendation", recommend), ("feedback", rate)):
                async with Echo(await answer_length(service.port, ask)) as echo:
                    await echo.load(ask, WARM_UP)
                    loads["its echo" if name == "recommendation" else "echo of that"].append(await echo.load(ask))
                loads[name].append(await service.load(ask))
    asked, echoed, rated, echoed_rating = (cheapest(found) for found in loads.values())
    return asked, echoed, rated, echoed_rating


def kernel_seconds(repetitions: int = 2_000) -> tuple[float, float]:
    """Processor time of one choice and of one rating, by the agent alone."""
    agent = Agent(ALB(rank=RANK), USERS, ITEMS)
    agent.select(0)
    agent.update(0, 0, 3.0)
    began = time.process_time()
    for number in range(repetitions):
        agent.select(number % USERS)
    chosen = time.process_time()
    agent.replay(np.arange(repetitions) % USERS, np.arange(repetitions) % ITEMS, np.full(repetitions, 3.0))
    return (chosen - began) / repetitions, (time.process_time() - chosen) / repetitions


class TimedMark(Mark):
    waiting = 0.0

    def set(self, head: Head) -> None:
        clock, processor = time.perf_counter(), time.thread_time()
        super().set(head)
        TimedMark.waiting += (time.perf_counter() - clock) - (time.thread_time() - processor)


class TimedLog(SQLiteLog):
    """A log that knows how long its commits took, and how much of that was waiting for the disk."""

    commits = 0
    waiting = 0.0

    def __init__(self, folder: Path, durable: bool) -> None:
        super().__init__(folder, durable)
        self._mark = TimedMark(folder)

    def append(self, rows: Sequence[Row]) -> None:
        clock, processor = time.perf_counter(), time.thread_time()
        super().append(rows)
        TimedLog.waiting += (time.perf_counter() - clock) - (time.thread_time() - processor)
        TimedLog.commits += 1


def disk(folder: Path, groups: int = 200) -> tuple[float, float, float]:
    """Seconds that one commit waits for the disk, that part of it which is the mark's, and its share of the time."""
    options = Options(scale=(1, 5), policy=ALB(rank=RANK))
    with Engine(folder, options, open_store=lambda home, durable: TimedLog(home.folder, durable)) as engine:
        engine.wait_ready()
        TimedLog.commits, TimedLog.waiting, TimedMark.waiting = 0, 0.0, 0.0
        began = time.perf_counter()
        for group in range(groups):
            numbers = range(group * IN_FLIGHT, (group + 1) * IN_FLIGHT)
            answers = [engine.submit(Feedback(f"e{n}", 1.0 + n % 5, user=f"u{n % USERS}", item=f"i{n % ITEMS}")) for n in numbers]
            for answer in answers:
                answer.result()
        seconds = time.perf_counter() - began
        return TimedLog.waiting / TimedLog.commits, TimedMark.waiting / TimedLog.commits, TimedLog.waiting / seconds


def _row(what: str, measured: float, least: float | None = None, most: float | None = None) -> tuple[str, str, str, bool | None]:
    shown = f"{measured:,.0f}" if measured >= 100 else f"{measured:.1f}"
    if least is not None:
        return what, shown, f"≥ {least:,.0f}", measured >= least
    return (what, shown, "–", None) if most is None else (what, shown, f"≤ {most:g}", measured <= most)


def main() -> int:
    print(*machine.describe(), f"{USERS:,} users, {ITEMS:,} items, rank {RANK}, {IN_FLIGHT} requests in flight", "", sep="\n")
    scratch = Path(tempfile.mkdtemp(prefix="albatross-bench-"))
    try:
        asked, echoed, rated, echoed_rating = uvloop.run(measure(scratch))
        wait, mark, share = disk(scratch / "disk")
    finally:
        shutil.rmtree(scratch)
    select, update = kernel_seconds()
    rows = [
        _row("recommendations/s", asked.rate, least=LEAST_RECOMMENDATIONS),
        _row("  p50, ms", asked.percentile(0.5)),
        _row("  p99, ms", asked.percentile(0.99), most=MOST_MILLISECONDS),
        _row("  processor, echoes", asked.processor / echoed.processor, most=MOST_ECHOES),
        _row("durable feedbacks/s", rated.rate, least=LEAST_FEEDBACKS),
        _row("  p50, ms", rated.percentile(0.5)),
        _row("  p99, ms", rated.percentile(0.99)),
        _row("  processor, echoes", rated.processor / echoed_rating.processor, most=MOST_ECHOES),
    ]
    for row in ("what", "measured", "needed", "met"), ("---",) * 4:
        print("| {:<20} | {:>9} | {:>8} | {:<6} |".format(*row))
    for what, measured, needed, met in rows:
        print(f"| {what:<20} | {measured:>9} | {needed:>8} | { ({True: 'yes', False: '**no**', None: '–'}[met]):<6} |")
    print("\nProcessor time a request, µs:")
    for name, load, echo, kernel in (("recommendation", asked, echoed, select), ("durable feedback", rated, echoed_rating, update)):
        print(
            f"  {name}: {load.processor * 1e6:.0f} = network {load.network * 1e6:.0f} + engine {load.engine * 1e6:.0f}, "
            f"of it the kernel {kernel * 1e6:.1f}; an echo of the same sizes by a bare uvicorn {echo.processor * 1e6:.0f}"
        )
    print(
        f"One commit of {IN_FLIGHT} ratings waits {wait * 1e3:.2f} ms for the disk, of it {mark * 1e3:.2f} ms for the mark: "
        f"{share:.0%} of the engine's time without HTTP."
    )
    return 0 if all(met is not False for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
