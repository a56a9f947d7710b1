"""Regret without repeats of an oracle that is given all other users' ratings of an item: `python -m benchmarks.oracles.once`.

Each visit shows the item left that the others liked best. Nothing is learned, of users or items: a policy that starts from nothing has to
find out what this one is told, and can be better only by what it learns of the single user.
"""

import numpy as np

from albatross.core.streams import stream
from albatross.environments import create
from albatross.environments.world import arrivals
from benchmarks.oracles.logged import Array, estimate_offsets, others_said

STEPS = {"movielens-100k": 25_000, "movielens-1m": 25_000, "jester-2": 25_000, "book-crossing": 10_000}
SEEDS = 20
PARTS = 5


def regret_once(name: str, horizon: int, n_seeds: int) -> Array:
    """Per seed the regret of each step."""
    world = create(name, {"protocol": "no-repeats"}).world(0)
    starts, lengths = world.offsets[: world.lengths.size].astype(np.int64), world.lengths.astype(np.int64)
    users = np.repeat(np.arange(lengths.size), lengths)
    offsets, user_parts = estimate_offsets(users, world.items, world.ratings)
    said = others_said(users, world.items, world.ratings, offsets, user_parts)
    lost = np.empty(said.size)
    for start, length in zip(starts, lengths, strict=True):
        shown = world.ratings[start : start + length][np.argsort(-said[start : start + length], kind="stable")]
        lost[start : start + length] = np.maximum.accumulate(shown[::-1])[::-1] - shown  # the best remaining item minus the next one
    regret = np.empty((n_seeds, horizon))
    for seed in range(n_seeds):
        visits = np.zeros(lengths.size, np.int64)
        for step, user in enumerate(arrivals(world, stream(seed, "arrivals"), horizon)):
            regret[seed, step] = lost[starts[user] + visits[user]]
            visits[user] += 1
    return regret


def main() -> None:
    print("data set, regret, and regret per step in each fifth of the time")
    for name, horizon in STEPS.items():
        regret = regret_once(name, horizon, SEEDS)
        parts = " ".join(f"{part:.2f}" for part in regret.mean(axis=0).reshape(PARTS, -1).mean(axis=1))
        print(f"{name}: {regret.sum(axis=1).mean():,.0f}; {parts}")


if __name__ == "__main__":
    main()
