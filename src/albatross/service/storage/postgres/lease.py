"""The lease of a shard: a row with an epoch, which counts the owners. Every write names its epoch, so that a former owner fails.

The clock of the database only decides when a silent owner may be replaced. That there is never more than one writer does
not depend on it.
"""

import os
import selectors
import socket
import threading
import time

import psycopg
from psycopg.errors import LockNotAvailable

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import StorageFailed
from albatross.service.storage.postgres.session import NotNow, Session, connect, name_of, understood

SECONDS = 10.0
"""How long an owner may be silent before another may replace it."""

GRACE = 1.0
"""How long the connection of an owner that was just killed may take to end."""

KNOWN = """
SELECT epoch, owner, (EXTRACT(epoch FROM until) - EXTRACT(epoch FROM clock_timestamp()))::float FROM albatross.shards WHERE shard = %s
"""
TAKE = """
UPDATE albatross.shards SET epoch = epoch + 1, owner = %s, until = clock_timestamp() + %s * interval '1 second'
WHERE shard = %s AND epoch = %s
"""
RENEW = "UPDATE albatross.shards SET until = clock_timestamp() + %s * interval '1 second' WHERE shard = %s AND epoch = %s"
ALIVE = "SELECT pg_advisory_lock(hashtextextended(format('albatross shard %%s epoch %%s', %s::integer, %s::bigint), 0))"
"""Held by an owner's connection while it lasts: an owner whose connection has ended is replaced at once."""


class Fenced(StorageFailed):
    """Another process owns the shard now. Nothing was written."""


class Lease:
    """Ownership of a shard, renewed by its own thread until it is released or lost."""

    def __init__(self, address: str, shard: int, seconds: float | None = None) -> None:
        """Take the shard. Raises `InvalidInput` while another process has it."""
        self.where, self.shard = name_of(address), shard
        self.seconds = SECONDS if seconds is None else seconds
        self.lost: StorageFailed | None = None
        """Why nothing can be written any more; None while it can."""
        self._sure_until = 0.0
        self._session: Session = connect(address, writing=True, application_name="albatross lease")
        began = time.monotonic()
        try:
            self.epoch = self._take()
        except BaseException:
            self._session.close()
            raise
        self.renewed(began)
        self._ended, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._keep, name="albatross-lease", daemon=True)
        self._thread.start()

    def _take(self) -> int:
        session, owner = self._session, f"{socket.gethostname()}, process {os.getpid()}"
        with understood(self.where):
            known = session.execute(KNOWN, (self.shard,)).fetchone()
            if known is None:
                raise InvalidInput(f"{self.where} has no shard {self.shard}")
            epoch, holder, left = known
            if left > 0 and not self._ended_connection(epoch):
                raise NotNow(
                    f"{self.where} is in use by {holder}; accepted: one process (stop that one, or ask it over HTTP; "
                    f"if it is silent, another may replace it in {left:.0f} s)"
                )
            with session.transaction():
                if session.execute(TAKE, (owner, self.seconds, self.shard, epoch)).rowcount != 1:
                    raise NotNow(f"{self.where} is in use: another process was first; accepted: one process")
                session.execute(ALIVE, (self.shard, epoch + 1))
        return int(epoch) + 1

    def _ended_connection(self, epoch: int) -> bool:
        try:
            with self._session.transaction():
                self._session.execute("SELECT set_config('lock_timeout', %s, true)", (f"{GRACE * 1e3:.0f}ms",))
                self._session.execute(ALIVE, (self.shard, epoch))
        except LockNotAvailable:
            return False
        return True

    @property
    def is_sure(self) -> bool:
        """Whether no other process can be the owner now, as far as time tells. False after a long pause of this process."""
        return self.lost is None and time.monotonic() < self._sure_until

    def renewed(self, began: float) -> None:
        """The lease was renewed by a statement that began at this time of the monotonic clock."""
        self._sure_until = max(self._sure_until, began + self.seconds)

    def _wait(self) -> bool:
        """Wait until the lease should be renewed: after a time, or when its connection has something to say, which may be its end.

        An owner whose connection has ended may be replaced at once, and must know. Returns False after `release`.
        """
        with selectors.DefaultSelector() as ready:
            ready.register(self._ended, selectors.EVENT_READ)
            ready.register(self._session.fileno(), selectors.EVENT_READ)
            return all(key.fileobj is not self._ended for key, _ in ready.select(self.seconds / 3))

    def _keep(self) -> None:
        while True:
            try:
                if not self._wait():
                    return
                began = time.monotonic()
                renewed = self._session.execute(RENEW, (self.seconds, self.shard, self.epoch)).rowcount
            except psycopg.Error as error:
                self.lost = StorageFailed(f"the connection to {self.where} was lost ({' '.join(str(error).split())})")
                return
            if renewed == 0:
                self.lost = fenced(self.where)
                return
            self.renewed(began)

    def release(self) -> None:
        """Give the shard back, so that the next owner need not wait."""
        self._end.close()
        self._thread.join()
        self._ended.close()
        try:
            if self.lost is None:
                self._session.execute(RENEW, (0.0, self.shard, self.epoch))
        except psycopg.Error:
            pass  # it expires by itself
        finally:
            self._session.close()


def fenced(where: str) -> Fenced:
    return Fenced(f"another process has replaced this one at {where}: it was silent for too long; nothing more is accepted here")
