"""Processor time of a commit and of an exchange, part by part: two engines in this process, over a PostgreSQL, with nothing else to do.

`python -m benchmarks.cluster.scale_out` puts these costs into its model. They are not taken from its runs.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albatross.policies.alb import ALB
from albatross.service.api.requests import Feedback, FeedbackBatch
from albatross.service.cluster import running
from albatross.service.cluster.exchanging import CLOSE, CLOSING, HEADS, VERSION, WAIT, WAITING
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.sharing import FoldVersion, FollowCatalogue, TakeAdded
from albatross.service.http.bodies import SLICE
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.bases import NEWER, make_bases
from albatross.service.storage.postgres.home import PostgresHome, snapshots_of
from albatross.service.storage.postgres.session import CATALOGUE, CHANNEL, MOVING, Session, connect, make_if_missing
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks.cluster.against_one import RANK, Asking, postgres_of, seconds_of
from benchmarks.cluster.model import KINDS, POSTGRES, SHARDS, Times

ENGINES = 2
SMALLER = 5
"""How many times smaller than a slice the groups are with which slices are compared."""
TURNS, WARM = 16, 4
"""Versions that are made, of which the first are not counted."""
LOOKS = 20
"""Checks for something new, between two versions."""


class Parts(NamedTuple):
    """Processor time by kind, at shards and in PostgreSQL."""

    group: Times
    """To commit ratings together, besides what each of them takes."""
    payload: Times
    """To take what own users have added, to send it, and to make it part of a version."""
    version: Times
    """At each shard, to write that there is a version, and to apply it, if it has no payload."""
    read: Times
    """At each shard, per payload of a version: to read, check and apply it."""
    look: Times
    """To ask PostgreSQL whether there is something new."""


def parts_of(server: PrivatePostgres, folder: Path, ratings: int) -> Parts:
    """With exchanges after so many ratings on each shard."""
    address = server.create_database("parts")
    running.make(address, ENGINES, Options(policy=ALB(rank=RANK), scale=(1, 5)))
    with contextlib.ExitStack() as stack:
        engines = [stack.enter_context(Engine(PostgresHome(address, snapshots_of(folder, shard), shard))) for shard in range(ENGINES)]
        for engine in engines:
            engine.wait_ready()
        sessions = [stack.enter_context(contextlib.closing(connect(address, writing=True))) for _ in engines]
        for session in sessions:
            make_bases(session)
            make_if_missing(session, "albatross.parcels", MOVING)
            session.execute(f"LISTEN {CHANNEL}")
        return _measured(server, engines, sessions, ratings)


def _measured(server: PrivatePostgres, engines: list[Engine], sessions: list[Session], ratings: int) -> Parts:
    asking, version = Asking(), 0
    groups, payloads, folds, looks = list[Times](), list[Times](), dict[int, list[Times]]({1: [], 2: []}), list[Times]()

    def spent(act: Callable[[], None]) -> Times:
        before = time.process_time(), seconds_of(postgres_of(server))
        act()
        found = np.zeros(len(KINDS))
        found[SHARDS], found[POSTGRES] = time.process_time() - before[0], seconds_of(postgres_of(server)) - before[1]
        return found

    def send(number: int) -> None:
        """So many shards send what they have, and one of them makes a version of that."""
        for shard in range(number):
            added = engines[shard].ask(TakeAdded())
            sessions[shard].execute(WAIT, (shard, added.told, added.catalogue, added.content), prepare=True, binary=True)
        with sessions[0].transaction():
            sessions[0].execute("SELECT pg_advisory_xact_lock(%s)", (CLOSING,))
            sessions[0].execute(CLOSE, prepare=True)
            sessions[0].execute(f"NOTIFY {CHANNEL}")

    def hear() -> None:
        for engine, session in zip(engines, sessions, strict=True):
            rows = session.execute(VERSION, (version,), prepare=True, binary=True).fetchall()
            contents: list[bytes | None] = [None] * ENGINES
            for shard, _, content in rows:
                contents[shard] = content
            engine.ask(FoldVersion(version, max(row[1] for row in rows), contents))

    def look() -> None:
        for _ in range(LOOKS):
            for shard, session in enumerate(sessions):
                session.execute(HEADS, (CATALOGUE, shard), prepare=True, binary=True).fetchone()
                session.execute(NEWER, (shard,), prepare=True, binary=True).fetchone()
                session.execute(WAITING, prepare=True).fetchone()

    def learn(length: int) -> None:
        for shard, engine in enumerate(engines):
            for batch in batches[length, shard]:
                engine.ask(batch)

    for turn in range(TURNS):
        lengths = (SLICE, SLICE // SMALLER) if turn % 4 < 2 else (SLICE // SMALLER, SLICE)  # costs grow with the log
        batches = {(length, shard): list(_batches(asking, shard, ratings // 2, length)) for length in lengths for shard in range(ENGINES)}
        learned = {length: spent(lambda length=length: learn(length)) for length in lengths}  # type: ignore[misc]
        more = sum(len(batches[lengths[0], shard]) - len(batches[lengths[1], shard]) for shard in range(ENGINES))
        for engine in engines:
            engine.ask(FollowCatalogue())
        version, number = version + 1, 1 + turn % 2
        sent = spent(lambda number=number: send(number)) / number  # type: ignore[misc]
        heard, looked = spent(hear) / ENGINES, spent(look) / (LOOKS * ENGINES)
        if turn >= WARM:
            groups.append((learned[lengths[0]] - learned[lengths[1]]) / more)
            payloads.append(sent)
            folds[number].append(heard)
            looks.append(looked)
    one, two = (np.median(folds[number], axis=0) for number in (1, 2))
    read = np.maximum(two - one, 0.0)
    group, payload, look_once = (np.median(found, axis=0) for found in (groups, payloads, looks))
    return Parts(np.maximum(group, 0.0), payload, np.maximum(one - read, 0.0), read, look_once)


def _batches(asking: Asking, shard: int, ratings: int, length: int) -> Iterator[FeedbackBatch]:
    """Ratings of users of this shard, so many at one time."""
    for _ in range(ratings // length):
        events: list[Feedback] = []
        while len(events) < length:
            rating = asking.rating()
            if shard_of(rating["user"], ENGINES) == shard:
                events.append(Feedback(**rating))
        yield FeedbackBatch(events)
