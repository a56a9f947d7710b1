"""A queueing model of a cluster against runs with 1, 2 and 4 shards: `python -m benchmarks.scale_out`.

Batches of ratings go to one front, on one machine with everything else. Of each part, the model has the processor time of a group of
ratings that is committed together, and of a rating: from small and large batches on one shard; and what division and exchange add: from
the runs on two shards. From these the model says how many events a second there are. On four shards, the costs are predicted as well: how
much longer a shard takes for four payloads than for two is timed without a cluster. What is taken
from each run itself: how many versions there were, how long a flush of the disk took, and how many processors were busy with something
else (the last column: it should be near zero). Runs differ, so each is repeated, and once more if others were busy meanwhile.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import numpy as np

from albatross import Agent
from albatross.core.sharing.exchange import Exchange, Payload
from albatross.policies.alb import ALB
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.engine.learned.options import Options
from albatross.service.http.bodies import SLICE
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.session import connect
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks import machine
from benchmarks.cluster import ITEMS, RANK, USERS, Asking, command, load, postgres_of, seconds_of, wait_ready
from benchmarks.cluster_model import BATCHES, CLIENT, FRONT, KINDS, LINES, SHARDS, Model, Times

SMALL = 100
REPEATS = 3
"""Runs of each kind."""
RUN = 80
"""Batches of a run."""
VERSIONS = 10
"""Exchanges of which the later half is timed."""
MOST_OTHERS, ATTEMPTS = 0.1, 3
"""Processors that may be busy with something else in a run, and how often to try for that."""
LEAST_LEFT = 0.25
"""Processors that are left whatever others do."""
TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 0.2
"""How far the model may be from the runs."""
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


def costs(small: Sequence[Run], large: Sequence[Run]) -> tuple[Times, Times]:
    """Of a group, and of a rating: from groups of two sizes."""
    of_small, of_large = (_median([run.spent / run.events for run in runs]) for runs in (small, large))
    group = np.maximum((of_small - of_large) / (1 / SMALL - 1 / SLICE), 0.0)
    return group, np.maximum(of_large - group / SLICE, 0.0)


def version_seconds(shards: int, ratings: float) -> float:
    """Processor time of a shard for a version after so many ratings on all shards, without the database: it folds payloads of all."""
    agents = [Agent(ALB(rank=RANK), n_users=USERS, n_items=ITEMS) for _ in range(shards)]
    exchanges = [Exchange(agent, shard, shards) for shard, agent in enumerate(agents)]
    homes = [shard_of(f"u{number}", shards) for number in range(USERS)]
    times, number = [], 0
    for _ in range(VERSIONS):
        for _ in range(round(ratings)):
            number += 1
            user = number * 7 % USERS
            agents[homes[user]].update(user=user, item=number * 31 % ITEMS, reward=1 + number % 5)
        began = time.thread_time()
        contents = [exchanges[0].take().to_bytes()]
        taken = time.thread_time() - began
        contents += [exchange.take().to_bytes() for exchange in exchanges[1:]]
        began = time.thread_time()
        exchanges[0].fold([Payload.from_bytes(content) for content in contents])
        times.append(taken + time.thread_time() - began)
        for exchange in exchanges[1:]:
            exchange.fold([Payload.from_bytes(content) for content in contents])
    return float(np.median(times[VERSIONS // 2 :]))


def costs_of_several(runs: Sequence[Run], group: Times, rating: Times) -> tuple[Times, Times]:
    """What two shards cost more than one: per rating at the client and the front, per version and shard everywhere else.

    The front divides batches, and takes no part in exchanges.
    """
    more = [run.spent - run.events * (group / SLICE + rating) for run in runs]
    divided = np.maximum(_median([one / run.events for one, run in zip(more, runs, strict=True)]), 0.0)
    version = np.maximum(_median([one / max(1, 2 * run.versions) for one, run in zip(more, runs, strict=True)]), 0.0)
    dividing = np.isin(np.arange(len(KINDS)), (CLIENT, FRONT))
    return np.where(dividing, divided, 0.0), np.where(dividing, 0.0, version)


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
    divided, version = costs_of_several(runs[2], group, rating)
    model = Model(group, rating, divided, version)
    print(f"| µs | {' | '.join(KINDS)} |", "| --- |" + " ---: |" * len(KINDS), sep="\n")
    for name, cost in _named(model):
        print(f"| {name} | {' | '.join(f'{value * 1e6:,.1f}' for value in cost)} |")
    print()
    print(f"| {' | '.join(COLUMNS)} |", "|" + " ---: |" * len(COLUMNS), sep="\n")
    errors = [_tell(shards, found, runs[2], model) for shards, found in runs.items()]
    verdict = "within" if max(map(abs, errors)) <= LIMIT else "NOT within"
    print(f"\nThe model is {verdict} {LIMIT:.0%} of the runs.")


def _named(model: Model) -> list[tuple[str, Times]]:
    names = ("a group", "a rating", "more for a rating, if divided", "a version, each shard")
    return list(zip(names, model, strict=True))


def _tell(shards: int, found: Sequence[Run], of_two: Sequence[Run], model: Model) -> float:
    """Print a line, and return the error of the model."""
    rates = [run.events / run.seconds for run in found]
    versions = float(np.median([run.versions / run.seconds for run in found]))
    others = float(np.median([run.others for run in found]))
    flushes, flushing = np.sum([run.flushed for run in found], axis=0)
    flush = float(flushing / max(flushes, 1))
    if shards > 2:  # costs of a version are from two shards; here each shard folds more payloads
        ratings = [float(np.median([run.events / max(1, run.versions) for run in one])) for one in (of_two, found)]
        more = version_seconds(shards, ratings[1]) / version_seconds(2, ratings[0])
        model = model._replace(version=model.version * np.where(np.arange(len(KINDS)) == SHARDS, more, 1.0))
    said, busy = model.events_a_second(shards, versions, flush, max((os.cpu_count() or 1) - others, LEAST_LEFT))
    error = said / float(np.median(rates)) - 1
    told = (
        _range(rates, ",.0f"),
        f"{said:,.0f}",
        f"{error:+.0%}",
        f"{versions:.0f}",
        f"{flush * 1e3:.1f}",
        _range([run.spent.sum() / run.seconds for run in found], ".2f"),
        f"{busy:.2f}",
        _range([run.spent.sum() / run.events * 1e6 for run in found], ".0f"),
        f"{model.of_event(shards, versions / said) * 1e6:.0f}",
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
