"""The processes of a cluster: each has a row in the database, which it renews while it runs."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from albatross.core.errors import InvalidInput
from albatross.service.storage.postgres.session import BIRTH, Session, connect, name_of, understood

SECONDS = 1.0
"""Seconds between two heartbeats."""
SILENT = 5.0
"""A process without a heartbeat for this many seconds counts as dead."""

TABLE = """
CREATE TABLE IF NOT EXISTS albatross.processes (
    kind text, node text, pid integer, url text NOT NULL, until timestamptz NOT NULL, told text NOT NULL DEFAULT '',
    PRIMARY KEY (kind, node, pid)
)
"""
RENEW = """
INSERT INTO albatross.processes AS known VALUES (%(kind)s, %(node)s, %(pid)s, %(url)s, clock_timestamp() + %(silent)s * interval '1 second')
ON CONFLICT (kind, node, pid) DO UPDATE SET until = EXCLUDED.until, told = CASE WHEN known.told = %(done)s THEN '' ELSE known.told END
RETURNING told
"""


class Process(NamedTuple):
    kind: str
    node: str
    pid: int
    url: str


class NotAlone(InvalidInput):
    """Another process of this kind is present, and there may be one only."""

    def __init__(self, message: str, until: object) -> None:
        """`until`: when it counts as dead if it is silent."""
        super().__init__(message)
        self.until = until


class Presence:
    """Keeps the row of this process until `end`. `on_told` is called once for each message to it."""

    def __init__(self, address: str, kind: str, url: str, on_told: Callable[[str], None], alone: bool = False) -> None:
        """`alone`: raise `NotAlone` if there is another process of this kind."""
        self._address, self._on_told = address, on_told
        self._named = {"kind": kind, "node": socket.gethostname(), "pid": os.getpid(), "url": url, "silent": SILENT}
        self._done = ""
        """The message that was obeyed and is to be removed."""
        self._ended = threading.Event()
        with contextlib.closing(connect(address, writing=True)) as session, understood(name_of(address)), session.transaction():
            session.execute("SELECT pg_advisory_xact_lock(%s)", (BIRTH,))
            session.execute(TABLE)
            session.execute("DELETE FROM albatross.processes WHERE until < clock_timestamp()")
            if alone:
                self._check_alone(session)
            session.execute(RENEW, {**self._named, "done": ""})
        self._thread = threading.Thread(target=self._live, name="albatross-presence", daemon=True)
        self._thread.start()

    def _check_alone(self, session: Session) -> None:
        other = session.execute("SELECT pid, node, until FROM albatross.processes WHERE kind = %(kind)s", self._named).fetchone()
        if other is not None:
            raise NotAlone(
                f"a cluster runs at {name_of(self._address)} already, by process {other[0]} on {other[1]}; "
                "accepted: one (albatross cluster stop ends it)",
                other[2],
            )

    def _live(self) -> None:
        session: Session | None = None
        last = ""
        while not self._ended.wait(SECONDS):
            done = self._done
            try:
                session = session or connect(self._address, writing=True, application_name="albatross presence")
                told = session.execute(RENEW, {**self._named, "done": done}).fetchone()
            except (InvalidInput, psycopg.Error):  # the next round connects again
                if session is not None:
                    session.close()
                session = None
                continue
            word = "" if told is None else str(told[0])
            if word not in ("", last):
                self._on_told(word)
            last = word
            if done:
                self._done = ""
        with contextlib.suppress(InvalidInput, psycopg.Error):
            session = session or connect(self._address, writing=True)
            session.execute("DELETE FROM albatross.processes WHERE kind = %(kind)s AND node = %(node)s AND pid = %(pid)s", self._named)
        if session is not None:
            session.close()

    def obeyed(self, word: str) -> None:
        """Remove a message, with the next heartbeat: it may be sent again."""
        self._done = word

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def present(session: Session) -> list[Process]:
    """The processes with a recent heartbeat."""
    if session.execute("SELECT to_regclass('albatross.processes') IS NULL").fetchone() == (True,):
        return []
    rows = session.execute("SELECT kind, node, pid, url FROM albatross.processes WHERE until > clock_timestamp() ORDER BY 1, 2, 3")
    return [Process(*row) for row in rows.fetchall()]


def told(session: Session, kind: str) -> list[str]:
    """The last message to each process of a kind."""
    rows = session.execute("SELECT told FROM albatross.processes WHERE kind = %s AND until > clock_timestamp()", (kind,)).fetchall()
    return [row[0] for row in rows]


FRONT, SUPERVISOR = "front", "supervisor"
STOP, RESTART = "stop", "restart"
"""Messages to processes."""


def tell(session: Session, word: str, to: str | Process | None = None) -> int:
    """Send a message to processes of a cluster: all, those of a kind, or one. Returns how many there are."""
    if not present(session):
        return 0
    kind, node, pid = (to.kind, to.node, to.pid) if isinstance(to, Process) else (to, None, None)
    told = session.execute(
        """UPDATE albatross.processes SET told = %s
        WHERE until > clock_timestamp() AND kind = coalesce(%s, kind) AND node = coalesce(%s, node) AND pid = coalesce(%s, pid)""",
        (word, kind, node, pid),
    )
    return told.rowcount
