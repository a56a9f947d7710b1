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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faults.chaos import CLIENTS, MODULES, Client, Story
from town import Town

from albatross.core.errors import InvalidInput
from albatross.policies.item_mean import ItemMean
from albatross.service.cluster import running
from albatross.service.cluster.pruning import prune
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.verifying import verify
from albatross.service.storage.events import Arrived, Decided, Joined, Rated, Reacted
from albatross.service.storage.postgres.lease import Lease
from albatross.service.storage.postgres.session import connect
from albatross.service.storage.reading import read_events, read_genesis
from albatross.service.tools.private_postgres import PrivatePostgres

KINDS = ("shard", "front", "exchange", "postgres", "raylet", "node")
"""What is harmed: processes are killed; what exchanges is a thread of a shard, whose connection is cut; PostgreSQL is restarted as after a
crash; a raylet is killed alone, so that what it has started lives on for a while, or with all of that, as when a machine is lost."""
FAR = ("raylet", "node")
HARM = Counter(shard=40, front=20, exchange=32, postgres=6, raylet=1, node=1)
"""Of a hundred faults: how often each kind is taken."""
NODES = 2
"""Nodes of Ray beside the first, all on this machine."""
HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 6}
"""So Ray notices a node that is gone after some seconds, and not after half a minute."""
PATIENCE = 120.0
LOOK_SECONDS = 0.05

CUT = """
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity WHERE application_name = 'albatross exchange' ORDER BY random() LIMIT %s
) AS victims
"""


CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'albatross exchange'"
SOON = 2.0
"""Seconds to wait for connections that were cut: some may belong to shards that are paused."""
WAVES = 5
"""How often connections are cut in one round."""


class Running:
    """`albatross cluster start` in a process of its own."""

    def __init__(self, address: str, snapshots: Path | str, ray_address: str | None = None) -> None:
        program = "import sys, albatross.cli; sys.exit(albatross.cli.main())"
        words = ["cluster", "start", address, "--fronts", "2", "--port", "0", "--log", "json", "--snapshots", str(snapshots)]
        words += [] if ray_address is None else ["--ray", ray_address]
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
def running_cluster(address: str, snapshots: Path | str) -> Iterator[Running]:
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


class Machines:
    """Nodes of Ray on one machine. The first stays: it knows of the others, as the machine where `albatross cluster start` runs."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        arguments = {"num_cpus": 1, "include_dashboard": False, "_system_config": HEALTH}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=arguments)
        self.address: str = self._cluster.address
        self._count, self._nodes = nodes, list[Any]()
        self.replace()

    def lose(self, pids: Sequence[int], whole: bool) -> list[int]:
        """Kill the raylet that has most of these processes, with all of them where a whole node is lost."""
        raylets = {node: node.all_processes["raylet"][0].process.pid for node in self._nodes}
        parents = {pid: _parent(pid) for pid in pids}
        node = max(self._nodes, key=lambda one: list(parents.values()).count(raylets[one]))
        lost = [pid for pid, parent in parents.items() if parent == raylets[node]]
        self._cluster.remove_node(node, allow_graceful=False)
        for pid in lost if whole else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._nodes.remove(node)
        return lost

    def replace(self) -> None:
        """Begin nodes in the place of those that were lost."""
        self._nodes += [self._cluster.add_node(num_cpus=1) for _ in range(self._count - len(self._nodes))]

    def close(self) -> None:
        self._cluster.shutdown()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


class Tormentor:
    """Does several faults at one time, and waits until the cluster has come back from them."""

    def __init__(self, address: str, server: PrivatePostgres, machines: Machines | None, chance: random.Random) -> None:
        self.address, self.server, self.machines, self.chance = address, server, machines, chance
        self.done: Counter[str] = Counter()
        self._paused: dict[str, Any] | None = None

    def status(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What runs, once it is as wanted."""
        end, pause = time.monotonic() + PATIENCE, threading.Event()
        found = None
        while time.monotonic() < end:
            with contextlib.suppress(InvalidInput):  # PostgreSQL is coming back
                found = running.status(self.address)
                if wanted(found):
                    return found
            pause.wait(LOOK_SECONDS)
        raise TimeoutError(f"the cluster has not come back after {dict(self.done)}: {found}")

    def whole(self, found: dict[str, Any]) -> bool:
        return len(found["fronts"]) == 2 and all(shard["state"] == "serving" for shard in self.active(found))

    def active(self, found: dict[str, Any]) -> list[dict[str, Any]]:
        """All shards but the one that is paused."""
        return [shard for shard in found["shards"] if self._paused is None or shard["shard"] != self._paused["shard"]]

    def harm(self, kinds: Counter[str], before: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
        """Do these faults, all at one time. Returns what is to be waited for."""
        active, fronts = self.active(before), before["fronts"]
        shards = self.chance.sample(active, min(kinds["shard"], len(active)))
        gone = self.chance.sample([front["pid"] for front in fronts], min(kinds["front"], len(fronts)))
        if kinds["exchange"]:
            self._cut(kinds["exchange"], len(active))
        self.done.update(shard=len(shards), front=len(gone))
        victims = [*(shard["pid"] for shard in shards), *gone]
        for kind in FAR:
            if kinds[kind] and self.machines is not None:
                pids = [one["pid"] for one in (*active, *fronts)]
                lost = self.machines.lose(pids, whole=kind == "node")
                shards += [shard for shard in active if shard["pid"] in lost and shard not in shards]
                gone += [front["pid"] for front in fronts if front["pid"] in lost]
                self.done[kind] += bool(lost)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):  # it was on a node that is lost
                os.kill(pid, signal.SIGKILL)
        if kinds["postgres"]:
            self.server.stop("immediate")
            self.server.start()
            shards = active
            self.done["postgres"] += 1
        moved = {shard["shard"]: shard["epoch"] for shard in shards}
        return lambda now: (
            self.whole(now)
            and all(shard["epoch"] > moved.get(shard["shard"], 0) for shard in self.active(now))
            and not {front["pid"] for front in now["fronts"]} & set(gone)
        )

    def _cut(self, count: int, shards: int) -> None:
        """Cut connections of the exchange, so many at one time as there are shards, and again as soon as they are back."""
        pause = threading.Event()
        with contextlib.closing(connect(self.address)) as session:
            while count > 0:
                end = time.monotonic() + SOON
                while time.monotonic() < end and (session.execute(CONNECTED).fetchone() or (0,))[0] < shards:
                    pause.wait(LOOK_SECONDS)
                cut = session.execute(CUT, (min(count, shards),)).fetchone()
                self.done["exchange"] += 0 if cut is None else int(cut[0])
                count -= shards

    def pause(self) -> None:
        """Stop an owner, until another process has had the lease."""
        self.resume(wait=True)
        self._paused = self.chance.choice(self.status(self.whole)["shards"])
        os.kill(self._paused["pid"], signal.SIGSTOP)

    def resume(self, wait: bool = False) -> None:
        """Let a paused owner go on once it has lost the lease: it must find that it is replaced."""
        shard, pause = self._paused, threading.Event()
        while shard is not None:
            with contextlib.suppress(InvalidInput):  # it has the lease, or PostgreSQL is coming back
                if running.status(self.address)["shards"][shard["shard"]]["epoch"] > shard["epoch"]:
                    break  # its node was lost, and Ray has started another
                Lease(self.address, shard["shard"]).release()
                break
            if not wait:
                return
            pause.wait(LOOK_SECONDS)
        if shard is not None:
            with contextlib.suppress(ProcessLookupError):  # its node is lost, or the supervisor has ended it
                os.kill(shard["pid"], signal.SIGCONT)
            self._paused = None
            self.done["pause"] += 1
            self.status(lambda now: self.whole(now) and now["shards"][shard["shard"]]["epoch"] > shard["epoch"])

    def rest(self) -> None:
        self.resume(wait=True)
        self.status(self.whole)


def planned(faults: int, chance: random.Random, machines: bool, shards: int, harm: Counter[str] | None = None) -> list[Counter[str]]:
    """Rounds of faults, each of several kinds: all kinds as often as they are to be, in as few rounds as there can be."""
    room = Counter(shard=shards, front=2, exchange=WAVES * shards, postgres=1, raylet=1, node=1)
    harm = HARM if harm is None else harm
    wanted = {kind: max(1, round(faults * share / harm.total())) for kind, share in harm.items() if machines or kind not in FAR}
    rounds = [Counter[str]() for _ in range(max(-(-count // room[kind]) for kind, count in wanted.items()))]
    for kind, count in wanted.items():
        places = [number for number in range(len(rounds)) for _ in range(room[kind])]
        far = [number * len(rounds) // count for number in range(count)]  # of both kinds at one time: Ray takes long to notice
        for number in far if kind in FAR else chance.sample(places, count):
            rounds[number][kind] += 1
    return rounds


def prune_at_last(address: str, folder: Path) -> None:
    """Prune payloads, however often PostgreSQL goes away."""
    while True:
        with contextlib.suppress(InvalidInput):
            if prune(address, folder, threading.Event().wait).version > 0:
                return


async def torment(
    address: str,
    server: PrivatePostgres,
    folder: Path,
    rounds: Sequence[Counter[str]],
    pauses: int,
    shards: int,
    chance: random.Random,
    machines: Machines | None = None,
    tell: bool = False,
) -> Verdict:
    """Let sixteen clients write to a new cluster, do rounds of faults, and judge."""
    began = time.monotonic()
    running.make(address, shards, Options(policy=ItemMean(), scale=(1, 5), events={"click": 1, "purchase": 5}))
    tormentor = Tormentor(address, server, machines, chance)
    story, answered = Story(), asyncio.Event()
    paused = {round(position) for position in np.linspace(0, len(rounds), pauses, endpoint=False)} if pauses else set()
    cluster = await asyncio.to_thread(Running, address, folder, None if machines is None else machines.address)
    try:
        clients = [Client(number, cluster.port, story, answered, chance.randrange(10**6)) for number in range(CLIENTS)]
        writing = [asyncio.create_task(client.run()) for client in clients]
        pruned = asyncio.create_task(asyncio.to_thread(prune_at_last, address, folder))
        for number, kinds in enumerate(rounds):
            await _answers(CLIENTS, story, answered)
            if number in paused:
                await asyncio.to_thread(tormentor.pause)
            back = tormentor.harm(kinds, await asyncio.to_thread(tormentor.status, tormentor.whole))
            await asyncio.to_thread(tormentor.status, back)
            await asyncio.to_thread(tormentor.resume)
            if machines is not None:
                machines.replace()  # by the main thread: Ray lets no other begin a node
            if tell:
                told = f"{tormentor.done.total():,} faults in {time.monotonic() - began:.0f} s, {_acknowledged(story):,} acknowledged"
                print(told, flush=True)
        await asyncio.to_thread(tormentor.rest)
        await pruned
        await _answers(CLIENTS, story, answered)
        for client in clients:
            client.ending = True
        await asyncio.gather(*writing)
        await asyncio.to_thread(running.stop, address, threading.Event().wait)
        code = await asyncio.to_thread(cluster.wait)
    finally:
        if cluster.process.poll() is None:
            cluster.process.kill()
    return judge(address, folder, story, dict(tormentor.done), code, time.monotonic() - began)


def _acknowledged(story: Story) -> int:
    return len(story.acknowledged) + len(story.decisions) + len(story.joined)


async def _answers(more: int, story: Story, answered: asyncio.Event) -> None:
    """Wait until so many more requests were acknowledged."""
    wanted = _acknowledged(story) + more
    while _acknowledged(story) < wanted:
        answered.clear()
        await answered.wait()


def judge(address: str, folder: Path, story: Story, faults: dict[str, int], code: int, seconds: float) -> Verdict:
    """Compare what the clients saw with all logs, each shard with its log, and what all know with what was said."""
    delivered: Counter[str] = Counter()
    decisions: Counter[str | None] = Counter()
    rated: Counter[str] = Counter()
    joined: Counter[tuple[str, str]] = Counter()
    left, arrived = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    contradicted = 0
    homes = running.homes_of(address, folder)
    with Town(address, folder, shards=len(homes)) as town:  # what was under way arrives
        town.settle()
        names = [engine._model.items.names for engine in town.engines]
        counts = [engine._model.ledger.item_ratings.tolist() for engine in town.engines]
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
                elif isinstance(event, Joined):
                    joined[event.visitor, event.user] += 1
                    left[event.visitor, event.user] += event.away
                elif isinstance(event, Arrived):
                    arrived[event.visitor, event.user] += 1
    miscounted = sum(each != names[0] for each in names)
    for number, name in enumerate(names[0]):
        miscounted += any(count[number] != rated[name] for count in counts)
    return Verdict(
        faults=faults,
        acknowledged=_acknowledged(story),
        lost=len(set(story.acknowledged) - set(delivered))
        + len(story.decisions - set(decisions))
        + len(story.lost_decisions)
        + len(set(story.joined.items()) - set(joined))
        + (left - arrived).total(),
        unexpected=len(set(delivered) - story.sent) + len(set(decisions) - story.asked) + (arrived - left).total(),
        duplicated=sum(count - 1 for count in (*delivered.values(), *decisions.values(), *joined.values())),
        surprises=dict(story.surprises),
        contradicted=contradicted,
        miscounted=miscounted,
        exit_code=code,
        seconds=seconds,
    )


def main(faults: int, shards: int, seed: int = 0) -> int:
    os.environ["PYTHONPATH"] = MODULES
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server, contextlib.closing(Machines(NODES)) as machines:
        rounds = planned(faults, chance, True, shards)
        address = server.create_database("service")
        verdict = asyncio.run(torment(address, server, Path(scratch), rounds, faults // 50 + 1, shards, chance, machines, tell=True))
    print(verdict)
    return 0 if verdict.sound else 1


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*given, *(1_000, 4)[len(given) :]))
