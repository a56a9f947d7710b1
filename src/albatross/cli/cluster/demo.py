"""`albatross cluster demo`: four shards, two fronts and simulated visitors on this machine; one shard is killed."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from msgspec.structs import replace

from albatross import environments
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.environments.further import Stars
from albatross.environments.world import expected_reward, offered, reaction
from albatross.service.client import Client
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.engine.learned.options import Options, new_genesis
from albatross.service.engine.warming import warm
from albatross.service.tools.private_postgres import PrivatePostgres

SHARDS, FRONTS, VISITORS = 4, 2, 8
OFFERED = 20
"""Number of candidates per visitor."""
LINES = 20
PATIENCE = 120.0
"""How long a visitor waits while shards start."""


class Crowd:
    """Simulated visitors, one thread each. Each visit is by another user, who is shown one item and rates it."""

    def __init__(self, url: str, world: Environment) -> None:
        self._url, self._environment, self._world = url, world, world.world(0)
        self._lock = threading.Lock()
        self._ratings: list[float] = []
        self.ratings = 0
        self.by_chance = float(np.mean([self._rate(random.Random(number))[2] for number in range(2_000)]))
        """The mean rating of items chosen at random."""
        self.ended = threading.Event()
        self.failure: Exception | None = None
        self._threads = [threading.Thread(target=self._visit, args=(number,), daemon=True) for number in range(VISITORS)]
        for thread in self._threads:
            thread.start()

    def _offer(self, chance: random.Random) -> tuple[int, list[int]]:
        user = chance.randrange(self._environment.n_users)
        count = offered(self._world, user).size or self._environment.n_items
        return user, chance.sample(range(count), min(OFFERED, count))

    def _rate(self, chance: random.Random) -> tuple[int, int, float]:
        user, positions = self._offer(chance)
        return user, positions[0], self._answer(user, positions[0], chance)

    def _answer(self, user: int, position: int, chance: random.Random) -> float:
        item = self._item(user, position)
        return float(reaction(self._world, expected_reward(self._world, user, position, item), chance.random()))

    def _item(self, user: int, position: int) -> int:
        items = offered(self._world, user)
        return int(items[position]) if items.size else position

    def _visit(self, number: int) -> None:
        chance = random.Random(10_000 + number)
        with contextlib.closing(Client(self._url, patience=PATIENCE)) as client:
            try:
                while not self.ended.is_set():
                    user, positions = self._offer(chance)
                    named = {f"item {self._item(user, position)}": position for position in positions}
                    decision = client.recommend(f"user {user}", candidates=list(named))
                    rating = self._answer(user, named[decision.item], chance)
                    client.rate(decision, rating)
                    with self._lock:
                        self._ratings.append(rating)
                        self.ratings += 1
            except Exception as error:
                self.failure = error

    def heard(self) -> list[float]:
        """The ratings acknowledged since the last call."""
        with self._lock:
            ratings, self._ratings = self._ratings, []
        return ratings

    def close(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()


def demo(*, seconds: float = 60.0, stay: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Start a cluster on this machine, with its own PostgreSQL and Ray, simulate visitors, and kill one shard.

    Parameters
    ----------
    seconds
        How long the visitors play.
    stay
        Keep the cluster running afterwards, to look at the page, until the interrupt key.
    """
    try:
        world = environments.from_text("movielens-100k", {})
    except InvalidInput:
        world = Stars()
    options = Options(scale=(1, 5))
    warm(replace(new_genesis(options), shards=SHARDS))  # compile once here, not in every shard at the same time
    for number in running.SIGNALS:
        signal.signal(number, _interrupt)
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server:
        address = server.create_database("demo")
        running.make(address, SHARDS, options)
        print(f"PostgreSQL runs at {address}; {SHARDS} shards and {FRONTS} fronts are being started by Ray.", flush=True)
        with _cluster(address, Path(scratch)) as url:
            crowd = Crowd(url, world)
            print(f"The page: {url}\n{VISITORS} visitors of {world.name} are shown one of {OFFERED} items, and rate it.", flush=True)
            try:
                _watch(address, crowd, seconds)
            finally:
                crowd.ended.set()
            crowd.close()
            with contextlib.closing(Client(url, patience=PATIENCE)) as client:
                version = client.version()
            print(
                f"\nRatings acknowledged: {crowd.ratings:,}. Ratings in the logs: {version.ratings:,}. Exchanges: {version.item_version:,}."
            )
            if version.ratings != crowd.ratings:
                raise InvalidInput(f"{crowd.ratings} ratings were acknowledged, and {version.ratings} are in the logs")
            if stay:
                print(f"The page stays until the interrupt key: {url}", flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    threading.Event().wait()


def _interrupt(*_: object) -> None:
    """End as with Ctrl+C, for every signal: first end everything that was started, and ignore further signals meanwhile."""
    for number in running.SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextlib.contextmanager
def _cluster(address: str, snapshots: Path) -> Iterator[str]:
    """Run `albatross cluster start`; yields the URL of its fronts."""
    held, port = free_port("127.0.0.1")
    words = ["cluster", "start", address, "--fronts", str(FRONTS), "--port", str(port), "--snapshots", str(snapshots)]
    program = "import sys, albatross.cli; sys.exit(albatross.cli.main())"
    with held, (snapshots / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", program, *words], stdout=log, stderr=log, start_new_session=True)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            _end_session(process.pid)


def _end_session(leader: int) -> None:
    """Kill what is left of a session. An agent of Ray that was just starting looks for its raylet for minutes before it ends."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if os.getsid(int(folder.name)) == leader:
                os.kill(int(folder.name), signal.SIGKILL)


def _watch(address: str, crowd: Crowd, seconds: float) -> None:
    """Print progress, and kill a shard after a third of the time."""
    began: float | None = None
    killed = False
    print(f"\n{'seconds':>8}{'ratings':>10}{'per second':>12}{'mean rating':>13}{'exchanges':>11}{'owners of shards':>18}")
    last = time.monotonic()
    while (began is None or time.monotonic() - began < seconds) and crowd.failure is None:
        crowd.ended.wait(seconds / LINES)
        ratings, now = crowd.heard(), time.monotonic()
        if began is None:
            if not ratings:
                continue  # there is no answer yet
            began = now
        known = running.status(address)
        owners = sum(shard["epoch"] for shard in known["shards"])
        mean = f"{np.mean(ratings):.2f}" if ratings else "-"
        rate = len(ratings) / (now - last)
        print(
            f"{now - began:8.0f}{crowd.ratings:10,}{rate:12,.0f}{mean:>13}{known['item_version']:11,}{owners:18}",
            flush=True,
        )
        last = now
        victim = next((shard for shard in known["shards"] if shard["pid"] is not None), None)
        if not killed and victim is not None and now - began > seconds / 3:
            killed = True
            os.kill(victim["pid"], signal.SIGKILL)
            print(f"          shard {victim['shard']} is killed: process {victim['pid']}", flush=True)
    if crowd.failure is not None:
        raise crowd.failure
    print(f"\nAn item chosen at random has a mean rating of {crowd.by_chance:.2f}.")
