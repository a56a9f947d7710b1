"""Ratings replayed a second of processor time, on one core: `python -m benchmarks.steps.replay [POLICY …]`.

If no policy is named, alb and mean-field.

A million ratings of 1,700 items, all at random: the fewer users there are, the more items each of them has rated.
"""

import sys
import time

import numpy as np

from albatross import Agent
from albatross.policies import create

N_RATINGS, N_ITEMS = 1_000_000, 1_700
N_USERS = (100_000, 30_000, 10_000)
PARTS = 10


def seconds_per_part(name: str, n_users: int) -> list[float]:
    """The time of each tenth of the ratings: histories grow over time."""
    random = np.random.default_rng(0)
    users, items = random.integers(n_users, size=N_RATINGS), random.integers(N_ITEMS, size=N_RATINGS)
    rewards = random.integers(1, 6, size=N_RATINGS).astype(float)
    agent = Agent(create(name, {}), n_users, N_ITEMS)
    agent.replay([], [], [])  # nothing, but what is compiled or loaded is there
    seconds = []
    for part in np.array_split(np.arange(N_RATINGS), PARTS):
        began = time.thread_time()
        agent.replay(users[part], items[part], rewards[part])
        seconds.append(time.thread_time() - began)
    return seconds


def main(names: list[str]) -> None:
    print("| policy | users | ratings a second | µs a rating, first tenth | last tenth |", "| --- " * 5 + "|", sep="\n")
    for name in names or ["alb", "mean-field"]:
        for n_users in N_USERS:
            seconds = seconds_per_part(name, n_users)
            first, last = (part * PARTS / N_RATINGS * 1e6 for part in (seconds[0], seconds[-1]))
            print(f"| {name} | {n_users:,} | {N_RATINGS / sum(seconds):,.0f} | {first:.1f} | {last:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
