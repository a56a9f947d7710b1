"""Ten million users, a million items, a hundred million ratings learned by replay, then a million steps: mean-field on one core.

Users come over time: each rates ten items or so while a hundredth of all the others come. Items are at random. Then whoever has come is
offered 500 items at random, and rates what is chosen.
"""

import resource
import sys
import time
from collections.abc import Iterator

import numpy as np

from albatross import Agent
from albatross.core.state import reserve
from albatross.policies.mean_field import MeanField
from benchmarks.measuring import Line, Quantity, cpu_seconds

USERS, ITEMS, RATINGS, STEPS = 10_000_000, 1_000_000, 100_000_000, 1_000_000
N_CANDIDATES = 500
PARTS = 100
AT_A_TIME = 0.01
"""The share of all users among whom the next rating user is drawn."""
MOST_BYTES = 8e9
STAYS_FLAT = 1.2


def whole() -> Iterator[Line]:
    yield from run(1.0)


def tenth() -> Iterator[Line]:
    """A tenth of everything, in minutes."""
    yield from run(0.1)


def run(part: float) -> Iterator[Line]:
    n_users, n_items, n_ratings, n_steps = (int(part * size) for size in (USERS, ITEMS, RATINGS, STEPS))
    random, agent = np.random.default_rng(0), Agent(MeanField(), n_users, n_items)
    agent.state = reserve(agent.state, n_ratings + n_steps)
    agent.replay([], [], [])  # nothing, but what is compiled or loaded is there
    here, seconds = max(int(AT_A_TIME * n_users), 1), []
    size = n_ratings // PARTS
    for number in range(PARTS):
        first = np.linspace(number, number + 1, size, endpoint=False) / PARTS * (n_users - here)
        users = first.astype(np.int64) + random.integers(here, size=size)
        items, rewards = random.integers(n_items, size=size), random.integers(1, 6, size=size).astype(np.float64)
        began = time.thread_time()
        agent.replay(users, items, rewards)
        seconds.append((time.thread_time() - began) / size)
        _tell(f"{(number + 1) * size:,} of {n_ratings:,} ratings, {1e6 * seconds[-1]:.1f} µs each")
    fifths = np.median(np.reshape(seconds, (5, -1)), axis=1)
    last, second = Quantity("last fifth", float(fifths[4])), Quantity("second fifth", float(fifths[1]))
    sizes = f"{n_users:,} users, {n_ratings:,} ratings"
    yield Line.at_most(f"rating, {sizes}", last, second, STAYS_FLAT)
    taken = np.empty(n_steps)
    for step in range(n_steps):
        user, offered = int(random.integers(n_users)), np.unique(random.integers(n_items, size=N_CANDIDATES))
        taken[step] = cpu_seconds(lambda user=user, offered=offered: _step(agent, user, offered))  # type: ignore[misc]
        if (step + 1) % max(n_steps // 10, 1) == 0:
            _tell(f"{step + 1:,} of {n_steps:,} steps, {1e6 * np.median(taken[: step + 1]):.1f} µs each")
    half = n_steps // 2
    one, other = Quantity("second half", float(np.median(taken[half:]))), Quantity("first half", float(np.median(taken[:half])))
    yield Line.at_most(f"step among {N_CANDIDATES}, from Python", one, other, STAYS_FLAT)
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield Line.at_most("memory of the process", Quantity("peak", peak, "B"), Quantity("limit", MOST_BYTES, "B"), 1.0)


def _step(agent: Agent, user: int, offered: np.ndarray) -> None:
    agent.update(user, agent.select(user, offered).item, 3.0)


def _tell(progress: str) -> None:
    print(f"  {progress}", file=sys.stderr, flush=True)
