"""Damaged snapshots and repeated deliveries, in full: `PYTHONPATH=tests:. python -m faults.damage [FLIPS] [DELIVERIES]`.

Every byte of the tail of a snapshot and of its manifest, and random bits of both: each start must have the state id of the log. Deliveries,
shuffled and repeated across restarts, must give the state id of the run in which each event came once.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from albatross.policies.alb import ALB
from albatross.service.api.answers import Accepted
from albatross.service.api.requests import AskVersion, Feedback, FeedbackBatch, Recommend, TakeSnapshot
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.recovery import recover
from albatross.service.storage.folder import SNAPSHOTS
from albatross.service.storage.reading import read_genesis
from albatross.service.storage.sqlite.log import SQLiteLog

TAIL = 512
"""Bytes at the end that are damaged one by one."""
OPTIONS = Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=0)


def rating(number: int) -> Feedback:
    return Feedback(f"event {number}", 1 + number % 5, None, f"user {number * 7 % 31}", f"item {number * 5 % 17}")


def started(folder: Path) -> tuple[str, int]:
    """The state id after a start, and the event of the snapshot it used."""
    store = SQLiteLog(folder)
    try:
        recovered = recover(folder, store, read_genesis(store, str(folder)))
    finally:
        store.close()
    return recovered.model.state_id, 0 if recovered.snapshot is None else recovered.snapshot.seq


def damage(root: Path, flips: int) -> int:
    """Damage a snapshot in many ways; returns how many starts went wrong."""
    folder = root / "damaged"
    with Engine(folder, OPTIONS) as engine:
        engine.wait_ready()
        for number in range(120):
            engine.ask(rating(number))
            engine.ask(Recommend(f"user {number % 40}"))
            if number == 60:
                engine.ask(TakeSnapshot())
    expected, newest = started(folder)
    random, starts, wrong = np.random.default_rng(0), 0, 0
    paths = sorted((folder / SNAPSHOTS).glob(f"*{newest}.*"))
    for path in paths:
        content = path.read_bytes()
        tail = range(max(len(content) - TAIL, 0), len(content))
        for position in [*tail, *random.integers(len(content), size=flips // len(paths)).tolist()]:
            damaged = bytearray(content)
            damaged[position] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            state, used = started(folder)
            starts += 1
            wrong += state != expected or used == newest
        path.write_bytes(content)
    print(f"{starts:,} damaged snapshots: {wrong} not detected, or with another state id than the log's ({expected})")
    return wrong


def deliver(root: Path, deliveries: int) -> int:
    """Deliver events again and again, in any order, across restarts; returns 1 if the state is another than that of the once-only run."""
    events = [rating(number) for number in range(2_000)]
    with Engine(root / "once", OPTIONS) as once:
        once.wait_ready()
        once.ask(FeedbackBatch(events))
        expected = once.ask(AskVersion()).state_id
    random, delivered, applied, restarts, new = np.random.default_rng(0), 0, 0, 0, 0
    while delivered < deliveries or new < len(events):
        restarts += 1
        with Engine(root / "often", OPTIONS) as often:
            often.wait_ready()
            for _ in range(20):
                fresh = events[new : new + 20]
                again = [events[number] for number in random.integers(0, min(new + 1, len(events)), size=200)]
                new += len(fresh)
                answers = often.ask(FeedbackBatch(fresh + again)).answers
                delivered += len(answers)
                applied += sum(isinstance(answer, Accepted) and not answer.duplicate for answer in answers)
            found = often.ask(AskVersion()).state_id
    print(
        f"{delivered:,} deliveries of {len(events):,} events over {restarts} restarts: {applied:,} applied; "
        f"state id {'equal to' if found == expected else 'DIFFERENT from'} that of the once-only run"
    )
    return int(found != expected or applied != len(events))


def main() -> int:
    flips, deliveries = (int(word) for word in (*sys.argv[1:3], *("10000", "100000")[len(sys.argv[1:3]) :]))
    root = Path(tempfile.mkdtemp(prefix="albatross-damage-"))
    began = time.perf_counter()
    try:
        faults = damage(root, flips) + deliver(root, deliveries)
    finally:
        shutil.rmtree(root)
    print(f"{time.perf_counter() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
