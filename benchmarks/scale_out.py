"""A queueing model of a cluster against runs with 1, 2 and 4 shards: `python -m benchmarks.scale_out`.

Batches of ratings go to one front, on one machine with everything else. Of each part, the model has the processor time of a group of
ratings that is committed together, and of a rating; they are measured with one batch under way, on one shard. What then is left of the
time is what such a batch waits for: the disk, and being woken. What an exchange costs is measured in the same way on two shards. From
these the model says how many events a second there are with several batches under way. What is taken from the run itself: how many
versions there were, and how many processors were busy with something else (the last column: it should be near zero). Every run is
repeated, because runs differ.
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
from benchmarks.queueing import Compute, Free, Pause, Place, Process, Seize, Simulation

SMALL = 100
REPEATS = 3
"""Runs of each kind."""
BATCHES, LINES = 4, 1_000
RUN = 40
"""Batches of a run."""
SIMULATED = 20.0
"""Seconds of the model."""
LEAST_LEFT = 0.25
"""Processors that are left whatever others do."""
LIMIT = 0.2
"""How far the model may be from the runs."""
Times = NDArray[np.float64]
KINDS = ("client", "front", "shards", "PostgreSQL", "Ray")
CLIENT, FRONT, SHARDS, POSTGRES, _ = range(len(KINDS))


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


class Cost(NamedTuple):
    """Of one thing: processor time by kind, and seconds of waiting."""

    spent: Times
    waited: float


class Model(NamedTuple):
    group: Cost
    rating: Cost
    version: Cost
    """Per version and shard."""

    def events_a_second(self, shards: int, versions: float, processors: float) -> float:
        """With several batches under way, so many versions per second, and so many processors.

        A client sends a batch, and the next when it is answered. The front takes a few batches at a time, slice by slice. It does one
        thing after the other, and so does each shard: it learns its part of a slice, PostgreSQL writes it, the disk keeps it.
        """
        simulation, front, client, turns = Simulation(processors), Place(), Place(), Place(MOST_BATCHES)
        places = [Place() for _ in range(shards)]
        slices = -(-LINES // (SLICE * min(shards, MOST_BREADTH)))
        part = LINES / slices / shards
        spent = self.group.spent + part * self.rating.spent  # by a group
        waited = self.group.waited + part * self.rating.waited
        done = 0

        def at(place: Place, *acts: Compute | Pause) -> Process:
            yield Seize(place)
            yield from acts
            yield Free(place)

        def group_at(place: Place) -> Process:
            return at(place, Compute(spent[SHARDS]), Compute(spent[POSTGRES]), Pause(waited))

        def version_at(place: Place) -> Process:
            return at(place, Compute(self.version.spent[SHARDS]), Compute(self.version.spent[POSTGRES]), Pause(self.version.waited))

        def send() -> Process:
            nonlocal done
            while True:
                yield from at(client, Compute(slices * shards * spent[CLIENT]))
                yield Seize(turns)
                for _ in range(slices):
                    yield from at(front, Compute(shards * spent[FRONT] / 2))  # before the shards are asked, and after
                    yield [group_at(place) for place in places]
                    yield from at(front, Compute(shards * spent[FRONT] / 2))
                yield Free(turns)
                done += 1

        def exchange() -> Process:
            while True:
                yield Pause(1 / versions)
                for place in places:
                    simulation.begin(version_at(place))

        for _ in range(BATCHES):
            simulation.begin(send())
        if versions and shards > 1:
            simulation.begin(exchange())
        simulation.run(SIMULATED)
        return done * LINES / simulation.now


def costs(small: Sequence[Run], large: Sequence[Run]) -> tuple[Cost, Cost]:
    """Of a group, and of a rating: from groups of two sizes, one after the other."""
    each = []
    for runs, lines in ((small, SMALL), (large, SLICE)):
        spent = _median([run.spent / run.events * lines for run in runs])
        least = min((run.seconds - run.spent.sum()) / run.events * lines for run in runs)  # others only make it longer
        each.append(np.append(spent, max(least, 0.0)))
    rating = np.maximum((each[1] - each[0]) / (SLICE - SMALL), 0.0)
    group = np.maximum(each[0] - SMALL * rating, 0.0)
    return Cost(group[:-1], float(group[-1])), Cost(rating[:-1], float(rating[-1]))


def version_cost(runs: Sequence[Run], group: Cost, rating: Cost) -> Cost:
    """Of a version on each of two shards: what groups on two shards cost more than they should. It waits as long as a group."""
    more = [run.spent - run.events / SLICE * (2 * group.spent + SLICE * rating.spent) for run in runs]
    return Cost(np.maximum(_median([one / max(1, 2 * run.versions) for one, run in zip(more, runs, strict=True)]), 0.0), group.waited)


def busy_seconds() -> float:
    """Processor time of everybody on this machine."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


async def measure(server: PrivatePostgres, scratch: Path) -> None:
    runs: dict[int, list[Run]] = {}
    async with cluster(server, scratch, 1) as one:
        small = [await one.run(SMALL, 80, 1) for _ in range(REPEATS)]
        large = [await one.run(SLICE, RUN, 1) for _ in range(REPEATS)]
        runs[1] = [await one.run(LINES, RUN, BATCHES) for _ in range(REPEATS)]
    group, rating = costs(small, large)
    async with cluster(server, scratch, 2) as two:
        version = version_cost([await two.run(SLICE, RUN, 1) for _ in range(REPEATS)], group, rating)
        runs[2] = [await two.run(LINES, RUN, BATCHES) for _ in range(REPEATS)]
    async with cluster(server, scratch, 4) as four:
        runs[4] = [await four.run(LINES, RUN, BATCHES) for _ in range(REPEATS)]
    model = Model(group, rating, version)
    print(f"| µs | {' | '.join(KINDS)} | waiting |", "| --- |" + " ---: |" * (len(KINDS) + 1), sep="\n")
    for name, cost in (("a group", group), ("a rating", rating), ("a version, each shard", version)):
        print(f"| {name} | {' | '.join(f'{value * 1e6:,.1f}' for value in (*cost.spent, cost.waited))} |")
    print()
    columns = (
        "shards",
        "measured, events/s",
        "model",
        "error",
        "versions/s",
        "µs per event",
        "in the model",
        "journal bytes per event",
        "other load",
    )
    print(f"| {' | '.join(columns)} |", "|" + " ---: |" * len(columns), sep="\n")
    errors = [_tell(shards, found, model) for shards, found in runs.items()]
    verdict = "within" if max(map(abs, errors)) <= LIMIT else "NOT within"
    print(f"\nThe model is {verdict} {LIMIT:.0%} of the runs.")


def _tell(shards: int, found: Sequence[Run], model: Model) -> float:
    """Print a line, and return the error of the model."""
    rates = [run.events / run.seconds for run in found]
    versions = float(np.median([run.versions / run.seconds for run in found]))
    others = float(np.median([run.others for run in found]))
    said = model.events_a_second(shards, versions, max((os.cpu_count() or 1) - others, LEAST_LEFT))
    error = said / float(np.median(rates)) - 1
    per_event = shards * model.group.spent.sum() / min(LINES, SLICE * min(shards, MOST_BREADTH)) + model.rating.spent.sum()
    per_event += versions * shards * model.version.spent.sum() / said
    told = (
        _range(rates, ",.0f"),
        f"{said:,.0f}",
        f"{error:+.0%}",
        f"{versions:.0f}",
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
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server:
        asyncio.run(measure(server, Path(scratch)))


if __name__ == "__main__":
    main()
