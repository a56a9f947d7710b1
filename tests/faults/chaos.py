"""Kill a server under many writers, again and again, and count broken promises: `make chaos`.

The checker is that of a Jepsen set test. Acknowledged: ratings, decisions and joins answered with 200. Lost: acknowledged, and not in
the log. Unexpected: in the log, and never sent. Duplicated: in the log more than once. And the state of the survivor must be, bit for bit,
what a clean replay of the log gives.
"""

import asyncio
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from albatross.service.engine.recovering.recovery import recover
from albatross.service.storage.events import Decided, Joined, Rated, Reacted
from albatross.service.storage.home import Home, home_of
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.storage.reading import read_events, read_genesis
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks.serving.loopback import Connection

CLIENTS = 16
ROOT = Path(__file__).parents[2]
MODULES = os.pathsep.join(str(folder) for folder in (ROOT / "tests", ROOT, ROOT / "src"))
"""Where the processes that are started find this folder, `benchmarks` and the albatross of this checkout."""
VISITS = 0.2
"""How often it is a visitor who asks."""
SOONEST, LATEST = 0.002, 0.060
"""Seconds from the first answer of a life to its end."""


@dataclass
class Story:
    """What the clients saw."""

    sent: set[str] = field(default_factory=set)
    acknowledged: dict[str, int] = field(default_factory=dict)
    decisions: set[str] = field(default_factory=set)
    lost_decisions: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    joined: dict[str, str] = field(default_factory=dict)
    surprises: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True)
class Verdict:
    kills: int
    acknowledged: int
    lost: int
    unexpected: int
    duplicated: int
    surprises: dict[int, int]
    """Statuses that no client should have met, and how often."""
    live_state: str
    replayed_state: str
    exit_code: int
    seconds: float

    @property
    def sound(self) -> bool:
        faults = self.lost + self.unexpected + self.duplicated + sum(self.surprises.values()) + self.exit_code
        return faults == 0 and self.live_state == self.replayed_state

    def __str__(self) -> str:
        state = "equal to" if self.live_state == self.replayed_state else "DIFFERENT from"
        odd = f", unforeseen answers {self.surprises}" if self.surprises else ""
        return (
            f"{self.kills:,} kills in {self.seconds:.0f} s: acknowledged {self.acknowledged:,}, lost {self.lost}, "
            f"unexpected {self.unexpected}, duplicated {self.duplicated}{odd}; "
            f"state id {state} that of a clean replay ({self.replayed_state})"
        )


class Nursery:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    @classmethod
    async def open(cls, home: Home, scratch: Path) -> "Nursery":
        """`scratch`: a folder for the logs of all lives."""
        where = [home.address, str(home.folder)] if isinstance(home, PostgresHome) else [str(home)]
        arguments = [sys.executable, "-m", "faults.nursery", str(scratch), *where]
        process = await asyncio.create_subprocess_exec(
            *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": MODULES}
        )
        assert process.stdout is not None
        return cls(process, int(await process.stdout.readline()))

    async def tell(self, word: str) -> int:
        """Returns the process id of a started server, or the exit code of one that was ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n".encode())
        return int(await self._process.stdout.readline())

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


class Client:
    """Writes until told to end. What it has no answer to it sends again, or leaves open, by chance."""

    def __init__(self, number: int, port: int, story: Story, answered: asyncio.Event, seed: int) -> None:
        self.number, self.port, self.story, self.answered = number, port, story, answered
        self.random = random.Random(seed * CLIENTS + number)
        self.connection: Connection | None = None
        self.ending = False

    async def run(self) -> None:
        step = 0
        while not self.ending:
            step += 1
            name = f"{self.number}-{step}"
            user, item = f"u{self.random.randrange(50)}", f"i{self.random.randrange(200)}"
            rating = {"event_id": name, "rating": self.random.randint(1, 5)}
            if self.random.random() < 0.25:
                visiting = self.random.random() < VISITS
                decided = await self._decide(f"r{name}", None if visiting else user)
                decision = None if decided is None else str(decided["decision_id"])
                if decided is not None and visiting and self.random.random() < 0.5:
                    await self._send("/v1/users/join", {"visitor": decided["user"], "user": user})
                if decision is not None and self.random.random() < 0.5:
                    await self._send("/v1/feedback", {**rating, "decision_id": decision})
                elif decision is not None:  # the second takes the place of the first
                    for number, event in enumerate(("click", "purchase")):
                        await self._send("/v1/feedback", {"event_id": f"{name}.{number}", "event": event, "decision_id": decision})
            else:
                await self._send("/v1/feedback", {**rating, "user": user, "item": item})
        self._hang_up()

    async def _decide(self, name: str, user: str | None) -> dict[str, object] | None:
        self.story.asked.add(name)
        question: dict[str, object] = {"user": user, "request_id": name, "candidates": [f"i{k}" for k in range(self.number + 1)]}
        return await self._send("/v1/recommend", question)

    async def _send(self, path: str, question: dict[str, object]) -> dict[str, object] | None:
        """Until there is an answer, or patience ends."""
        body = json.dumps(question).encode()
        if path == "/v1/feedback":
            self.story.sent.add(str(question["event_id"]))
        while True:
            try:
                if self.connection is None:
                    self.connection = await Connection.open(self.port)
                status, content = await self.connection.post(path, body)
            except ConnectionError:
                self._hang_up()
                if self.ending or self.random.random() < 0.3:
                    return None
                continue
            if status == 200:
                return self._acknowledged(path, question, json.loads(content))
            if status == 404:
                self.story.lost_decisions.add(str(question.get("decision_id", question.get("visitor"))))
                return None
            if status not in (409, 429, 503):  # in flight, busy, or not yet replayed: ask again
                self.story.surprises[status] += 1
                return None

    def _hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _acknowledged(self, path: str, question: dict[str, object], answer: dict[str, object]) -> dict[str, object]:
        if path == "/v1/feedback":
            self.story.acknowledged[str(question["event_id"])] = int(str(answer["seq"]))
        elif path == "/v1/users/join":
            self.story.joined[str(question["visitor"])] = str(question["user"])
        else:
            self.story.decisions.add(str(question["request_id"]))
        self.answered.set()
        return answer


async def torment(home: Home, scratch: Path, kills: int, seed: int = 0, tell: bool = False) -> Verdict:
    """Let the clients write, kill the server so many times, and judge. `scratch`: a folder for the logs of its lives."""
    began = time.monotonic()
    chance = random.Random(seed)
    nursery = await Nursery.open(home, scratch)
    story, answered = Story(), asyncio.Event()
    await nursery.tell("start")
    clients = [Client(number, nursery.port, story, answered, seed) for number in range(CLIENTS)]
    running = [asyncio.create_task(client.run()) for client in clients]
    for kill in range(1, kills + 1):
        await answered.wait()
        await asyncio.sleep(chance.uniform(SOONEST, LATEST))  # part of the fault, not a wait for something
        await nursery.tell("kill")
        answered.clear()
        await nursery.tell("start")
        if tell and kill % 100 == 0:
            print(f"{kill:,} kills, {len(story.acknowledged) + len(story.decisions):,} acknowledged", flush=True)
    await answered.wait()
    for client in clients:
        client.ending = True
    await asyncio.gather(*running)
    connection = await Connection.open(nursery.port)
    _, version = await connection.ask("GET", "/v1/version")
    connection.close()
    exit_code = await nursery.tell("stop")
    await nursery.close()
    return judge(home, story, kills, json.loads(version)["state_id"], exit_code, time.monotonic() - began)


def judge(home: Home, story: Story, kills: int, live_state: str, exit_code: int, seconds: float) -> Verdict:
    """Compare what the clients saw with the log, and the survivor with a replay of the log alone."""
    with home.reading() as log:
        replayed = recover(home.folder, log, read_genesis(log, str(home)), use_snapshots=False).model
        events = list(read_events(log))
    ratings = {seq: event.event_id for seq, event in events if isinstance(event, Rated | Reacted)}
    decisions = Counter(event.request_id for _, event in events if isinstance(event, Decided))
    delivered = Counter(ratings.values())
    lost = sum(ratings.get(seq) != name for name, seq in story.acknowledged.items())
    lost += len(story.decisions - set(decisions)) + len(story.lost_decisions)
    joined = Counter((event.visitor, event.user) for _, event in events if isinstance(event, Joined))
    lost += len(set(story.joined.items()) - set(joined))
    unexpected = len(set(delivered) - story.sent) + len(set(decisions) - story.asked)
    duplicated = sum(count - 1 for count in (*delivered.values(), *decisions.values(), *joined.values()))
    acknowledged = len(story.acknowledged) + len(story.decisions) + len(story.joined)
    return Verdict(
        kills, acknowledged, lost, unexpected, duplicated, dict(story.surprises), live_state, replayed.state_id, exit_code, seconds
    )


def main(kills: int, keeper: str) -> int:
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch) / "service"
        home = home_of(folder)
        if keeper == "postgres":
            home = home_of(stack.enter_context(PrivatePostgres()).create_database("service"), folder)
        verdict = asyncio.run(torment(home, Path(scratch), kills, tell=True))
    print(verdict)
    return 0 if verdict.sound else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, sys.argv[2] if len(sys.argv) > 2 else "folder"))
