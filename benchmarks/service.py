"""How much a server holds: `python -m benchmarks.service`.

A server process and a client process on one machine. The client keeps so many requests in flight over as many connections; every rating is
durable before it is answered. Time on the clock is what users wait for, so run it on a machine that does nothing else. Processor time is
printed beside it, and depends less on who else is there.
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
from albatross.service.engine import Engine, Options
from albatross.service.log import Row, SQLiteLog
from albatross.service.messages import Feedback
from benchmarks import machine
from benchmarks.loopback import Connection

USERS, ITEMS, RANK = 1_000, 1_700, 5
IN_FLIGHT = 16
WARM_UP, REQUESTS = 1_000, 12_000
LEAST_FEEDBACKS, LEAST_RECOMMENDATIONS, MOST_MILLISECONDS = 1_000, 2_000, 25.0

Ask = Callable[[int], tuple[str, bytes]]


@dataclass(frozen=True)
class Load:
    """What came of many requests, in seconds."""

    rate: float
    waits: list[float]
    network: float
    """Processor time a request of the thread that talks to the network: reading, checking, writing, and the framework."""
    engine: float
    """The same of the engine's thread: deciding, learning, the log."""

    def percentile(self, share: float) -> float:
        return sorted(self.waits)[int(share * len(self.waits))] * 1e3


class Server:
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

    async def __aexit__(self, *error: object) -> None:
        self.process.terminate()
        await self.process.communicate()

    def threads(self) -> tuple[float, float]:
        """Processor time of the first thread and of all others so far."""
        spent: dict[int, float] = {}
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            spent[int(task.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        first = spent.pop(self.process.pid)
        return first, sum(spent.values())

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

        before, began = self.threads(), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
        seconds, after = time.perf_counter() - began, self.threads()
        return Load(requests / seconds, waits, (after[0] - before[0]) / requests, (after[1] - before[1]) / requests)


def recommend(number: int) -> tuple[str, bytes]:
    return "/v1/recommend", b'{"user": "u%d"}' % (number * 7919 % USERS)


def feedback(prefix: str) -> Ask:
    def ask(number: int) -> tuple[str, bytes]:
        user, item = number * 7919 % USERS, number * 104_729 % ITEMS
        event = {"event_id": f"{prefix}-{number}", "user": f"u{user}", "item": f"i{item}", "rating": 1 + number % 5}
        return "/v1/feedback", json.dumps(event).encode()

    return ask


async def fill(server: Server) -> None:
    """Every user and every item is known and has a rating."""
    connection = await Connection.open(server.port)
    lines = (feedback("fill")(number)[1] for number in range(2 * ITEMS))
    status, answer = await connection.post("/v1/feedback/batch", b"\n".join(lines))
    if status != 200 or b'"status":4' in answer:
        raise RuntimeError(f"status {status}: {answer[:200]!r}")
    connection.close()
    await server.load(recommend, WARM_UP)
    await server.load(feedback("warm"), WARM_UP)


def recommend_by_framework(number: int) -> tuple[str, bytes]:
    """With a stroke at the end, the framework answers."""
    path, body = recommend(number)
    return f"{path}/", body


async def measure(scratch: Path) -> tuple[Load, Load, Load]:
    async with Server(scratch / "commit") as server:
        await fill(server)
        recommendations, feedbacks = await server.load(recommend), await server.load(feedback("durable"))
        framework = await server.load(recommend_by_framework, REQUESTS // 4)
    return recommendations, feedbacks, framework


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


class TimedLog(SQLiteLog):
    """A log that knows how long its commits took, and how much of that was waiting for the disk."""

    commits = 0
    waiting = 0.0

    def append(self, rows: Sequence[Row]) -> None:
        clock, processor = time.perf_counter(), time.thread_time()
        super().append(rows)
        TimedLog.waiting += (time.perf_counter() - clock) - (time.thread_time() - processor)
        TimedLog.commits += 1


def disk(folder: Path, groups: int = 200) -> tuple[float, float]:
    """Seconds that one commit waits for the disk, and its share of the time, where so many ratings are committed together."""
    with Engine(folder, Options(scale=(1, 5), policy=ALB(rank=RANK)), open_store=TimedLog) as engine:
        engine.wait_ready()
        TimedLog.commits, TimedLog.waiting = 0, 0.0
        began = time.perf_counter()
        for group in range(groups):
            numbers = range(group * IN_FLIGHT, (group + 1) * IN_FLIGHT)
            answers = [engine.submit(Feedback(f"e{n}", 1.0 + n % 5, user=f"u{n % USERS}", item=f"i{n % ITEMS}")) for n in numbers]
            for answer in answers:
                answer.result()
        seconds = time.perf_counter() - began
        return TimedLog.waiting / TimedLog.commits, TimedLog.waiting / seconds


def _row(what: str, measured: float, least: float | None = None, most: float | None = None) -> tuple[str, str, str, bool | None]:
    shown = f"{measured:,.0f}" if measured >= 100 else f"{measured:.1f}"
    if least is not None:
        return what, shown, f"≥ {least:,.0f}", measured >= least
    return (what, shown, "–", None) if most is None else (what, shown, f"≤ {most:g}", measured <= most)


def main() -> int:
    print(*machine.describe(), f"{USERS:,} users, {ITEMS:,} items, rank {RANK}, {IN_FLIGHT} requests in flight", "", sep="\n")
    scratch = Path(tempfile.mkdtemp(prefix="albatross-bench-"))
    try:
        recommendations, feedbacks, framework = uvloop.run(measure(scratch))
        wait, share = disk(scratch / "disk")
    finally:
        shutil.rmtree(scratch)
    select, update = kernel_seconds()
    rows = [
        _row("recommendations/s", recommendations.rate, least=LEAST_RECOMMENDATIONS),
        _row("  p50, ms", recommendations.percentile(0.5)),
        _row("  p99, ms", recommendations.percentile(0.99), most=MOST_MILLISECONDS),
        _row("durable feedbacks/s", feedbacks.rate, least=LEAST_FEEDBACKS),
        _row("  p50, ms", feedbacks.percentile(0.5)),
        _row("  p99, ms", feedbacks.percentile(0.99)),
    ]
    for row in ("what", "measured", "needed", "met"), ("---",) * 4:
        print("| {:<20} | {:>9} | {:>8} | {:<6} |".format(*row))
    for what, measured, needed, met in rows:
        print(f"| {what:<20} | {measured:>9} | {needed:>8} | { ({True: 'yes', False: '**no**', None: '–'}[met]):<6} |")
    print("\nProcessor time a request, µs:")
    for name, load, kernel in (("recommendation", recommendations, select), ("durable feedback", feedbacks, update)):
        total = load.network + load.engine
        print(
            f"  {name}: {total * 1e6:.0f} = network {load.network * 1e6:.0f} ({load.network / total:.0%}) + engine "
            f"{load.engine * 1e6:.0f} ({load.engine / total:.0%}), of it the kernel {kernel * 1e6:.1f} ({kernel / total:.0%})"
        )
    saved = framework.network - recommendations.network
    print(f"With the framework, a recommendation would take {saved * 1e6:.0f} µs more of the network's share.")
    print(f"One commit of {IN_FLIGHT} ratings waits {wait * 1e3:.2f} ms for the disk: {share:.0%} of the engine's time without HTTP.")
    return 0 if all(met is not False for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
