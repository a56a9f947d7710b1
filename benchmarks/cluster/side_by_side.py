"""What an event costs when engines share the processors: `python -m benchmarks.cluster.side_by_side`.

One, two and four engines, each in a process of its own with a database of its own in one PostgreSQL. They have nothing to do with each
other, so what an event costs more with four of them is the price of more processes than processors. They are measured by turns.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from albatross.policies.alb import ALB
from albatross.service.api.requests import Feedback, FeedbackBatch
from albatross.service.cluster import running
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.postgres.home import PostgresHome, snapshots_of
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks import machine
from benchmarks.cluster.against_one import RANK, Asking, postgres_of, seconds_of

ENGINES = (1, 2, 4)
TURNS = 6
GROUPS, LENGTH = 80, 250
"""Commits of each engine in a turn, and ratings of each: as many as a shard of four gets of a batch of 1,000."""


def engine(address: str, folder: str) -> None:
    """Learn at each word from outside, and say how much processor time that took."""
    asking = Asking()

    def group() -> FeedbackBatch:
        return FeedbackBatch([Feedback(**asking.rating()) for _ in range(LENGTH)])

    with Engine(PostgresHome(address, snapshots_of(folder, 0), 0)) as opened:
        opened.wait_ready()
        for _ in range(GROUPS):
            opened.ask(group())
        while True:
            groups = [group() for _ in range(GROUPS)]
            print("ready", flush=True)
            if not sys.stdin.readline():
                return
            began = time.process_time()
            for one in groups:
                opened.ask(one)
            print(json.dumps(time.process_time() - began), flush=True)


class Child:
    def __init__(self, address: str, folder: Path) -> None:
        folder.mkdir()
        command = [sys.executable, "-m", "benchmarks.cluster.side_by_side", address, str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ.copy())

    def say(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("learn\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.communicate()


def main() -> None:
    print("\n".join(machine.describe()))
    found: dict[int, list[tuple[float, float]]] = {number: [] for number in ENGINES}
    with tempfile.TemporaryDirectory() as scratch, PrivatePostgres() as server, contextlib.ExitStack() as stack:
        children = []
        for number in range(max(ENGINES)):
            address = server.create_database(f"engine{number}")
            running.make(address, 1, Options(policy=ALB(rank=RANK), scale=(1, 5)))
            children.append(stack.enter_context(contextlib.closing(Child(address, Path(scratch) / str(number)))))
        for child in children:
            child.hear()
        for turn in range(TURNS):
            for number in ENGINES if turn % 2 else reversed(ENGINES):
                some = [children[(turn + place) % len(children)] for place in range(number)]
                before = seconds_of(postgres_of(server))
                for child in some:
                    child.say()
                ours = sum(float(child.hear()) for child in some)
                events = number * GROUPS * LENGTH
                found[number].append((ours / events * 1e6, (seconds_of(postgres_of(server)) - before) / events * 1e6))
                for child in some:
                    child.hear()
    print("| engines | µs per event | in PostgreSQL |", "| ---: | ---: | ---: |", sep="\n")
    for number, times in found.items():
        columns = [f"{np.median(column):.1f} ({min(column):.1f} to {max(column):.1f})" for column in zip(*times, strict=True)]
        print(f"| {number} | {' | '.join(columns)} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        engine(*sys.argv[1:])
    else:
        main()
