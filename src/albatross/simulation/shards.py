"""A trial whose users live on several shards, in one process or in several. Each shard is an agent; the shards exchange what they learn.

Arrivals, candidates and noise are the same as on one machine. User u lives on shard u mod shards. All shards exchange after fixed
numbers of arrivals. So a trial is a function of its recipe and its seed, whatever the number of
processes.
"""

import hashlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.foreign.plain import as_policy
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.core.sharing.exchange import PART_OF_AN_UPDATE, Exchange, Payload, Version, check_shards, exchange_interval
from albatross.core.state import reserve
from albatross.core.streams import stream
from albatross.environments.telling import informed, told
from albatross.metrics.ndcg import NDCG
from albatross.simulation.loop import Loop
from albatross.simulation.public import Public, Record
from albatross.simulation.trial import simulate

ROOM = 1_000
"""Arrivals for which a shard makes room at least."""


@dataclass(frozen=True)
class Recipe:
    """Everything a trial on shards depends on."""

    policy: Policy
    environment: Environment
    horizon: int
    seed: int
    ndcg: NDCG | None
    shards: int
    exchange: int
    """Limit of arrivals between two exchanges."""


class Lived(NamedTuple):
    """The result of one shard."""

    shard: int
    record: Record
    """Of its own steps only."""
    seconds: float
    counters: dict[str, int]
    state_id: str


class Shard:
    """One shard of a trial, with its own copy of the public, in which only its own users are served."""

    def __init__(self, recipe: Recipe, shard: int) -> None:
        environment, seed = recipe.environment, recipe.seed
        self.recipe, self.shard = recipe, shard
        self.public = Public(environment, recipe.horizon, seed, recipe.ndcg)
        self.numbers = np.full(environment.n_users, -1, np.int32)
        residents = self.numbers[shard :: recipe.shards]
        residents[:] = np.arange(residents.size)
        self._own = self.numbers[self.public.users] >= 0
        """The arrivals of own users."""
        self._done, self._next, self._learned = 0, _first(self._own, 0), True
        truth = told(recipe.policy, environment, seed, self.public.world)
        agent = Agent(recipe.policy, max(residents.size, 1), environment.n_items, seed, truth)
        if shard > 0:  # otherwise all shards would explore with the same random numbers
            agent.exploring = stream(seed, f"exploring on shard {shard}")
        self.exchange = Exchange(agent, shard, recipe.shards)
        self.seconds = 0.0
        self._room = 0
        """Arrivals for whose ratings the state has room."""
        self._reserve(0)
        self._loop = Loop(agent, self.public, self.numbers, recipe.ndcg is not None)

    def live(self, stop: int) -> None:
        """The steps of own users before `stop`. If none has come since, there is nothing to do yet."""
        start = self._done
        self._learned = self._next < stop or self.public.world.delay > 0
        if self._learned:
            self._done = stop
            self._next = _first(self._own, stop)
            self._reserve(stop - start)
            draws = self.public.draws(stop - start)
            began = time.thread_time()
            self._loop.run(start, draws)
            self.seconds += time.thread_time() - began

    def take(self) -> Payload:
        """What own users have added."""
        return self.exchange.take(self._learned)

    def apply(self, version: Version) -> None:
        """Apply what all shards have added. Here it follows `take` at once."""
        began = time.thread_time()
        self.exchange.apply(version, learned=False)
        self.seconds += time.thread_time() - began

    def lived(self) -> Lived:
        agent, public = self.exchange.agent, self.public
        parts: list[Any] = [array[self._own] if array.size else array for array in public.record]
        counters = {name: int(getattr(agent.state, name)[0]) for name in self.recipe.policy.counters}
        return Lived(self.shard, Record(*parts), self.seconds, counters, agent.state_id)

    def _reserve(self, arrivals: int) -> None:
        """Make room for their ratings, and for those of some more: a larger state must be prepared for compiled code again."""
        if arrivals > self._room or not self._room:
            self._room = max(arrivals, ROOM)
            self.exchange.agent.state = reserve(self.exchange.agent.state, self._room)
        self._room -= arrivals


def simulate_shards(
    policy: Policy,
    environment: Environment,
    horizon: int = 25_000,
    seed: int = 0,
    shards: int = 2,
    exchange: int | None = None,
    ndcg: NDCG | None = None,
    progress: Callable[[int], None] | None = None,
    jobs: int = 1,
) -> Recording:
    """Like `simulate`, with the users on several shards, in `jobs` processes.

    Shards exchange when the number of arrivals has grown by a 16,384th, and at the latest after `exchange` arrivals of all users together.
    The default is one per four items. With one shard, this is `simulate`.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.item_mean import ItemMean
    >>> world = Gaussian(n_users=6, n_items=5, rank=2)
    >>> simulate_shards(ItemMean(), world, horizon=100, shards=3).regret.shape
    (100,)
    """
    check_whole("horizon", horizon, 1)
    check_whole("seed", seed, 0)
    check_whole("jobs", jobs, 1)
    interval = max(environment.n_items // PART_OF_AN_UPDATE, 1) if exchange is None else exchange
    check_whole("exchange", interval, 1)
    given = informed(as_policy(policy), environment)
    check_shards(given, shards)
    if shards == 1:
        return simulate(policy, environment, horizon, seed, ndcg, progress)
    recipe = Recipe(given, environment, horizon, seed, ndcg, shards, interval)
    ends = list(_ends(horizon, interval))
    lived = list(_here(recipe, ends, progress) if jobs == 1 else _in_processes(recipe, ends, min(jobs, shards), progress))
    return _gathered(recipe, lived)


def _first(places: NDArray[np.bool_], start: int) -> int:
    """The first place from `start` on, or the end."""
    return start + int(places[start:].argmax()) if places[start:].any() else places.size


def _ends(horizon: int, most: int) -> Iterator[int]:
    """The numbers of arrivals after which the shards exchange."""
    step = 0
    while step < horizon:
        step = min(step + exchange_interval(step, most), horizon)
        yield step


def _here(recipe: Recipe, ends: Sequence[int], progress: Callable[[int], None] | None) -> Iterator[Lived]:
    residents = [Shard(recipe, shard) for shard in range(recipe.shards)]
    start = 0
    for stop in ends:
        for shard in residents:
            shard.live(stop)
        version = Version.of([shard.take() for shard in residents])
        for shard in residents:
            shard.apply(version)
        if progress is not None:
            progress(stop - start)
        start = stop
    for shard in residents:
        yield shard.lived()


def _in_processes(recipe: Recipe, ends: Sequence[int], jobs: int, progress: Callable[[int], None] | None) -> Iterator[Lived]:
    """Workers do the steps; payloads are passed on here."""
    hosts = [range(number, recipe.shards, jobs) for number in range(jobs)]
    with _workers(recipe, ends, hosts) as workers:
        start = 0
        for stop in ends:
            payloads: dict[int, bytes] = {}
            for worker, shards in zip(workers, hosts, strict=True):
                for shard in shards:
                    payloads[shard] = _said(worker)
            for worker in workers:
                for shard in range(recipe.shards):
                    worker.send(payloads[shard])
            if progress is not None:
                progress(stop - start)
            start = stop
        for worker, shards in zip(workers, hosts, strict=True):
            for _ in shards:
                yield _said(worker)


@contextmanager
def _workers(recipe: Recipe, ends: Sequence[int], hosts: Sequence[range]) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in hosts]
    processes = [
        context.Process(target=_host, args=(theirs, recipe, ends, shards), daemon=True)
        for (_, theirs), shards in zip(pipes, hosts, strict=True)
    ]
    try:
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()  # so that the end of the process is noticed
        yield [ours for ours, _ in pipes]
    finally:
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


def _host(parent: Connection, recipe: Recipe, ends: Sequence[int], shards: Sequence[int]) -> None:
    """Runs some shards of a trial, in a process of its own."""
    try:
        residents = [Shard(recipe, shard) for shard in shards]
        for stop in ends:
            for shard in residents:
                shard.live(stop)
                parent.send(shard.take().to_bytes())
            version = Version.of([Payload.from_bytes(parent.recv()) for _ in range(recipe.shards)])
            for shard in residents:
                shard.apply(version)
        for shard in residents:
            parent.send(shard.lived())
    except (EOFError, KeyboardInterrupt):  # the parent has ended
        pass
    except Exception as error:  # the parent reports any error
        parent.send(InvalidInput(f"shards {list(shards)}: {type(error).__name__}: {error}"))


def _said(worker: Connection) -> Any:
    try:
        message = worker.recv()
    except EOFError:
        raise InvalidInput("a process with some of the shards has ended; accepted: fewer jobs, if memory is short") from None
    if isinstance(message, Exception):
        raise message
    return message


def _gathered(recipe: Recipe, lived: Sequence[Lived]) -> Recording:
    """The recordings of all shards combined."""
    public = Public(recipe.environment, recipe.horizon, recipe.seed, recipe.ndcg)
    ordered = sorted(lived, key=lambda each: each.shard)
    for each in ordered:
        own = public.users % recipe.shards == each.shard
        for name in Record._fields:
            whole = getattr(public.record, name)
            if whole.size:
                whole[own] = getattr(each.record, name)
    counters = {name: sum(each.counters[name] for each in ordered) for name in recipe.policy.counters}
    state_id = hashlib.blake2b(" ".join(each.state_id for each in ordered).encode(), digest_size=16).hexdigest()
    seconds = sum(each.seconds for each in ordered)
    return Recording(recipe.policy, recipe.environment.name, recipe.seed, public.users, *public.record, seconds, counters, state_id)
