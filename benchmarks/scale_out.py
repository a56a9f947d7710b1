"""A queueing model of a cluster against runs with 1, 2 and 4 shards: `python -m benchmarks.scale_out`.

Batches of ratings go to one front, on one machine with everything else. Of each part, the model has the processor time of a group of
ratings that is committed together, and of a rating; they are measured with one batch under way, on one shard. What an exchange costs is
measured in the same way on two. The model then says how many events a second there are with several batches under way: at most, if
others on this machine gave way, and at least, if they kept what they used of the processors in that run. On a machine that does nothing
else these are the same. Every run is repeated, because runs differ.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.policies.alb import ALB
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.engine.learned.options import Options
from albatross.service.http.access.turns import MOST_BATCHES
from albatross.service.http.bodies import MOST_BREADTH, SLICE
from albatross.service.storage.postgres.session import connect
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks import machine
from benchmarks.cluster import RANK, TICKS, Asking, command, load, postgres_of, seconds_of, wait_ready

SMALL = 100
REPEATS = 5
"""Runs of each kind."""
LEAST_LEFT = 0.25
"""Processors that are left whatever others do."""
BATCHES, LINES = 4, 1_000
Times = NDArray[np.float64]
KINDS = ("client", "front", "shards", "PostgreSQL", "Ray")


class Run(NamedTuple):
    """Of a load of batches."""

    events: int
    seconds: float
    spent: Times
    """Processor time by kind."""
    versions: int
    written: int
    """Bytes that PostgreSQL has written to its journal."""
    others: float
    """Processors that were busy with something else."""


class Cluster:
    def __init__(self, server: PrivatePostgres, shards: int, port: int, address: str) -> None:
        self.server, self.shards, self.port, self.address = server, shards, port, address
        self.asking = Asking()

    async def run(self, lines: int, count: int, in_flight: int) -> Run:
        asked = [("/v1/feedback/batch", self.asking.lines(lines)) for _ in range(count)]
        versions, spent, written, busy = self._versions(), self._spent(), self._written(), busy_seconds()
        seconds, _ = await load(self.port, asked.__getitem__, count, in_flight)
        after, all_busy = self._spent() - spent, busy_seconds() - busy
        others = max(all_busy - float(after.sum()), 0.0) / seconds
        return Run(lines * count, seconds, after, self._versions() - versions, self._written() - written, others)

    def _versions(self) -> int:
        return int(running.status(self.address)["item_version"])

    def _written(self) -> int:
        with contextlib.closing(connect(self.address)) as session:
            found = session.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        return 0 if found is None else int(found[0])

    def _spent(self) -> Times:
        known = running.status(self.address)
        fronts, shards = ([one["pid"] for one in known[kind]] for kind in ("fronts", "shards"))
        everything = _descendants(os.getpid())
        postgres = postgres_of(self.server)
        rest = [pid for pid in everything if pid not in {*fronts, *shards, *postgres}]
        return np.array([time.process_time(), *(seconds_of(pids) for pids in (fronts, shards, postgres, rest))])


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


@contextlib.asynccontextmanager
async def cluster(server: PrivatePostgres, scratch: Path, shards: int) -> AsyncIterator[Cluster]:
    address = server.create_database(f"shards{shards}")
    running.make(address, shards, Options(policy=ALB(rank=RANK), scale=(1, 5)))
    held, port = free_port("127.0.0.1")
    held.close()
    folder = scratch / str(shards)
    folder.mkdir()
    with command(folder, "cluster", "start", address, "--fronts", "1", "--port", str(port)):
        await wait_ready(port)
        made = Cluster(server, shards, port, address)
        await made.run(LINES, 6, 1)  # every user and item is known, and code is warm
        yield made


class Model(NamedTuple):
    """Processor time by kind, in seconds."""

    group: Times
    rating: Times
    version: Times
    """Per version and shard."""
    flush: float
    """Seconds that the disk takes for a commit."""

    def events_a_second(self, shards: int, versions: float, others: float) -> float:
        """With several batches under way and so many versions per second, while so many processors are busy with something else.

        A batch waits for its shards. Each shard does one thing after the other: it learns its part of a slice, PostgreSQL writes it, the
        disk keeps it. All shards work at the same time. Computing takes longer the busier the processors are, as in a queue with several
        servers and random arrivals.
        """
        cores = float(os.cpu_count() or 1)
        left = max(cores - others, LEAST_LEFT)
        slices = max(1.0, LINES / (SLICE * min(shards, MOST_BREADTH)))
        whole = slices * shards * self.group + self.rating * LINES
        serial = [KINDS.index(kind) for kind in ("shards", "PostgreSQL")]
        own, rest = whole[serial].sum() / shards, whole.sum() - whole[serial].sum()
        exchanging = versions * shards * float(self.version.sum())
        pausing = versions * float(self.version[serial[0]])  # of a shard, which learns nothing meanwhile
        rate = 0.0
        for _ in range(200):  # how busy the processors are depends on the rate, which depends on that
            load = min((rate * whole.sum() + exchanging) / left, 0.99)
            longer = 1 / (1 - load**cores)
            at_shards = (own * longer + slices * self.flush) / max(1 - pausing * longer, 0.1)
            rate += 0.1 * (_throughput(at_shards, rest * longer, MOST_BATCHES) - rate)
        return rate * LINES


def _throughput(queued: float, apart: float, customers: int) -> float:
    """How many customers per second a closed system serves: each is served, one after the other, and then busy elsewhere."""
    length = rate = 0.0
    for number in range(1, customers + 1):
        stay = queued * (1 + length)
        rate = number / (stay + apart)
        length = rate * stay
    return rate


def flush_seconds(folder: Path) -> float:
    """How long the disk takes to keep what a commit writes."""
    times = []
    with (folder / "journal").open("wb", buffering=0) as file:
        for _ in range(30):
            began = time.perf_counter()
            file.write(os.urandom(2**18))
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return float(np.median(times))


def busy_seconds() -> float:
    """Processor time of everybody on this machine."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


async def measure(server: PrivatePostgres, scratch: Path) -> None:
    runs: dict[int, list[Run]] = {}
    async with cluster(server, scratch, 1) as one:
        small = [await one.run(SMALL, 80, 1) for _ in range(REPEATS)]
        large = [await one.run(SLICE, 40, 1) for _ in range(REPEATS)]
        runs[1] = [await one.run(LINES, 60, BATCHES) for _ in range(REPEATS)]
    per_group = [_median([run.spent / run.events * lines for run in found]) for found, lines in ((small, SMALL), (large, SLICE))]
    rating = np.maximum((per_group[1] - per_group[0]) / (SLICE - SMALL), 0.0)
    group = np.maximum(per_group[0] - SMALL * rating, 0.0)
    async with cluster(server, scratch, 2) as two:
        alone = [await two.run(SLICE, 40, 1) for _ in range(REPEATS)]
        expected = 40 * (group * 2 + rating * SLICE)
        version = np.maximum(_median([(run.spent - expected) / max(1, run.versions * 2) for run in alone]), 0.0)
        runs[2] = [await two.run(LINES, 60, BATCHES) for _ in range(REPEATS)]
    async with cluster(server, scratch, 4) as four:
        runs[4] = [await four.run(LINES, 60, BATCHES) for _ in range(REPEATS)]
    model = Model(group, rating, version, flush_seconds(scratch))
    print(f"| processor time in µs | {' | '.join(KINDS)} |", "| --- |" + " ---: |" * len(KINDS), sep="\n")
    for name, row in (("a group", group), ("a rating", rating), ("a version, each shard", version)):
        print(f"| {name} | {' | '.join(f'{value * 1e6:,.1f}' for value in row)} |")
    print(f"The disk takes {model.flush * 1e3:.1f} ms for a commit.\n")
    columns = (
        "shards",
        "events per second",
        "model, others give way",
        "model, others stay",
        "versions per second",
        "µs per event",
        "journal bytes per event",
        "other load",
    )
    print(f"| {' | '.join(columns)} |", "|" + " ---: |" * len(columns), sep="\n")
    for shards, found in runs.items():
        rates = [run.events / run.seconds for run in found]
        most, least = (
            [model.events_a_second(shards, run.versions / run.seconds, share * run.others) for run in found] for share in (0.0, 1.0)
        )
        told = (
            _range(rates, ",.0f"),
            *(_range([said / rate - 1 for said, rate in zip(bound, rates, strict=True)], "+.0%") for bound in (most, least)),
            _range([run.versions / run.seconds for run in found], ".0f"),
            _range([run.spent.sum() / run.events * 1e6 for run in found], ".0f"),
            _range([run.written / run.events for run in found], ",.0f"),
            _range([run.others for run in found], ".2f"),
        )
        print(f"| {shards} | {' | '.join(told)} |")


def _median(found: Sequence[Times]) -> Times:
    return np.median(np.array(found), axis=0)


def _range(values: Sequence[float], form: str) -> str:
    """The median, the least and the largest."""
    return f"{np.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> None:
    print("\n".join(machine.describe()), flush=True)
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server:
        asyncio.run(measure(server, Path(scratch)))


if __name__ == "__main__":
    main()
