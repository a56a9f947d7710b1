"""Large catalogues and many users: the exact search against scoring every item, and whether long trials stay fast."""

import resource
import time
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np

from albatross import simulate
from albatross.core.recording import Recording
from albatross.environments.synthetic import Gaussian
from albatross.kernels.search import catalogue
from albatross.policies.alb import ALB
from benchmarks.measuring import Line, Quantity

NEVER = 10**12
HARDLY_SLOWER = 1.1
"""Limit of the search time relative to scoring every item: with long vectors, nothing can be skipped."""


def search(cells: tuple[tuple[int, int, int], ...] = ((5, 100_000, 4_000), (16, 100_000, 1_000), (5, 1_000_000, 1_000))) -> Iterator[Line]:
    """Whole trials over the whole catalogue, including its arrangement; both ways give the same trial to the last bit."""
    for rank, n_items, horizon in cells:
        searched, scanned = _lives(rank, n_items, horizon)
        if searched.state_id != scanned.state_id:
            raise AssertionError("the search has chosen another item than the full scan")
        one, other = (Quantity(name, life.seconds / horizon) for name, life in (("search", searched), ("every item", scanned)))
        yield Line.at_most(f"step, k = {rank}, m = {n_items:,}", one, other, HARDLY_SLOWER)


def whole_search() -> Iterator[Line]:
    yield from search(tuple((rank, n_items, 1_000) for n_items in (100_000, 1_000_000) for rank in (3, 5, 8, 16, 32)))
    yield from search(((5, 10_000_000, 100),))


def _lives(rank: int, n_items: int, horizon: int) -> tuple[Recording, Recording]:
    policy, world = ALB(rank=rank, ridge=0.1, noise=0.5), Gaussian(n_users=20, n_items=n_items, rank=rank)
    searched = simulate(policy, world, horizon=horizon, seed=0)
    with patch.object(catalogue, "SEARCHED_FROM", NEVER):
        scanned = simulate(policy, world, horizon=horizon, seed=0)
    return searched, scanned


MOST_BYTES = 6e9
STAYS_FLAT = 1.3


def million() -> Iterator[Line]:
    """A million users, a hundred thousand items, ten million steps; every arrival is offered 500 random items."""
    horizon = 10_000_000
    readings = [time.thread_time()]
    steps = [0]

    def progress(n_steps: int) -> None:
        readings.append(time.thread_time())
        steps.append(steps[-1] + n_steps)

    world = Gaussian(n_users=1_000_000, n_items=100_000, candidates=500, fresh=True)
    simulate(ALB(rank=5, ridge=0.1, noise=0.5), world, horizon=horizon, seed=0, progress=progress)
    fifths = np.diff(np.interp(np.linspace(0, horizon, 6), steps, readings)) / (horizon / 5)
    last, second = Quantity("last fifth", float(fifths[4])), Quantity("second fifth", float(fifths[1]))
    yield Line.at_most("step, 1M users, 100k items, 10M steps", last, second, STAYS_FLAT)
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield Line.at_most("the same, memory of the process", Quantity("peak", peak, "B"), Quantity("limit", MOST_BYTES, "B"), 1.0)
