"""Whether a model that was rebuilt with one payload for many versions is as good as the one before: `python -m benchmarks.cluster.pruned`.

A world of low rank and rounded ratings, users on two shards that exchange after every 20 ratings. Printed: the root mean squared error of
what is expected of all items for all users, before, rebuilt, and after the shards have exchanged what is different now.
"""

import numpy as np

from albatross import Agent
from albatross.core.policy import Policy
from albatross.core.sharing.exchange import Exchange, Payload
from albatross.core.sharing.gathering import Gathering
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField

USERS, ITEMS, RANK, SHARDS, EVERY = 200, 100, 3, 2, 20


def error(shards: list[Exchange], truth: np.ndarray) -> float:
    squares = []
    for user in range(USERS):
        agent = shards[user % SHARDS].agent
        agent.recommend(user // SHARDS, 1)
        squares.append(np.mean((agent.slate.means - truth[user]) ** 2))
    return float(np.sqrt(np.mean(squares)))


def compare(policy: Policy, ratings: int) -> str:
    random = np.random.default_rng(1)
    truth = 3 + random.normal(size=(USERS, RANK)) @ random.normal(size=(RANK, ITEMS)) / np.sqrt(RANK)
    users, items = random.integers(USERS, size=ratings), random.integers(ITEMS, size=ratings)
    given = np.clip(np.round(truth[users, items] + random.normal(0, 0.5, ratings)), 1, 5)
    truth = truth.clip(1, 5)
    shards, rebuilt = ([Exchange(Agent(policy, USERS // SHARDS, ITEMS), shard, SHARDS) for shard in range(SHARDS)] for _ in range(2))
    gathered = [Gathering(Agent(policy, 1, ITEMS)) for _ in range(SHARDS)]
    for step in range(ratings):
        shards[users[step] % SHARDS].agent.update(int(users[step]) // SHARDS, int(items[step]), float(given[step]))
        if step % EVERY == EVERY - 1:
            for gathering, payload in zip(gathered, exchanged(shards), strict=True):
                gathering.add(payload)
    before = error(shards, truth)
    base = [gathering.payload() for gathering in gathered]
    for shard in rebuilt:
        own = users % SHARDS == shard.shard
        shard.fold(base)
        shard.agent.replay(users[own] // SHARDS, items[own], given[own])
    after = error(rebuilt, truth)
    exchanged(rebuilt)
    last = error(rebuilt, truth)
    return f"{policy.policy_name():<12}{ratings:>8,} ratings: {before:.3f} before, {after:.3f} rebuilt, {last:.3f} exchanged"


def exchanged(shards: list[Exchange]) -> list[Payload]:
    version = [shard.take() for shard in shards]
    for shard in shards:
        shard.fold(version)
    return version


if __name__ == "__main__":
    for ratings in (2_000, 10_000):
        for policy in (ItemMean(), ALB(rank=RANK), MeanField(rank=RANK)):
            print(compare(policy, ratings), flush=True)
