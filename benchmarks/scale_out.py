"""A queueing model of a cluster against runs with 1, 2 and 4 shards: `python -m benchmarks.scale_out`.

Batches of ratings go to one front, on one machine with everything else. Of each part, the model has the processor time of a group of
ratings that is committed together, and of a rating: from small and large batches on one shard; and that of an exchange: from the runs on
two shards. From these the model says how many events a second there are. On four shards, the costs are predicted as well. What is taken
from each run itself: how many versions there were, how long a flush of the disk took, and how many processors were busy with something
else (the last column: it should be near zero). Runs differ, so each is repeated, and once more if others were busy meanwhile.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.policies.alb import ALB
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.engine.learned.options import Options
from albatross.service.engine.queue import GATHER_SECONDS
from albatross.service.http.access.turns import MOST_BATCHES
from albatross.service.http.bodies import MOST_BREADTH, SLICE
from albatross.service.storage.postgres.session import connect
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks import machine
from benchmarks.cluster import RANK, Asking, command, load, postgres_of, seconds_of, wait_ready
from benchmarks.queueing import Compute, Free, Pause, Place, Process, Seize, Simulation

SMALL = 100
REPEATS = 3
"""Runs of each kind."""
BATCHES, LINES = 4, 1_000
RUN = 80
"""Batches of a run."""
SIMULATED = 20.0
"""Seconds of the model."""
MOST_OTHERS, ATTEMPTS = 0.1, 3
"""Processors that may be busy with something else in a run, and how often to try for that."""
LEAST_LEFT = 0.25
"""Processors that are left whatever others do."""
TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 0.2
"""How far the model may be from the runs."""
Times = NDArray[np.float64]
KINDS = ("client", "front", "shards", "PostgreSQL", "Ray")
CLIENT, FRONT, SHARDS, POSTGRES, _ = range(len(KINDS))
COLUMNS = (
    "shards",
    "measured, events/s",
    "model",
    "error",
    "versions/s",
    "ms per flush",
    "busy processors",
    "in the model",
    "µs per event",
    "in the model",
    "journal bytes per event",
    "other load",
)


class Run(NamedTuple):
    """Of a load of batches."""

    events: int
    seconds: float
    spent: Times
    """Processor time by kind."""
    versions: int
    written: int
    """Bytes that PostgreSQL has written to its journal."""
    flushed: Times
    """How often the disk was asked to keep the journal, and seconds that this took."""
    others: float
    """Processors that were busy with something else."""


class Cluster:
    def __init__(self, server: PrivatePostgres, shards: int, port: int, address: str) -> None:
        self.server, self.shards, self.port, self.address = server, shards, port, address
        self.asking = Asking()

    async def run(self, lines: int, count: int, in_flight: int) -> Run:
        """Send so many batches. If others were busy meanwhile, do it again, a few times."""
        found = [await self._run(lines, count, in_flight)]
        while found[-1].others > MOST_OTHERS and len(found) < ATTEMPTS:
            found.append(await self._run(lines, count, in_flight))
        return min(found, key=lambda run: run.others)

    async def _run(self, lines: int, count: int, in_flight: int) -> Run:
        asked = [("/v1/feedback/batch", self.asking.lines(lines)) for _ in range(count)]
        versions, written, flushed, spent, busy = self._versions(), self._written(), self._flushed(), self._spent(), busy_seconds()
        seconds, _ = await load(self.port, asked.__getitem__, count, in_flight)
        spent, all_busy = self._spent() - spent, busy_seconds() - busy
        others = max(all_busy - float(spent.sum()), 0.0) / seconds
        flushed = self._flushed() - flushed
        return Run(lines * count, seconds, spent, self._versions() - versions, self._written() - written, flushed, others)

    def _versions(self) -> int:
        return int(running.status(self.address)["item_version"])

    def _written(self) -> int:
        return int(self._asked("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0])

    def _flushed(self) -> Times:
        return np.array(self._asked("SELECT sum(fsyncs)::float, sum(fsync_time) / 1000 FROM pg_stat_io WHERE object = 'wal'"), np.float64)

    def _asked(self, question: LiteralString) -> tuple[Any, ...]:
        with contextlib.closing(connect(self.address)) as session:
            return session.execute(question).fetchone() or ()

    def _spent(self) -> Times:
        known = running.status(self.address)
        fronts, shards = ([one["pid"] for one in known[kind]] for kind in ("fronts", "shards"))
        everything = _descendants(os.getpid())
        postgres = postgres_of(self.server)
        rest = [pid for pid in everything if pid not in {*fronts, *shards, *postgres}]
        return np.array([seconds_of(pids) for pids in ([os.getpid()], fronts, shards, postgres, rest)])


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
    """Processor time by kind."""

    group: Times
    rating: Times
    version: Times
    """Per version and shard."""

    def events_a_second(self, shards: int, versions: float, flush: float, processors: float) -> float:
        """With several batches under way, so many versions per second, a flush of the disk that takes so long, and so many processors.

        A client sends a batch, and the next when it is answered. The front takes a few batches at a time, slice by slice. It does one
        thing after the other, and so does each shard: it learns its part of a slice, PostgreSQL writes it, the disk keeps it.
        """
        simulation, front, client, turns = Simulation(processors), Place(), Place(), Place(MOST_BATCHES)
        places, disk = [Place() for _ in range(shards)], Place()
        slices = -(-LINES // (SLICE * min(shards, MOST_BREADTH)))
        cost = self.group + LINES / slices / shards * self.rating  # of a group
        expected = dict.fromkeys(places, 0)
        """Requests that a shard expects: it waits a moment for clients that it has just answered, as the engine does."""
        done, flushed = 0, -1.0

        def at(place: Place, seconds: float) -> Process:
            yield Seize(place)
            yield Compute(seconds)
            yield Free(place)

        def keep() -> Process:
            """One flush is under way at a time. All that were waiting when it began are kept by it."""
            nonlocal flushed
            asked = simulation.now
            yield Seize(disk)
            if flushed < asked:
                flushed = simulation.now
                yield Pause(flush)
            yield Free(disk)

        def write_at(place: Place, cost: Times) -> Process:
            yield Seize(place)
            if len(place.waiting) + 1 < expected[place]:
                yield Pause(GATHER_SECONDS)
            yield Compute(cost[SHARDS])
            yield Compute(cost[POSTGRES])
            yield from keep()
            expected[place] = len(place.waiting) + 1
            yield Free(place)

        def send() -> Process:
            nonlocal done
            while True:
                yield from at(client, slices * shards * cost[CLIENT])
                yield Seize(turns)
                for _ in range(slices):
                    yield from at(front, shards * cost[FRONT] / 2)  # before the shards are asked, and after
                    yield [write_at(place, cost) for place in places]
                    yield from at(front, shards * cost[FRONT] / 2)
                yield Free(turns)
                done += 1

        def exchange() -> Process:
            while True:
                yield Pause(1 / versions)
                for place in places:
                    simulation.begin(write_at(place, self.version))

        for _ in range(BATCHES):
            simulation.begin(send())
        if versions and shards > 1:
            simulation.begin(exchange())
        simulation.run(SIMULATED)
        return done * LINES / simulation.now


def costs(small: Sequence[Run], large: Sequence[Run]) -> tuple[Times, Times]:
    """Of a group, and of a rating: from groups of two sizes."""
    of_small, of_large = (_median([run.spent / run.events for run in runs]) for runs in (small, large))
    group = np.maximum((of_small - of_large) / (1 / SMALL - 1 / SLICE), 0.0)
    return group, np.maximum(of_large - group / SLICE, 0.0)


def version_cost(runs: Sequence[Run], group: Times, rating: Times) -> Times:
    """Of a version on each of two shards: what groups on two shards cost more than on one."""
    more = [run.spent - run.events * (group / SLICE + rating) for run in runs]
    return np.maximum(_median([one / max(1, 2 * run.versions) for one, run in zip(more, runs, strict=True)]), 0.0)


def busy_seconds() -> float:
    """Processor time of everybody on this machine."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


async def measure(server: PrivatePostgres, scratch: Path) -> None:
    runs: dict[int, list[Run]] = {1: [], 2: [], 4: []}
    small: list[Run] = []
    for shards, found in runs.items():
        async with cluster(server, scratch, shards) as made:
            for _ in range(REPEATS):  # by turns, because costs grow with the log
                if shards == 1:
                    small.append(await made.run(SMALL, SLICE // SMALL * RUN, BATCHES))
                found.append(await made.run(LINES, RUN, BATCHES))
    group, rating = costs(small, runs[1])
    version = version_cost(runs[2], group, rating)
    model = Model(group, rating, version)
    print(f"| µs | {' | '.join(KINDS)} |", "| --- |" + " ---: |" * len(KINDS), sep="\n")
    for name, cost in (("a group", group), ("a rating", rating), ("a version, each shard", version)):
        print(f"| {name} | {' | '.join(f'{value * 1e6:,.1f}' for value in cost)} |")
    print()
    print(f"| {' | '.join(COLUMNS)} |", "|" + " ---: |" * len(COLUMNS), sep="\n")
    errors = [_tell(shards, found, model) for shards, found in runs.items()]
    verdict = "within" if max(map(abs, errors)) <= LIMIT else "NOT within"
    print(f"\nThe model is {verdict} {LIMIT:.0%} of the runs.")


def _tell(shards: int, found: Sequence[Run], model: Model) -> float:
    """Print a line, and return the error of the model."""
    rates = [run.events / run.seconds for run in found]
    versions = float(np.median([run.versions / run.seconds for run in found]))
    others = float(np.median([run.others for run in found]))
    flushes, flushing = np.sum([run.flushed for run in found], axis=0)
    flush = float(flushing / max(flushes, 1))
    said = model.events_a_second(shards, versions, flush, max((os.cpu_count() or 1) - others, LEAST_LEFT))
    error = said / float(np.median(rates)) - 1
    per_event = shards * model.group.sum() / min(LINES, SLICE * min(shards, MOST_BREADTH)) + model.rating.sum()
    per_event += versions * shards * model.version.sum() / said
    told = (
        _range(rates, ",.0f"),
        f"{said:,.0f}",
        f"{error:+.0%}",
        f"{versions:.0f}",
        f"{flush * 1e3:.1f}",
        _range([run.spent.sum() / run.seconds for run in found], ".2f"),
        f"{per_event * said:.2f}",
        _range([run.spent.sum() / run.events * 1e6 for run in found], ".0f"),
        f"{per_event * 1e6:.0f}",
        f"{np.median([run.written / run.events for run in found]):,.0f}",
        f"{others:.2f}",
    )
    print(f"| {shards} | {' | '.join(told)} |", flush=True)
    return error


def _median(found: Sequence[Times]) -> Times:
    return np.median(np.array(found), axis=0)


def _range(values: Sequence[float], form: str) -> str:
    """The median, the least and the largest."""
    return f"{np.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> None:
    print("\n".join(machine.describe()), flush=True)
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres(settings=["track_wal_io_timing=on"]) as server:
        asyncio.run(measure(server, Path(scratch)))


if __name__ == "__main__":
    main()
