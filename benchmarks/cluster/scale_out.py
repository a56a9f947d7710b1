"""A queueing model of a cluster against runs with 1, 2 and 4 shards: `python -m benchmarks.cluster.scale_out`.

Batches of ratings go to one front, on one machine with everything else. Of each part, the model has the processor time of a group of
ratings that is committed together, and of a rating. What a commit and an exchange cost is measured without any cluster
(`benchmarks/cluster/parts.py`); what a slice and a rating cost, on one shard; and what a rating costs more at a front that divides batches,
on two. From these the model says how many events a second there are. What is taken from each run itself: how many versions and payloads
there were, how often shards looked for them, how long a flush of the disk took, and how many processors were busy with something else
(the last column: it should be near zero). Runs differ, so clusters are started by turns, each is loaded several times, and once more if
others were busy.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import numpy as np

from albatross.policies.alb import ALB
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.engine.learned.options import Options
from albatross.service.http.bodies import SLICE
from albatross.service.storage.postgres.session import connect
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks import machine
from benchmarks.cluster.against_one import RANK, Asking, command, load, postgres_of, seconds_of, wait_ready
from benchmarks.cluster.model import BATCHES, CLIENT, FRONT, KINDS, LINES, POSTGRES, SHARDS, Exchanged, Model, Times
from benchmarks.cluster.parts import parts_of

SMALL = 100
TURNS, REPEATS = 2, 2
"""How often each cluster is started, and loaded each time."""
RUN = 80
"""Batches of a run."""
RATINGS = 2_000
"""Of each shard between two exchanges, where their cost is measured: about as many as in the runs."""
MOST_OTHERS, ATTEMPTS = 0.25, 3
"""Processors that may be busy with something else in a run, and how often to try for that. Writing to the disk is not counted as ours."""
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
    "payloads each",
    "looks/s",
    "ms per flush",
    "ratings per group",
    "in the model",
    "busy processors",
    "in the model",
    "journal bytes per event",
    "other load",
)


EXCHANGED: LiteralString = """
SELECT coalesce(max(version), 0)::float, count(*)::float,
(SELECT sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::float FROM pg_stat_user_tables WHERE relname = 'based')
FROM albatross.payloads
"""
WRITTEN: LiteralString = """
SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float, sum(fsyncs)::float, sum(fsync_time) / 1000
FROM pg_stat_io WHERE object = 'wal'
"""
GROUPS: LiteralString = """
SELECT count(*) FROM (SELECT 1 FROM albatross.log WHERE shard = %s AND seq > %s GROUP BY xmin::text HAVING count(*) > 1) AS found
"""


class Counted(NamedTuple):
    """What PostgreSQL counts."""

    versions: float
    payloads: float
    looks: float
    """Questions whether there is something new."""
    written: float
    """Bytes of the journal."""
    flushes: float
    """How often the disk was asked to keep the journal."""
    flushing: float
    """Seconds that this took."""


class Run(NamedTuple):
    """Of a load of batches."""

    events: int
    seconds: float
    spent: Times
    """Processor time by kind."""
    groups: int
    """Commits of ratings, all shards together."""
    counted: Counted
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
        heads, counted, before, busy = self._heads(), self._counted(), self._spent(), busy_seconds()
        seconds, _ = await load(self.port, asked.__getitem__, count, in_flight)
        spent, all_busy = spent_between(before, self._spent()), busy_seconds() - busy
        others = max(all_busy - float(spent.sum()), 0.0) / seconds
        counted = Counted(*(after - before for after, before in zip(self._counted(), counted, strict=True)))
        return Run(lines * count, seconds, spent, self._groups_since(heads), counted, others)

    def _counted(self) -> Counted:
        exchanged = self._ask(EXCHANGED)[0] if self.shards > 1 else (0.0, 0.0, 0.0)
        return Counted(*exchanged, *self._ask(WRITTEN)[0])

    def _heads(self) -> dict[int, int]:
        return dict(self._ask("SELECT shard, seq FROM albatross.shards WHERE shard >= 0"))

    def _groups_since(self, heads: dict[int, int]) -> int:
        """Rows of ratings that were written by one transaction are a group. A version is one row in a transaction of its own."""
        return sum(self._ask(GROUPS, (shard, seq))[0][0] for shard, seq in heads.items())

    def _ask(self, question: LiteralString, given: Sequence[int] = ()) -> list[tuple[Any, ...]]:
        with contextlib.closing(connect(self.address)) as session:
            return session.execute(question, given).fetchall()

    def _spent(self) -> dict[tuple[int, int], float]:
        """Processor time so far, by kind and process."""
        known = running.status(self.address)
        fronts, shards = ([one["pid"] for one in known[kind]] for kind in ("fronts", "shards"))
        postgres = postgres_of(self.server)
        rest = [pid for pid in _descendants(os.getpid()) if pid not in {*fronts, *shards, *postgres}]
        kinds = ([os.getpid()], fronts, shards, postgres, rest)
        return {(kind, pid): seconds_of([pid]) for kind, pids in enumerate(kinds) for pid in pids}


def spent_between(before: Mapping[tuple[int, int], float], after: Mapping[tuple[int, int], float]) -> Times:
    """Processor time by kind. What a process that has ended had spent is not known any more: Ray ends idle ones."""
    spent = np.zeros(len(KINDS))
    for (kind, pid), seconds in after.items():
        spent[kind] += seconds - before.get((kind, pid), 0.0)
    return spent


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


@contextlib.asynccontextmanager
async def cluster(server: PrivatePostgres, scratch: Path, shards: int, turn: int) -> AsyncIterator[Cluster]:
    address = server.create_database(f"shards{shards}turn{turn}")
    running.make(address, shards, Options(policy=ALB(rank=RANK), scale=(1, 5)))
    held, port = free_port("127.0.0.1")
    held.close()
    folder = scratch / f"{shards}-{turn}"
    folder.mkdir()
    with command(folder, "cluster", "start", address, "--fronts", "1", "--port", str(port)):
        await wait_ready(port)
        made = Cluster(server, shards, port, address)
        await made.run(LINES, 6, 1)  # every user and item is known, and code is warm
        yield made


def costs(small: Sequence[Run], large: Sequence[Run], committed: Times) -> tuple[Times, Times]:
    """Of a group, and of a rating, from slices of two sizes. `committed`: the part of a group at shards and in PostgreSQL."""
    of_small, of_large = (_median([run.spent / run.events for run in runs]) for runs in (small, large))
    committing = np.isin(np.arange(len(KINDS)), (SHARDS, POSTGRES))
    group = np.where(committing, committed, np.maximum((of_small - of_large) / (1 / SMALL - 1 / SLICE), 0.0))
    groups = np.where(committing, np.median([run.groups / run.events for run in large]), 1 / SLICE)  # per event
    return group, np.maximum(of_large - group * groups, 0.0)


def cost_of_dividing(runs: Sequence[Run], group: Times, rating: Times) -> Times:
    """What a rating costs more on two shards than on one, at the client and the front."""
    more = _median([run.spent / run.events for run in runs]) - (group / SLICE + rating)
    return np.where(np.isin(np.arange(len(KINDS)), (CLIENT, FRONT)), np.maximum(more, 0.0), 0.0)


def busy_seconds() -> float:
    """Processor time of everybody on this machine."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


async def measure(server: PrivatePostgres, scratch: Path) -> None:
    runs: dict[int, list[Run]] = {1: [], 2: [], 4: []}
    small: list[Run] = []
    for turn in range(TURNS):
        for shards, found in runs.items():
            async with cluster(server, scratch, shards, turn) as made:
                for _ in range(REPEATS):
                    found.append(await made.run(LINES, RUN, BATCHES))
                if shards == 1:
                    small.append(await made.run(SMALL, SLICE // SMALL * RUN, BATCHES))
    parts = parts_of(server, scratch / "parts", RATINGS)
    group, rating = costs(small, runs[1], parts.group)
    model = Model(group, rating, cost_of_dividing(runs[2], group, rating), *parts[1:])
    _tell_times("µs", _named(model))
    told = [_compared(shards, found, model) for shards, found in runs.items()]
    _tell_table(COLUMNS, [line for line, _, _ in told])
    _tell_times("µs per event", [row for _, rows, _ in told for row in rows])
    verdict = "within" if max(abs(error) for _, _, error in told) <= LIMIT else "NOT within"
    print(f"The model is {verdict} {LIMIT:.0%} of the runs.")


def _named(model: Model) -> list[tuple[str, Times]]:
    names = (
        "a group",
        "a rating",
        "more for a rating, if divided",
        "a payload: take and send",
        "a version, each shard",
        "a payload, each shard that reads it",
        "a look for news",
    )
    return list(zip(names, model, strict=True))


def _compared(shards: int, found: Sequence[Run], model: Model) -> tuple[list[str], list[tuple[str, Times]], float]:
    """A line of figures, rows of processor time by kind, and the error of the model."""
    rates = [run.events / run.seconds for run in found]
    total = Counted(*np.sum([run.counted for run in found], axis=0))
    seconds, others = sum(run.seconds for run in found), float(np.median([run.others for run in found]))
    flush = total.flushing / max(total.flushes, 1)
    exchanged = Exchanged(total.versions / seconds, total.payloads / seconds, total.looks / seconds)
    said = model.run(shards, exchanged, flush, max((os.cpu_count() or 1) - others, LEAST_LEFT))
    error = said.rate / float(np.median(rates)) - 1
    line = [
        str(shards),
        _range(rates, ",.0f"),
        f"{said.rate:,.0f}",
        f"{error:+.0%}",
        f"{exchanged.versions:.0f}",
        f"{total.payloads / max(total.versions, 1):.1f}",
        f"{exchanged.looks:.0f}",
        f"{flush * 1e3:.1f}",
        f"{sum(run.events for run in found) / sum(run.groups for run in found):.0f}",
        f"{said.group:.0f}",
        _range([run.spent.sum() / run.seconds for run in found], ".2f"),
        f"{said.busy:.2f}",
        f"{np.median([run.counted.written / run.events for run in found]):,.0f}",
        f"{others:.2f}",
    ]
    measured = _median([run.spent / run.events for run in found])
    return line, [(f"{shards} shards, measured", measured), (f"{shards} shards, in the model", said.spent)], error


def _tell_times(unit: str, rows: Sequence[tuple[str, Times]]) -> None:
    sums = [[name, *(f"{value * 1e6:,.1f}" for value in (*times, times.sum()))] for name, times in rows]
    _tell_table((unit, *KINDS, "all"), sums)


def _tell_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * (len(columns) - 1), sep="\n")
    print(*(f"| {' | '.join(row)} |" for row in rows), "", sep="\n", flush=True)


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
