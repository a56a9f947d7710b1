"""Published Java code beside ours, on the same clicks: `python -m benchmarks.peers.java KNNBANDIT IRBANDITS [STEPS] [SEEDS]`.

KNNBANDIT and IRBANDITS are class paths on which the compiled classes of ir-uam/kNNBandit and JavierSanzCruza/IRBandits stand, and what
they need of RankSys, fastutil and jOOL. Everybody meets the same users of MovieLens 100K and shows nothing twice: what those two are made
for. A rating of at least 4 is a click. The files under `java/` only pass questions on.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.datasets import create
from albatross.environments.ratings import Ratings
from albatross.environments.world import arrivals, offered
from albatross.policies.club import CLUB
from albatross.policies.collaborative_greedy import CollaborativeGreedy
from albatross.policies.knn_bandit import KNNBandit
from albatross.policies.random import Random

TABLE = create("movielens-100k").load()
ENVIRONMENT = Ratings(TABLE)
CLICKS = np.zeros((ENVIRONMENT.n_users, ENVIRONMENT.n_items))
CLICKS[TABLE.users, TABLE.items] = TABLE.ratings >= 4.0


class Pair(NamedTuple):
    """A policy of theirs and the same of ours: the Java file, its arguments, our recipe."""

    name: str
    file: str
    arguments: tuple[str, ...]
    ours: Policy


EVERYBODY, TEN = KNNBandit(threshold=0.5), KNNBandit(threshold=0.5, n_neighbors=10)
PAIRS = (
    Pair("kNN bandit, everybody", "KNNBandit", ("knn", "0"), EVERYBODY),
    Pair("kNN bandit, everybody", "IRBandits", ("knn", "0"), EVERYBODY),
    Pair("kNN bandit, 10 neighbours", "KNNBandit", ("knn", "10"), TEN),
    Pair("kNN bandit, 10 neighbours", "IRBandits", ("knn", "10"), TEN),
    Pair("Collaborative-Greedy", "IRBandits", ("greedy", "0.5", "0.5"), CollaborativeGreedy(threshold=0.5, agreement=0.5, decay=0.5)),
    Pair("CLUB", "IRBandits", ("club", "0.1", "1"), CLUB(features="current", exploration=0.1, separation=1.0)),
)


class Theirs:
    """A policy in a Java process."""

    def __init__(self, class_path: str, pair: Pair, n_users: int, n_items: int) -> None:
        program = Path(__file__).parent / "java" / f"{pair.file}.java"
        kind, *more = pair.arguments
        command = ("java", "-cp", class_path, str(program), kind, str(n_users), str(n_items), *more)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )

    def choose(self, user: int, items: NDArray[np.int32]) -> int:
        self._tell(f"s {user} {' '.join(map(str, items.tolist()))}")
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def learn(self, user: int, item: int, reward: float) -> None:
        self._tell(f"l {user} {item} {reward}")

    def _tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def play(seed: int, n_steps: int, choose: Callable[[int, NDArray[np.int32]], int], learn: Callable[[int, int, float], object]) -> float:
    """Missed clicks: per step, the best remaining item minus the shown one. Users with nothing left are skipped."""
    world = ENVIRONMENT.world(seed)
    left = [offered(world, user).copy() for user in range(ENVIRONMENT.n_users)]
    regret = 0.0
    for user in arrivals(world, stream(seed, "arrivals"), n_steps).tolist():
        items = left[user]
        if items.size == 0:
            continue
        item = choose(user, items)
        click = float(CLICKS[user, item])
        regret += float(CLICKS[user, items].max()) - click
        learn(user, item, click)
        left[user] = items[items != item]
    return regret


def _ours(policy: Policy, seed: int, n_steps: int) -> float:
    agent = Agent(policy, ENVIRONMENT.n_users, ENVIRONMENT.n_items, seed=seed)
    return play(seed, n_steps, lambda user, items: agent.select(user, items).item, agent.update)


def _theirs(class_path: str, pair: Pair, seed: int, n_steps: int) -> float:
    with Theirs(class_path, pair, ENVIRONMENT.n_users, ENVIRONMENT.n_items) as player:
        try:
            return play(seed, n_steps, player.choose, player.learn)
        except (ValueError, BrokenPipeError):  # it ended: its last output is the reason
            print(f"{pair.name}: {(player.process.communicate()[1] or '').strip().splitlines()[:1]}", file=sys.stderr)
            return float("nan")


def _summary(regrets: list[float]) -> str:
    held = [regret for regret in regrets if regret == regret]  # only those that finished
    if not held:
        return "ends with an error"
    ended = "" if len(held) == len(regrets) else f", {len(regrets) - len(held)} of {len(regrets)} with an error"
    return f"{np.mean(held):,.0f} [{min(held):,.0f}, {max(held):,.0f}]{ended}"


def main(class_paths: dict[str, str], n_steps: int, n_seeds: int) -> None:
    print(f"MovieLens 100K as clicks, nothing twice, {n_steps:,} steps; mean, least and greatest regret of {n_seeds} seeds\n")
    print("| policy | theirs from | our regret | theirs |")
    print("| --- | --- | ---: | ---: |")
    ours: dict[str, str] = {}
    for pair in PAIRS:
        if pair.name not in ours:
            ours[pair.name] = _summary([_ours(pair.ours, seed, n_steps) for seed in range(n_seeds)])
        theirs = _summary([_theirs(class_paths[pair.file], pair, seed, n_steps) for seed in range(n_seeds)])
        print(f"| {pair.name} | {pair.file} | {ours[pair.name]} | {theirs} |", flush=True)
    print(f"| random | – | {_summary([_ours(Random(), seed, n_steps) for seed in range(n_seeds)])} | – |")


if __name__ == "__main__":
    steps, seeds = (int(word) for word in (*sys.argv[3:], "10000", "3")[:2])
    main({"KNNBandit": sys.argv[1], "IRBandits": sys.argv[2]}, steps, seeds)
