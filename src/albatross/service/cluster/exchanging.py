"""How shards exchange: through tables of their common database, without a coordinator.

A shard puts the additions of its users into `waiting`. Any shard that finds it is time moves all waiting ones into `payloads`, as the
next version. Every shard folds every version, in order. A shard that dies in between leaves nothing half done. A payload counts once:
it names the last version with a payload of the same shard, and is ignored if that is no longer true.
"""

import contextlib
import threading
import time
from typing import NamedTuple

import psycopg

from albatross.core.errors import InvalidInput
from albatross.core.sharing.exchange import PART_OF_AN_UPDATE, exchange_interval
from albatross.service.engine.engine import Engine
from albatross.service.engine.sharing import FoldVersion, FollowCatalogue, Known, TakeAdded, TakeBase, TakeParcels
from albatross.service.storage.postgres.bases import NEWER, make_bases
from albatross.service.storage.postgres.session import CATALOGUE, CHANNEL, MOVING, Session, connect, make_if_missing

SECONDS = 0.1
"""Seconds until a rating on one shard is known on the others, approximately."""
TICK = 0.02
"""Seconds between two checks whether enough was learned to exchange at once. A waiting payload waits no longer than this for others."""
SHARE = 5
"""After an exchange, the next early one begins this many times later than the exchange has taken: under load, requests come first."""
ECHOES = 3
"""How often a shard sends without new events: an exchange may change how it sees its old ratings."""
AGAIN_SECONDS = 0.2
"""Seconds between two attempts to reach the database."""
COMPLAINT_SECONDS = 60.0
"""Seconds between two complaints about an exchange that fails again and again."""

HEADS = """
SELECT coalesce((SELECT max(version) FROM albatross.payloads), 0), (SELECT seq FROM albatross.shards WHERE shard = %b),
EXISTS (SELECT FROM albatross.parcels WHERE shard = %b)
"""
VERSION = "SELECT shard, catalogue, content FROM albatross.payloads WHERE version = %b ORDER BY shard"
WAIT = """
INSERT INTO albatross.waiting AS known (shard, after, catalogue, content) VALUES (%b, %b, %b, %b)
ON CONFLICT (shard) DO UPDATE SET after = EXCLUDED.after, catalogue = EXCLUDED.catalogue, content = EXCLUDED.content,
at = CASE WHEN known.after = EXCLUDED.after THEN known.at ELSE EXCLUDED.at END
"""
WAITING = """
SELECT count(*), coalesce(EXTRACT(epoch FROM clock_timestamp() - min(at)), 0)::float FROM albatross.waiting AS one WHERE after =
coalesce((SELECT max(version) FROM albatross.payloads WHERE shard = one.shard), 0)
"""
CLOSE = """
WITH taken AS (
    DELETE FROM albatross.waiting AS one WHERE after =
    coalesce((SELECT max(version) FROM albatross.payloads WHERE shard = one.shard), 0) RETURNING shard, catalogue, content
)
INSERT INTO albatross.payloads SELECT (SELECT coalesce(max(version), 0) + 1 FROM albatross.payloads), taken.* FROM taken
"""
CLOSING = 7_020_241_117
"""The advisory lock for making a version."""
BASING = 7_020_241_119
"""The advisory lock for beginning from a base."""
TRY = "SELECT pg_try_advisory_lock(%s)"


class _Said(NamedTuple):
    """State at the last send: events, ratings, version, and the number of echoes in a row."""

    lessons: int
    ratings: int
    version: int
    echoes: int


class Exchanging:
    """The thread of a shard that exchanges with the others until it is closed."""

    def __init__(self, address: str, engine: Engine, seconds: float = SECONDS) -> None:
        self._address, self._engine, self._seconds = address, engine, seconds
        self._shard, self._shards = engine.genesis.shard, engine.genesis.shards
        self._said: _Said | None = None
        self._said_at = 0.0
        self._early_from = 0.0
        """When the next early exchange may begin."""
        self._open = False
        """Whether a payload waits to become part of a version."""
        self._known = Known(-1, -1)
        self._complain_from = 0.0
        """When the next complaint may be made."""
        self._failures = 0
        """Failed attempts since the last complaint."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="albatross-exchange", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._ended.is_set():
            try:
                self._exchange()
            except (psycopg.Error, InvalidInput) as error:  # without the database, try again; without the engine, `close` follows
                self._complain(error)
            self._ended.wait(AGAIN_SECONDS)

    def _complain(self, error: Exception) -> None:
        """Say why nothing was exchanged; not at every attempt."""
        self._failures += 1
        if not self._ended.is_set() and time.monotonic() >= self._complain_from:
            again = f", {self._failures} times since the last complaint" if self._failures > 1 else ""
            why = str(error).partition("\n")[0]
            self._engine.complain(f"shard {self._shard} could not exchange with the others{again}: {type(error).__name__}: {why}")
            self._complain_from, self._failures = time.monotonic() + COMPLAINT_SECONDS, 0

    def _exchange(self) -> None:
        with contextlib.closing(connect(self._address, writing=True, application_name="albatross exchange")) as session:
            make_bases(session)
            make_if_missing(session, "albatross.parcels", MOVING)
            session.execute(f"LISTEN {CHANNEL}")
            self._known, self._said = Known(-1, -1), None  # a waiting payload may be lost with the server, and is sent again
            while not self._ended.is_set():
                self._round(session)
                self._wait(session)

    def _wait(self, session: Session) -> None:
        """Wait for a new version, for something to send, or until the next check of waiting payloads is due."""
        end = time.monotonic() + (TICK if self._open else self._seconds / 2)
        while not self._ended.is_set() and (left := end - time.monotonic()) > 0:
            if any(True for _ in session.notifies(timeout=min(left, TICK), stop_after=1)) or self._urgent() or self._due():
                return

    def _due(self) -> bool:
        """Whether there is something to send, and the last send is long enough ago: shards that fold a version together send together."""
        return self._news() and time.monotonic() - self._said_at >= self._seconds - TICK

    def _news(self) -> bool:
        """Whether there are events since the last send, or a version may have changed how this shard sees its old ratings."""
        said = self._said
        if said is None or said.lessons != self._engine.lessons[0]:
            return True
        return said.version != self._known.version and said.echoes < ECHOES

    def _urgent(self) -> bool:
        """Whether this shard has its share of the ratings after which shards should exchange early, and may do so now."""
        if time.monotonic() < self._early_from:
            return False
        _, ratings, items = self._engine.lessons
        before = 0 if self._said is None else self._said.ratings
        interval = exchange_interval(before * self._shards, items // PART_OF_AN_UPDATE)
        return (ratings - before) * self._shards >= interval and ratings > before

    def _round(self, session: Session) -> None:
        began, known = time.monotonic(), self._known.version
        urgent = self._urgent()
        self._hear(session)
        self._begin(session)
        if self._news() and (urgent or self._due()):
            self._say(session)
        count, age = session.execute(WAITING, prepare=True).fetchone() or (0, 0.0)
        self._open = bool(count)
        if count == self._shards or (count and age >= TICK):
            with session.transaction():
                session.execute("SELECT pg_advisory_xact_lock(%s)", (CLOSING,))
                session.execute(CLOSE, prepare=True)
                session.execute(f"NOTIFY {CHANNEL}")
            self._open = False
            self._hear(session)
        if self._known.version > known:
            ended = time.monotonic()
            self._early_from = ended + min(SHARE * (ended - began), self._seconds)

    def _hear(self, session: Session) -> None:
        """Fold the new versions, copy the catalogue, and take what other shards have sent."""
        heads = session.execute(HEADS, (CATALOGUE, self._shard), prepare=True, binary=True).fetchone()
        version, catalogue, parcels = heads or (0, 0, False)
        if catalogue > self._known.catalogue:
            self._known = self._engine.ask(FollowCatalogue())
        if parcels:
            self._known = self._engine.ask(TakeParcels())
        while self._known.version < version:
            number = self._known.version + 1
            rows = session.execute(VERSION, (number,), prepare=True, binary=True).fetchall()
            contents: list[bytes | None] = [None] * self._shards
            for shard, _, content in rows:
                contents[shard] = content
            self._known = self._engine.ask(FoldVersion(number, max(row[1] for row in rows), contents))

    def _begin(self, session: Session) -> None:
        """Begin the log from a new base, if there is one: one shard after the other, so that the others serve."""
        newest, version = session.execute(NEWER, (self._shard,), prepare=True, binary=True).fetchone() or (0, 0)
        if version < newest <= self._known.version and session.execute(TRY, (BASING,)).fetchone() == (True,):
            try:
                self._known = self._engine.ask(TakeBase(newest))
            finally:
                session.execute("SELECT pg_advisory_unlock(%s)", (BASING,))

    def _say(self, session: Session) -> None:
        """Send the additions of this shard's users, if there are any."""
        lessons, said = self._engine.lessons[0], self._said
        added = self._engine.ask(TakeAdded())
        self._said_at = time.monotonic()
        echo = said is not None and said.lessons == lessons
        if added.moved or said is None or said.ratings != added.ratings:
            session.execute(WAIT, (self._shard, added.told, added.catalogue, added.content), prepare=True, binary=True)
        self._said = _Said(lessons, added.ratings, self._known.version, said.echoes + 1 if echo and said is not None else 0)
