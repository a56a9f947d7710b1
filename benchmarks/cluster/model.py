"""A model of a cluster: batches of ratings, one front, several shards, and everything on one machine, as queues.

`python -m benchmarks.cluster.scale_out` measures the costs, and compares.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.service.engine.queue import GATHER_SECONDS, MOST_AT_ONCE
from albatross.service.http.access.turns import MOST_BATCHES
from albatross.service.http.bodies import MOST_BREADTH, SLICE
from albatross.service.storage.placing import shard_of
from benchmarks.cluster.against_one import USERS
from benchmarks.cluster.queueing import Compute, Free, Pause, Place, Process, Seize, Simulation

BATCHES, LINES = 4, 1_000
"""Batches under way, and their length."""
SIMULATED = 20.0
"""Seconds of the model."""
Times = NDArray[np.float64]
KINDS = ("client", "front", "shards", "PostgreSQL", "Ray")
CLIENT, FRONT, SHARDS, POSTGRES, RAY = range(len(KINDS))


class Asked(NamedTuple):
    """A request that waits for a shard."""

    cost: Times
    """Processor time by kind, without that of a group."""
    weight: int
    """Ratings; 0 for an exchange, which is committed alone."""
    answered: Place
    """Free when it is answered."""


class Engine:
    """A shard: it takes what waits, up to a limit, learns it, has it written, and answers."""

    def __init__(self, compute: Callable[[int, float], Process]) -> None:
        """`compute`: takes so many seconds of a processor, for this kind of process."""
        self._compute = compute
        self.waiting: deque[Asked] = deque()
        self.groups = 0
        """Commits of ratings so far."""
        self.arrived = Place(0)
        self.expected = 0
        """Requests that it expects: it waits a moment for clients that it has just answered."""

    @property
    def weight(self) -> int:
        return sum(one.weight for one in self.waiting)

    def ask(self, cost: Times, weight: int) -> Process:
        one = Asked(cost, weight, Place(0))
        self.waiting.append(one)
        yield Free(self.arrived)
        yield Seize(one.answered)

    def take(self) -> list[Asked]:
        """As `albatross.service.engine.queue` does."""
        taken = [self.waiting.popleft()]
        while self.waiting and self.waiting[0].weight and 0 < sum(one.weight for one in taken) < MOST_AT_ONCE:
            taken.append(self.waiting.popleft())
        return taken

    def live(self, group: Times, keep: Callable[[], Process]) -> Process:
        while True:
            yield Seize(self.arrived)
            if len(self.waiting) < self.expected and self.weight < MOST_AT_ONCE:
                yield Pause(GATHER_SECONDS)
            taken = self.take()
            for _ in taken[1:]:
                yield Seize(self.arrived)
            cost = sum((one.cost for one in taken), group if taken[0].weight else 0 * group)
            self.groups += taken[0].weight > 0
            yield from self._compute(SHARDS, cost[SHARDS])
            yield from self._compute(POSTGRES, cost[POSTGRES])
            yield from keep()
            self.expected = len(taken) + len(self.waiting)
            for one in taken:
                yield Free(one.answered)


class Exchanged(NamedTuple):
    """What was counted in a run, per second, all shards together."""

    versions: float = 0.0
    payloads: float = 0.0
    looks: float = 0.0
    """Questions to PostgreSQL whether there is something new."""


class Said(NamedTuple):
    """What the model says of a cluster."""

    rate: float
    """Events per second."""
    busy: float
    """Processors."""
    spent: Times
    """Processor time of an event by kind."""
    group: float
    """Ratings that are committed together, on the average."""


class Model(NamedTuple):
    """Processor time by kind."""

    group: Times
    """At the front: per part of a slice. At the shard and in PostgreSQL: per commit."""
    rating: Times
    divided: Times
    """What a rating costs more where a front divides batches over several shards."""
    payload: Times
    """At the shard that sends it."""
    version: Times
    """At each shard, if it had no payload."""
    read: Times
    """At each shard, per payload of a version."""
    look: Times

    def run(self, shards: int, exchanged: Exchanged, flush: float, processors: float) -> Said:
        """With several batches under way, so many exchanges, a flush of the disk that takes so long, and so many processors.

        A client sends a batch, and the next when it is answered. The front takes a few batches at a time, slice by slice. It does one
        thing after the other, and so does each shard: it learns its part of a slice, PostgreSQL writes it, the disk keeps it. What
        Ray's processes compute meanwhile takes processors from all, and so does what looks for versions.
        """
        simulation, front, client, turns, disk = Simulation(processors), Place(), Place(), Place(MOST_BATCHES), Place()
        slices = -(-LINES // (SLICE * min(shards, MOST_BREADTH)))
        parts = [share * LINES / slices for share in shares_of(shards)]
        rating = self.rating + (self.divided if shards > 1 else 0)
        whole = slices * shards * self.group + LINES * rating  # of a batch, at the client, at the front and in Ray's processes
        done, flushed, spent = 0, -1.0, np.zeros(len(KINDS))

        def compute(kind: int, seconds: float) -> Process:
            spent[kind] += seconds
            yield Compute(seconds)

        def at(place: Place, kind: int, seconds: float) -> Process:
            yield Seize(place)
            yield from compute(kind, seconds)
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

        def send() -> Process:
            nonlocal done
            while True:
                simulation.begin(compute(RAY, whole[RAY]))
                yield from at(client, CLIENT, whole[CLIENT])
                yield Seize(turns)
                for _ in range(slices):
                    yield from at(front, FRONT, whole[FRONT] / slices / 2)  # before the shards are asked, and after
                    yield [engine.ask(part * rating, round(part)) for engine, part in zip(engines, parts, strict=True)]
                    yield from at(front, FRONT, whole[FRONT] / slices / 2)
                yield Free(turns)
                done += 1

        def exchange() -> Process:
            of_each = exchanged.payloads / exchanged.versions  # payloads of a version
            cost = self.version + of_each * (self.read + self.payload / shards)
            while True:
                yield Pause(1 / exchanged.versions)
                for engine in engines:
                    simulation.begin(engine.ask(cost, 0))

        def look() -> Process:
            while True:
                yield Pause(1 / exchanged.looks)
                for kind in (SHARDS, POSTGRES):
                    simulation.begin(compute(kind, self.look[kind]))

        engines = [Engine(compute) for _ in range(shards)]
        for engine in engines:
            simulation.begin(engine.live(self.group, keep))
        for _ in range(BATCHES):
            simulation.begin(send())
        if exchanged.versions:
            simulation.begin(exchange())
        if exchanged.looks:
            simulation.begin(look())
        simulation.run(SIMULATED)
        events = done * LINES
        groups = sum(engine.groups for engine in engines)
        return Said(events / simulation.now, simulation.computed / simulation.now, spent / events, events / groups)


def shares_of(shards: int) -> list[float]:
    """The part of a batch that each shard gets: users are placed by a hash, so parts are not equal."""
    counts = Counter(shard_of(f"u{number}", shards) for number in range(USERS))
    return [counts[shard] / USERS for shard in range(shards)]
