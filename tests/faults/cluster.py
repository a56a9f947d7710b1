"""Kill, pause and restart the parts of a cluster while many write to it, and count what became of its promises: `make chaos-cluster`.

The checker is that of `faults.chaos`. On top of it, every shard must be what its log gives alone, and all shards together must have
counted every rating exactly once.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.chaos import CLIENTS, MODULES, Client, Story
from town import Town

from albatross.core.errors import InvalidInput
from albatross.policies.item_mean import ItemMean
from albatross.service.cluster import running
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.verifying import verify
from albatross.service.storage.events import Decided, Rated, Reacted
from albatross.service.storage.postgres.lease import Lease
from albatross.service.storage.postgres.session import NotNow
from albatross.service.storage.reading import read_events, read_genesis
from albatross.service.tools.private_postgres import PrivatePostgres

KINDS = ("shard", "shard", "front", "postgres")
"""What is killed, or restarted, by turns. The exchange between shards has no process of its own: it dies with a shard."""
PATIENCE = 120.0


class Running:
    """`albatross cluster start` in a process of its own."""

    def __init__(self, address: str, snapshots: Path) -> None:
        program = "import sys, albatross.cli; sys.exit(albatross.cli.main())"
        words = ["cluster", "start", address, "--fronts", "2", "--port", "0", "--log", "json", "--snapshots", str(snapshots)]
        self.process = subprocess.Popen([sys.executable, "-c", program, *words], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.lines: list[str] = []
        self.port = 0
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("{") and json.loads(line)["event"] == "started":
                self.port = int(json.loads(line)["url"].rpartition(":")[2])
                break
        self._reader = threading.Thread(target=self.lines.extend, args=(self.process.stderr,))
        self._reader.start()
        assert self.port, "".join(self.lines)

    def wait(self) -> int:
        code = self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@contextmanager
def running_cluster(address: str, snapshots: Path) -> Iterator[Running]:
    cluster = Running(address, snapshots)
    try:
        yield cluster
    finally:
        if cluster.process.poll() is None:
            cluster.process.send_signal(signal.SIGTERM)
        cluster.wait()


@dataclass(frozen=True)
class Verdict:
    faults: dict[str, int]
    acknowledged: int
    lost: int
    unexpected: int
    duplicated: int
    surprises: dict[int, int]
    contradicted: int
    """Shards that are not what their logs give."""
    miscounted: int
    """Items whose ratings some shard has not counted exactly once, when all have heard of each other."""
    exit_code: int
    seconds: float

    @property
    def sound(self) -> bool:
        found = self.lost + self.unexpected + self.duplicated + sum(self.surprises.values()) + self.contradicted + self.miscounted
        return found + self.exit_code == 0

    def __str__(self) -> str:
        told = ", ".join(f"{count} × {kind}" for kind, count in sorted(self.faults.items()))
        odd = f", unforeseen answers {self.surprises}" if self.surprises else ""
        return (
            f"{told} in {self.seconds:.0f} s: acknowledged {self.acknowledged:,}, lost {self.lost}, unexpected {self.unexpected}, "
            f"duplicated {self.duplicated}{odd}; shards that are not what their logs give: {self.contradicted}; "
            f"items miscounted: {self.miscounted}"
        )


class Tormentor:
    """Does one fault at a time, and waits until the cluster has come back from it."""

    def __init__(self, address: str, server: PrivatePostgres, chance: random.Random) -> None:
        self.address, self.server, self.chance = address, server, chance
        self.done: Counter[str] = Counter()

    def status(self, wanted: Any) -> dict[str, Any]:
        """What runs, once it is as wanted."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(InvalidInput):  # PostgreSQL is coming back
                found = running.status(self.address)
                if wanted(found):
                    return found
        raise TimeoutError(f"the cluster has not come back after {dict(self.done)}")

    def whole(self, found: dict[str, Any]) -> bool:
        return len(found["fronts"]) == 2 and all(shard["state"] == "serving" for shard in found["shards"])

    def harm(self, kind: str) -> None:
        before = self.status(self.whole)
        self.done[kind] += 1
        if kind == "pause":
            self.pause(self.chance.choice(before["shards"]))
        elif kind == "postgres":
            self.server.stop("immediate")
            self.server.start()
            self.status(lambda now: all(new["epoch"] > old["epoch"] for old, new in zip(before["shards"], now["shards"], strict=True)))
        elif kind == "front":
            pid = self.chance.choice(before["fronts"])["pid"]
            os.kill(pid, signal.SIGKILL)
            self.status(lambda now: self.whole(now) and pid not in [front["pid"] for front in now["fronts"]])
        else:
            shard = self.chance.choice(before["shards"])
            os.kill(shard["pid"], signal.SIGKILL)
            self.status(lambda now: now["shards"][shard["shard"]]["epoch"] > shard["epoch"])

    def pause(self, shard: dict[str, Any]) -> None:
        """Stop an owner until another process has had the lease, then let it go on: it must find that it is replaced."""
        os.kill(shard["pid"], signal.SIGSTOP)
        while True:
            with contextlib.suppress(NotNow):
                Lease(self.address, shard["shard"]).release()
                break
        os.kill(shard["pid"], signal.SIGCONT)
        self.status(lambda now: now["shards"][shard["shard"]]["epoch"] > shard["epoch"] + 1)


async def torment(
    address: str, server: PrivatePostgres, folder: Path, faults: int, pauses: int, shards: int, seed: int = 0, tell: bool = False
) -> Verdict:
    """Let sixteen clients write to a new cluster, do so many faults, and judge."""
    began = time.monotonic()
    chance = random.Random(seed)
    running.make(address, shards, Options(policy=ItemMean(), scale=(1, 5), events={"click": 1, "purchase": 5}))
    tormentor = Tormentor(address, server, chance)
    story, answered = Story(), asyncio.Event()
    plan = [KINDS[number % len(KINDS)] for number in range(faults)] + ["pause"] * pauses
    chance.shuffle(plan)
    cluster = await asyncio.to_thread(Running, address, folder)
    try:
        clients = [Client(number, cluster.port, story, answered, seed, visits=0.0) for number in range(CLIENTS)]
        writing = [asyncio.create_task(client.run()) for client in clients]
        for number, kind in enumerate(plan, start=1):
            answered.clear()
            await answered.wait()
            await asyncio.to_thread(tormentor.harm, kind)
            if tell and number % 25 == 0:
                print(f"{number:,} faults, {len(story.acknowledged) + len(story.decisions):,} acknowledged", flush=True)
        answered.clear()
        await answered.wait()
        for client in clients:
            client.ending = True
        await asyncio.gather(*writing)
        await asyncio.to_thread(running.stop, address, threading.Event().wait)
        code = await asyncio.to_thread(cluster.wait)
    finally:
        if cluster.process.poll() is None:
            cluster.process.kill()
    return judge(address, folder, story, dict(tormentor.done), code, time.monotonic() - began)


def judge(address: str, folder: Path, story: Story, faults: dict[str, int], code: int, seconds: float) -> Verdict:
    """Compare what the clients saw with all logs, each shard with its log, and what all know with what was said."""
    delivered: Counter[str] = Counter()
    decisions: Counter[str | None] = Counter()
    rated: Counter[str] = Counter()
    contradicted = 0
    homes = running.homes_of(address, folder)
    for home in homes:
        with home.reading() as log:
            found = verify(log, home.folder, read_genesis(log, str(home)))
            contradicted += bool(found.contradicted) or not found.confirmed
            for _, event in read_events(log):
                if isinstance(event, Rated | Reacted):
                    delivered[event.event_id] += 1
                    rated[event.item] += isinstance(event, Rated) or event.replaces is None
                elif isinstance(event, Decided):
                    decisions[event.request_id] += 1
    with Town(address, folder, shards=len(homes)) as town:
        town.settle()
        models = [engine._model for engine in town.engines]
        names = models[0].items.names
        miscounted = sum(model.items.names != names for model in models)
        for number, name in enumerate(names):
            miscounted += any(int(model.ledger.item_ratings[number]) != rated[name] for model in models)
    return Verdict(
        faults=faults,
        acknowledged=len(story.acknowledged) + len(story.decisions),
        lost=len(set(story.acknowledged) - set(delivered)) + len(story.decisions - set(decisions)) + len(story.lost_decisions),
        unexpected=len(set(delivered) - story.sent) + len(set(decisions) - story.asked),
        duplicated=sum(count - 1 for count in (*delivered.values(), *decisions.values())),
        surprises=dict(story.surprises),
        contradicted=contradicted,
        miscounted=miscounted,
        exit_code=code,
        seconds=seconds,
    )


def main(faults: int, shards: int) -> int:
    os.environ["PYTHONPATH"] = MODULES
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server:
        address = server.create_database("service")
        verdict = asyncio.run(torment(address, server, Path(scratch), faults, faults // 50 + 1, shards, tell=True))
    print(verdict)
    return 0 if verdict.sound else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000, int(sys.argv[2]) if len(sys.argv) > 2 else 4))
