"""Honest clients among hostile ones: how long the honest ones wait, how much memory it takes, and what the log says.

`PYTHONPATH=tests:. python -m faults.soak [SECONDS]`; `make soak` runs it for ten minutes.
"""

import asyncio
import contextlib
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.serving.loopback import Connection

HONEST = 8
"""Clients that ask and rate, each after a short pause."""
PAUSE = 0.02
MOST_MILLISECONDS = 100.0
MOST_GROWTH = 300
"""MiB of memory that may be added after the first tenth of the time."""
SECRETS = ("Authorization", "Bearer", "honest-user", "hostile-user", "honest-event", "hostile-event", "hostile-item")


@dataclass
class Story:
    waits: list[float] = field(default_factory=list)
    """Seconds the honest clients waited."""
    honest: Counter[int] = field(default_factory=Counter)
    hostile: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    """MiB, once a second."""
    ending: bool = False

    def percentile(self, share: float) -> float:
        return sorted(self.waits)[int(share * len(self.waits))] * 1e3 if self.waits else float("nan")


class Target:
    """A server with keys, and a reader of its log."""

    def __init__(self, folder: Path, form: str) -> None:
        self.folder, self.form = folder, form
        self.log: list[str] = []
        self.keys: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        for name, scopes in (("honest", ("recommend", "feedback", "read")), ("hostile", ("recommend", "feedback", "read"))):
            words = [word for scope in scopes for word in ("--scope", scope)]
            self.keys[name] = (await _albatross("keys", "create", str(self.folder), *words)).strip()
        command = [sys.executable, "-c", "import sys, albatross.cli; sys.exit(albatross.cli.main())"]
        arguments = ["serve", str(self.folder), "--scale=1..5", "--port=0", f"--log={self.form}"]
        self.process = await asyncio.create_subprocess_exec(*command, *arguments, stderr=asyncio.subprocess.PIPE)
        self._reading = asyncio.create_task(self._read())
        await self._said("ready")
        self.port = int(
            next(line for line in self.log if "listening" in line).split("127.0.0.1:")[1].split('"')[0].split()[0].split("\x1b")[0]
        )
        return self

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.log.append(line.decode("utf-8", "replace"))

    async def _said(self, word: str) -> None:
        while not any(word in line for line in self.log):
            if self.process.returncode is not None:
                raise RuntimeError("".join(self.log))
            await asyncio.sleep(0.05)

    async def __aexit__(self, *error: object) -> None:
        if self.process.returncode is None:
            self.process.terminate()
        self.exit_code = await self.process.wait()
        await self._reading

    def memory(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def _albatross(*arguments: str) -> str:
    command = [sys.executable, "-c", "import sys, albatross.cli; sys.exit(albatross.cli.main())", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    return told.decode()


async def be_honest(target: Target, story: Story, number: int) -> None:
    """Ask, rate what was shown, pause, again."""
    headers = f"Authorization: Bearer {target.keys['honest']}\r\n"
    connection = await Connection.open(target.port)
    with contextlib.closing(connection):
        await _live(story, number, connection, headers)


async def _live(story: Story, number: int, connection: Connection, headers: str) -> None:
    step = 0
    while not story.ending:
        step += 1
        user = f"honest-user-{(number * 7919 + step) % 500}"
        question = {"user": user, "candidates": [f"item-{(step + at) % 300}" for at in range(20)]}
        status, content = await _timed(story, connection, "/v1/recommend", question, headers)
        if status == 200:
            rating = {
                "event_id": f"honest-event-{number}-{step}",
                "decision_id": json.loads(content)["decision_id"],
                "rating": 1 + step % 5,
            }
            await _timed(story, connection, "/v1/feedback", rating, headers)
        await asyncio.sleep(PAUSE)


async def _timed(story: Story, connection: Connection, path: str, question: object, headers: str) -> tuple[int, bytes]:
    began = time.perf_counter()
    status, content = await connection.ask("POST", path, json.dumps(question).encode(), headers)
    story.honest[status] += 1
    if status == 200:
        story.waits.append(time.perf_counter() - began)
    return status, content


Attack = Callable[[Target], Awaitable[None]]


def attacks() -> dict[str, Attack]:
    """What a hostile client does, by name. Each ends by itself."""

    def posting(path: str, make: Callable[[], bytes], key: str = "hostile") -> Attack:
        async def attack(target: Target) -> None:
            connection = await Connection.open(target.port)
            with contextlib.closing(connection):
                given = target.keys.get(key, key)
                await connection.ask("POST", path, make(), f"Authorization: Bearer {given}\r\n")

        return attack

    def saying(*parts: bytes, patience: float = 1.0) -> Attack:
        async def attack(target: Target) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            try:
                with contextlib.suppress(ConnectionError, TimeoutError):
                    for part in parts:
                        writer.write(part)
                        await writer.drain()
                    async with asyncio.timeout(patience):
                        while await reader.read(2**16):
                            pass
            finally:
                writer.transport.abort()

        return attack

    # Bodies are made beforehand: while one is made, the honest clients of this process would wait, too.
    batches = itertools.count()
    events = (
        {"event_id": f"hostile-event-#-{at}", "user": f"hostile-user-{at}", "item": f"hostile-item-{at}", "rating": 3}
        for at in range(7_000)
    )
    lines = b"\n".join(json.dumps(event).encode() for event in events)

    def batch() -> bytes:
        return lines.replace(b"#", b"%d" % next(batches))

    many_candidates = json.dumps({"user": "hostile-user", "n": 1000, "candidates": [f"hostile-item-{at}" for at in range(5_000)]}).encode()
    many_keys = json.dumps({f"k{at}": 1 for at in range(20_000)}).encode()
    same_keys = b"{" + b",".join([b'"user": "hostile-user"'] * 20_000) + b"}"
    digits = b'{"user": "hostile-user", "n": ' + b"9" * 500_000 + b"}"
    slow = b"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{"
    return {
        "batch": posting("/v1/feedback/batch", batch),
        "newlines": posting("/v1/feedback/batch", lambda: b"\n" * 2**20),
        "candidates": posting("/v1/recommend", lambda: many_candidates),
        "many keys": posting("/v1/recommend", lambda: many_keys),
        "same keys": posting("/v1/recommend", lambda: same_keys),
        "quotes": posting("/v1/recommend", lambda: b'[[[[[[[[["' + b'\\"' * 30_000),
        "deep": posting("/v1/recommend", lambda: b"[" * 500_000),
        "digits": posting("/v1/recommend", lambda: digits),
        "wrong key": posting("/v1/recommend", lambda: b"{}", "alb_00000000_" + "x" * 43),
        "slow body": saying(slow, patience=30.0),
        "slow head": saying(b"GET /v1/version HTTP/1.1\r\nX: ", patience=30.0),
        "long head": saying(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"x" * 70_000),
        "noise": saying(b"\x16\x03\x01\x02\x00" * 100),
        "options": saying(b"OPTIONS /v1/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        "origin": saying(b"GET /v1/version HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[\r\nConnection: close\r\n\r\n"),
        "version": posting("/v1/users/get", lambda: b'{"user": "hostile-user", "n": 1000}'),
    }


async def be_hostile(target: Target, story: Story, name: str, attack: Attack) -> None:
    chance = random.Random(name)
    while not story.ending:
        try:
            await attack(target)
        except (ConnectionError, OSError):
            story.hostile[f"{name}: connection lost"] += 1
        story.hostile[name] += 1
        await asyncio.sleep(chance.uniform(0.05, 0.5))


async def watch(target: Target, story: Story) -> None:
    while not story.ending:
        story.memory.append(target.memory())
        await asyncio.sleep(1.0)


async def soak(folder: Path, seconds: float, form: str = "json", linger: float = 40.0) -> tuple[Story, Target]:
    """Let everybody loose for so long. `linger`: seconds in which the slow ones may end by themselves."""
    story = Story()
    async with Target(folder, form) as target:
        tasks = [asyncio.create_task(be_honest(target, story, number)) for number in range(HONEST)]
        tasks += [asyncio.create_task(be_hostile(target, story, name, attack)) for name, attack in attacks().items()]
        # Slow ones come in crowds.
        for name in ("slow body", "slow head"):
            tasks += [asyncio.create_task(be_hostile(target, story, name, attacks()[name])) for _ in range(100)]
        tasks.append(asyncio.create_task(watch(target, story)))
        await asyncio.sleep(seconds)
        story.ending = True
        _, pending = await asyncio.wait(tasks, timeout=linger)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        await asyncio.sleep(0.1)  # in which the connections that were broken off are closed
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception() or RuntimeError
    return story, target


def leaks(target: Target) -> list[str]:
    """Lines of the log that say what a client sent."""
    secrets = [*SECRETS, *target.keys.values(), *(key.split("_", 2)[2] for key in target.keys.values())]
    return [line for line in target.log if any(secret in line for secret in secrets)]


def main(seconds: float) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        story, target = asyncio.run(soak(Path(scratch) / "shop", seconds))
    settled = story.memory[len(story.memory) // 10 :] or [0.0]
    growth = max(settled) - settled[0]
    leaked = leaks(target)
    print(f"{seconds:.0f} s, {sum(story.honest.values()):,} honest requests by status {dict(sorted(story.honest.items()))}")
    print(f"hostile: {dict(sorted(story.hostile.items()))}")
    print(f"honest p50 {story.percentile(0.5):.1f} ms, p99 {story.percentile(0.99):.1f} ms (needed: at most {MOST_MILLISECONDS:g})")
    print(f"memory {settled[0]:.0f} MiB after a tenth of the time, at most {max(settled):.0f} MiB (growth at most {MOST_GROWTH})")
    print(f"log: {len(target.log):,} lines, {len(leaked)} with something a client sent; exit code {target.exit_code}")
    sound = story.percentile(0.99) <= MOST_MILLISECONDS and growth <= MOST_GROWTH and not leaked and target.exit_code == 0
    return 0 if sound and not [status for status in story.honest if status >= 500] else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0))
