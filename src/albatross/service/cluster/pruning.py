"""Pruning: all payloads of the versions so far become one per shard, and every shard then begins from it."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.service.cluster.exchanging import Exchanging
from albatross.service.cluster.processes import present
from albatross.service.cluster.running import homes_of
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.options import Options
from albatross.service.engine.learned.shared import Content, Contents
from albatross.service.storage.events import Genesis
from albatross.service.storage.postgres.bases import (
    BEHIND,
    make_bases,
    payload_bytes,
    payloads_between,
    read_base,
    remove_payloads,
    write_base,
)
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.storage.postgres.session import NotNow, Session, connect, understood
from albatross.service.storage.reading import read_genesis
from albatross.service.storage.store import Base

PRUNING = 7_020_241_118
"""The advisory lock for removing payloads."""
AGAIN_SECONDS = 0.2
"""Seconds between two checks of how far the shards are."""


class Pruned(NamedTuple):
    version: int
    """Versions up to this one were merged."""
    payloads: int
    """Number of payloads removed."""
    before: int
    after: int
    """Bytes of payloads on disk."""


def prune(address: str, snapshots: str | Path | None, wait: Callable[[float], object]) -> Pruned:
    """Merge all versions into a base, let every shard begin from it, and remove their payloads. Continues where it was stopped.

    Running shards do it themselves, one after the other, while the others serve. Shards that do not run are opened here.
    """
    homes = homes_of(address, snapshots)
    if len(homes) == 1:
        raise InvalidInput(f"{homes[0]} has one shard, which exchanges nothing; accepted: a cluster of several shards")
    with homes[0].reading() as log:
        genesis = read_genesis(log, str(homes[0]))
    with contextlib.closing(connect(address, writing=True, application_name="albatross prune")) as session, understood(str(homes[0])):
        if session.execute("SELECT pg_try_advisory_lock(%s)", (PRUNING,)).fetchone() != (True,):
            raise InvalidInput(f"payloads of {homes[0]} are being pruned by another process; accepted: one at a time")
        make_bases(session)
        before, version = payload_bytes(session), _begin(session, genesis, str(homes[0]))
        while behind := [row[0] for row in session.execute(BEHIND, (version,)).fetchall()]:
            if not present(session):  # else a shard that is away is being started again
                with contextlib.suppress(NotNow):  # it runs, and does it by itself
                    _follow(homes[behind[0]], session, version, wait)
            wait(AGAIN_SECONDS)
        return Pruned(version, remove_payloads(session, version), before, payload_bytes(session))


def _begin(session: Session, genesis: Genesis, where: str) -> int:
    """The version of the base to begin from: one that not all shards have yet, or a new one of all that there is."""
    (known,) = session.execute("SELECT coalesce(max(version), 0) FROM albatross.bases").fetchone() or (0,)
    (last,) = session.execute("SELECT coalesce(max(version), 0) FROM albatross.payloads").fetchone() or (0,)
    if last == known or session.execute(BEHIND, (known,)).fetchone() is not None:
        return int(known)
    base = _gathered(session, genesis, read_base(session, known, where) if known else None, last)
    with session.transaction():
        write_base(session, base)
    return int(last)


def _gathered(session: Session, genesis: Genesis, before: Base | None, last: int) -> Base:
    agent = Model(genesis).agent
    told = [0] * genesis.shards if before is None else list(before.told)
    gathered: list[Contents | None] = [None] * genesis.shards
    first = [] if before is None else [(0, shard, content) for shard, content in enumerate(before.contents) if content is not None]
    for part in (first, payloads_between(session, 0 if before is None else before.version, last)):
        for version, shard, content in part:
            contents = gathered[shard] = gathered[shard] or Contents(agent)
            contents.add(Content.from_bytes(content))
            told[shard] = max(told[shard], version)
    return Base(last, told, [None if contents is None else contents.content().to_bytes() for contents in gathered])


def _follow(home: PostgresHome, session: Session, version: int, wait: Callable[[float], object]) -> None:
    """Open a shard that does not run, and let it begin from the base."""
    with Engine(home, Options()) as engine:
        engine.wait_ready()
        with contextlib.closing(Exchanging(home.address, engine)):
            while home.shard in [row[0] for row in session.execute(BEHIND, (version,)).fetchall()]:
                wait(AGAIN_SECONDS)
                engine.wait_ready()  # raises if it cannot continue
