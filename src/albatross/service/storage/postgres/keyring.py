"""The keys of a service whose log is in PostgreSQL: in the same database, so that every process that serves it has them."""

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from albatross.core.errors import InvalidInput
from albatross.service.storage.postgres.session import BIRTH, KEYS, Session, connect, name_of, understood

LOOK_SECONDS = 0.5
"""Seconds between two reads of the revision: a revoked key may still work for this long."""
STALE_SECONDS = 60.0
"""Maximum age of the last read: after that, every request is refused."""


class PostgresKeyring:
    """One row of a table. A thread watches it for changes, so that no request waits for the database."""

    def __init__(self, address: str) -> None:
        self.address, self.name = address, name_of(address)
        self.lost = False
        """Always false: the row is made with the first key, and only the owner of the database can remove it."""
        self._watching = threading.Lock()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._looked = 0.0
        self._revision: int | None = None

    def stamp(self) -> Hashable | None:
        with self._watching:
            if self._watcher is None:
                self._look(None)
                self._watcher = threading.Thread(target=self._watch, name="albatross-keys", daemon=True)
                self._watcher.start()
        if time.monotonic() - self._looked > STALE_SECONDS:
            raise OSError(f"{self.name} does not answer")
        return self._revision

    def _watch(self) -> None:
        session: Session | None = None
        while not self._ended.wait(LOOK_SECONDS):
            try:
                session = session or connect(self.address, application_name="albatross keys")
                self._look(session)
            except (InvalidInput, OSError):  # the age of the last read shows it
                if session is not None:
                    session.close()
                session = None
        if session is not None:
            session.close()

    def _look(self, session: Session | None) -> None:
        began = time.monotonic()
        found = self._row("SELECT revision FROM albatross.keys", session)
        self._revision = None if found is None else int(found)
        self._looked = began

    def close(self) -> None:
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()

    def read(self) -> bytes | None:
        found = self._row("SELECT document FROM albatross.keys", None)
        return None if found is None else bytes(found)

    def _row(self, question: str, session: Session | None) -> Any:
        """The only value of the only row."""
        with contextlib.ExitStack() as stack:
            if session is None:
                session = stack.enter_context(contextlib.closing(connect(self.address, application_name="albatross keys")))
            try:
                row = session.execute(question).fetchone()
            except psycopg.errors.UndefinedTable:
                return None
            except psycopg.Error as error:
                raise OSError(0, " ".join(str(error).split())) from error
        return None if row is None else row[0]

    @contextmanager
    def changing(self) -> Iterator[Callable[[bytes], None]]:
        with (
            contextlib.closing(connect(self.address, writing=True, application_name="albatross keys")) as session,
            understood(self.name),
            session.transaction(),
        ):
            session.execute("SELECT pg_advisory_xact_lock(%s)", (BIRTH,))
            for statement in KEYS:
                session.execute(statement)

            def write(document: bytes) -> None:
                changed = session.execute("UPDATE albatross.keys SET revision = revision + 1, document = %s", (document,))
                if changed.rowcount == 0:
                    session.execute("INSERT INTO albatross.keys VALUES (1, %s)", (document,))

            yield write
