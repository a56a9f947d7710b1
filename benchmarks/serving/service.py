"""The throughput of a server: `python -m benchmarks.serving.service`.

A server process and a client process on one machine. The client keeps so many requests in flight over as many connections; every rating is
durable before it is answered. Time on the clock is what users wait for, so run it on a machine that does nothing else. Processor time is
printed beside it, and as a multiple of what a bare uvicorn takes to echo bodies of the same sizes, measured by turns in the same run.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import uvloop

from albatross import Agent
from albatross.policies.alb import ALB
from albatross.service.api.requests import Feedback
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.mark import Mark
from albatross.service.storage.sqlite.log import SQLiteLog
from albatross.service.storage.store import Row
from benchmarks import machine
from benchmarks.serving.servers import (
    IN_FLIGHT,
    ITEMS,
    MANY_IN_FLIGHT,
    RANK,
    USERS,
    WARM_UP,
    Ask,
    Echo,
    Load,
    Service,
    answer_length,
    event,
    feedback,
    fill,
    median,
    ratio,
    recommend,
    recommend_with,
)

LEAST_FEEDBACKS, LEAST_RECOMMENDATIONS, MOST_MILLISECONDS = 1_000, 2_000, 25.0
MOST_ECHOES = 2.2
"""Limit of the cost of a request in echoes."""
LEAST_SHARE = 0.9
"""Of the requests that a core can answer, so many at least where they say more than they must."""
TURNS = 20
"""Number of repetitions, each short. The medians count."""

WHERE = b'"where": {"attribute": "category", "is": "c3"}'
REASONS = b'"explain": "reasons"'
EXPLAIN = b'"explain": true'
FURTHER = {"… with where": "recommendation", "… with reasons": "recommendation", "… by an event": "durable feedback"}
"""Requests that say more than they must, and those that do not."""
ECHOED = ("recommendation", "durable feedback", "… with explain")
"""Requests that are compared with an echo; for an explanation it tells what sending so many bytes costs."""
BUSY = {"recommendation": "recommendation, busy", "durable feedback": "durable feedback, busy"}
"""Names of the same with more requests in flight."""
POLICIES = {"alb": ("--policy=alb", f"--set=rank={RANK}"), "mean-field": ("--policy=mean-field",)}


async def measure(folder: Path, policy: str) -> tuple[dict[str, list[Load]], dict[str, list[Load]]]:
    """The cost of each kind of request, and of its echo if it is compared with one, once per turn."""
    loads: dict[str, list[Load]] = {}
    echoes: dict[str, list[Load]] = {}
    async with Service(folder, POLICIES[policy]) as service, AsyncExitStack() as stack:
        await fill(service)
        for turn in range(TURNS):
            asks: dict[str, Ask] = {
                "recommendation": recommend,
                "durable feedback": feedback(f"durable {turn}"),
                "… with where": recommend_with(WHERE),
                "… with reasons": recommend_with(REASONS),
                "… with explain": recommend_with(EXPLAIN),
                "… by an event": event(f"named {turn}"),
            }
            if not turn:
                servers = {name: await stack.enter_async_context(Echo(await answer_length(service.port, asks[name]))) for name in ECHOED}
            for name, echo in servers.items():
                await echo.load(asks[name], WARM_UP)
                echoes.setdefault(name, []).append(await echo.load(asks[name]))
                if name in BUSY:
                    echoes.setdefault(BUSY[name], []).append(await echo.load(asks[name], in_flight=MANY_IN_FLIGHT))
            await service.load(recommend, WARM_UP)  # as each echo is
            for name in rotated(list(asks), turn):
                loads.setdefault(name, []).append(await service.load(asks[name]))
            for name, ask in (("recommendation", recommend), ("durable feedback", feedback(f"busy {turn}"))):
                loads.setdefault(BUSY[name], []).append(await service.load(ask, in_flight=MANY_IN_FLIGHT))
    return loads, echoes


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Each name is first as often as it is last: what comes first after a pause is cheaper."""
    first = turn % len(names)
    return [*names[first:], *names[:first]]


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

    def _write(self, at: int, content: bytes) -> None:
        clock, processor = time.perf_counter(), time.thread_time()
        super()._write(at, content)
        TimedMark.waiting += (time.perf_counter() - clock) - (time.thread_time() - processor)


class TimedLog(SQLiteLog):
    """A log that records the time of its commits, and how much of it was waiting for the disk."""

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
    shown = f"{measured:,.0f}" if measured >= 100 else f"{measured:.1f}" if measured >= 1 else f"{measured:.2f}"
    if least is not None:
        return what, shown, f"≥ {least:,g}", measured >= least
    return (what, shown, "–", None) if most is None else (what, shown, f"≤ {most:g}", measured <= most)


def main() -> int:
    print(*machine.describe(), f"{USERS:,} users, {ITEMS:,} items, rank {RANK}, {IN_FLIGHT} requests in flight", "", sep="\n")
    scratch = Path(tempfile.mkdtemp(prefix="albatross-bench-"))
    try:
        loads, echoes = uvloop.run(measure(scratch / "commit", "alb"))
        others, _ = uvloop.run(measure(scratch / "mean-field", "mean-field"))
        wait, mark, waiting = disk(scratch / "disk")
    finally:
        shutil.rmtree(scratch)
    chosen, learned = kernel_seconds()
    asked, rated = median(loads["recommendation"]), median(loads["durable feedback"])

    def echoed(name: str) -> float:
        return ratio(loads[name], echoes[name])

    def shares(what: str, measured: dict[str, list[Load]], name: str) -> Iterator[tuple[str, str, str, bool | None]]:
        turns = list(zip(measured[name], measured[FURTHER[name]], strict=True))
        yield _row(f"{what}, processor", statistics.median(plain.processor / more.processor for more, plain in turns), least=LEAST_SHARE)
        yield _row("  by the clock", statistics.median(more.rate / plain.rate for more, plain in turns), least=LEAST_SHARE)

    rows = [
        _row("recommendations/s", asked.rate, least=LEAST_RECOMMENDATIONS),
        _row("  p50, ms", asked.percentile(0.5)),
        _row("  p99, ms", asked.percentile(0.99), most=MOST_MILLISECONDS),
        _row("  processor, echoes", echoed("recommendation"), most=MOST_ECHOES),
        _row(f"  the same, {MANY_IN_FLIGHT} in flight", echoed(BUSY["recommendation"])),
        _row("durable feedbacks/s", rated.rate, least=LEAST_FEEDBACKS),
        _row("  p50, ms", rated.percentile(0.5)),
        _row("  p99, ms", rated.percentile(0.99)),
        _row("  processor, echoes", echoed("durable feedback"), most=MOST_ECHOES),
        _row(f"  the same, {MANY_IN_FLIGHT} in flight", echoed(BUSY["durable feedback"])),
        *(row for name in FURTHER for row in shares(f"share {name[2:]}", loads, name)),
        _row("share with explain, processor", ratio(loads["recommendation"], loads["… with explain"])),
        *(row for name in FURTHER for row in shares(f"mean-field, {name[2:]}", others, name)),
    ]
    for row in ("what", "measured", "needed", "met"), ("---",) * 4:
        print("| {:<35} | {:>9} | {:>8} | {:<6} |".format(*row))
    for what, measured, needed, met in rows:
        print(f"| {what:<35} | {measured:>9} | {needed:>8} | { ({True: 'yes', False: '**no**', None: '–'}[met]):<6} |")
    print("A share is of the requests that are answered in a time: in processor time, or by the clock.")
    for policy, found in (("alb", loads), ("mean-field", others)):
        print(f"\nProcessor time a request, µs, {policy}:")
        for name, load in ((name, median(measured)) for name, measured in found.items()):
            print(f"  {name}: {load.processor * 1e6:.0f} = network {load.network * 1e6:.0f} + engine {load.engine * 1e6:.0f}")
    print("\nAn echo of the same sizes by a bare uvicorn, µs:")
    for name, found_echoes in echoes.items():
        print(f"  {name}: {median(found_echoes).processor * 1e6:.0f}")
    print(f"ALB's kernels: a choice {chosen * 1e6:.1f}, a rating {learned * 1e6:.1f}.")
    print(
        f"One commit of {IN_FLIGHT} ratings waits {wait * 1e3:.2f} ms for the disk, of it {mark * 1e3:.2f} ms for the mark: "
        f"{waiting:.0%} of the engine's time without HTTP."
    )
    return 0 if all(met is not False for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
