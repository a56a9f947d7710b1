"""The log of one shard in PostgreSQL: rows, handles and head change in one transaction, and only for the owner of the lease."""

import itertools
import time
from collections.abc import Callable, Sequence

import psycopg
from psycopg.errors import DiskFull as NoRoom

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import DiskFull, StorageFailed
from albatross.service.storage.mark import Head
from albatross.service.storage.postgres.lease import Lease, fenced
from albatross.service.storage.postgres.log_reader import PostgresReader
from albatross.service.storage.postgres.session import Session, connect, name_of, understood
from albatross.service.storage.postgres.wire import DUMPERS, Kept, bytes_of, copied_handles, copied_rows, numbers_of
from albatross.service.storage.store import Found, HandleTaken, Row, Written, chained

RECENT = 10_000
"""Number of last bodies kept in memory: most decisions are rated soon, and a query to the server takes long."""
COPIED_FROM = 1_000
"""From this number of rows on, COPY is quicker than one statement, though it takes several round trips to the server."""
BEAT = 1.0
"""Seconds after which the writer should check the lease, if there is nothing to write."""

APPEND = """
WITH owned AS (
    UPDATE albatross.shards SET seq = %b, chain = %b, until = clock_timestamp() + %b * interval '1 second'
    WHERE shard = %b AND epoch = %b AND seq = %b
    AND NOT EXISTS (SELECT FROM albatross.handles WHERE shard = %b AND handle = ANY(%b::bytea[])) RETURNING shard
), rows AS (
    INSERT INTO albatross.log SELECT owned.shard, line.* FROM owned, unnest(%b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[]) AS line
), found AS (
    INSERT INTO albatross.handles SELECT owned.shard, line.* FROM owned, unnest(%b::bytea[], %b::bigint[], %b::bytea[]) AS line
)
SELECT count(*) FROM owned
"""
"""One round trip to the server, and its own transaction. Nothing is written for a former owner, nor if a handle is taken."""
OWN = """
UPDATE albatross.shards SET seq = %s, chain = %s, until = clock_timestamp() + %s * interval '1 second'
WHERE shard = %s AND epoch = %s AND seq = %s
"""


class PostgresLog(PostgresReader):
    """The log of a shard, open for writing by the owner of its lease. With `durable`, a commit is on the server's disk when it returns."""

    refuses_taken = True

    def __init__(self, address: str, shard: int = 0, durable: bool = True) -> None:
        self.where, self.shard, self.durable = name_of(address), shard, durable
        self.beat = BEAT
        self._flushed = 0
        self._recent: dict[int, bytes] = {}
        self._sought: set[bytes] = set()
        """Handles that were looked for since the last append, and not found: it need not look for them again."""
        self.lease = Lease(address, shard)
        try:
            self._session = connect(address, writing=True, application_name="albatross log")
            try:
                self._settle()
                self._head = self._checked_head()
            except BaseException:
                self._session.close()
                raise
        except BaseException:
            self.lease.release()
            raise

    def _settle(self) -> None:
        """Make sure that a commit is as durable as promised."""
        for kind, dumper in DUMPERS:
            self._session.adapters.register_dumper(kind, dumper)
        with understood(self.where):
            kept = self._session.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')").fetchone()
            if self.durable and kept is not None and kept[0] != "on":
                raise InvalidInput(f"{self.where} has fsync = {kept[0]}, so a commit is not on disk; accepted: on, or durability relaxed")
            if not self.durable:
                self._session.execute("SET synchronous_commit = off")
            elif kept is not None and kept[1] not in ("on", "remote_apply"):
                self._session.execute("SET synchronous_commit = on")

    def append(self, rows: Sequence[Row], first: Callable[[], None] | None = None) -> None:
        """`first` is called in the same transaction, before anything is written: an error in it undoes everything."""
        written = chained(self._head, rows)
        handles = [(handle, line[0], content) for row, line in zip(rows, written, strict=True) for handle, content in row.handles]
        head = Head(written[-1][0], written[-1][3])
        self._check_lease()
        began = time.monotonic()
        with self._committing():
            if first is not None or len(rows) >= COPIED_FROM:
                with self._session.transaction():
                    if first is not None:
                        first()
                    self._own(head)
                    self._check_taken([handle for handle, _, _ in handles if handle not in self._sought])
                    copy_rows(self._session, self.shard, written, handles)
            else:
                seqs, *others = zip(*written, strict=True)
                names, numbers, contents = zip(*handles, strict=True) if handles else ((), (), ())
                unsought = [name for name in names if name not in self._sought]
                columns = (numbers_of(seqs), *map(bytes_of, others), bytes_of(names), numbers_of(numbers), bytes_of(contents))
                owned = (self.shard, self.lease.epoch, self._head.seq, self.shard, bytes_of(unsought))
                parameters = (*head, self.lease.seconds, *owned, *columns)
                if self._session.execute(APPEND, parameters, prepare=True, binary=True).fetchone() != (1,):
                    self._check_taken(unsought)
                    raise fenced(self.where)
        self.lease.renewed(began)
        self._head = head
        self._sought.clear()
        self._recent.update((line[0], row.body) for row, line in zip(rows, written, strict=True) if row.body is not None)
        for seq in list(itertools.islice(self._recent, max(0, len(self._recent) - RECENT))):  # the oldest come first
            del self._recent[seq]

    def _check_taken(self, handles: Sequence[bytes]) -> None:
        if taken := super().find_all(handles):
            raise HandleTaken(f"{len(taken)} of {len(handles)}")

    def find_all(self, handles: Sequence[bytes]) -> dict[bytes, Found]:
        if len(self._sought) > RECENT:  # requests that write nothing
            self._sought.clear()
        found = super().find_all(handles)
        self._sought.update(handle for handle in handles if handle not in found)
        return found

    def body(self, seq: int) -> bytes | None:
        return self._recent.get(seq) or super().body(seq)

    def erase(
        self,
        rows: Sequence[tuple[int, Sequence[bytes]]],
        tombstone: Row,
        private: bool = True,
        first: Callable[[], None] | None = None,
    ) -> None:
        written = chained(self._head, [tombstone])
        head = Head(written[-1][0], written[-1][3])
        # The first handle is that of an id, which must be recognised for ever; the others describe the event.
        emptied = [handle for _, handles in rows for handle in handles[:1]]
        gone = [handle for _, handles in rows for handle in handles[1:]]
        self._check_lease()
        with self._committing(), self._session.transaction():
            if first is not None:
                first()
            self._own(head)
            copy_rows(self._session, self.shard, written, [(handle, written[0][0], content) for handle, content in tombstone.handles])
            for statement, named in (
                ("UPDATE albatross.log SET body = NULL WHERE shard = %s AND seq = ANY(%s)", [seq for seq, _ in rows]),
                ("UPDATE albatross.handles SET content = '' WHERE shard = %s AND handle = ANY(%s)", emptied),
                ("DELETE FROM albatross.handles WHERE shard = %s AND handle = ANY(%s)", gone),
            ):
                self._session.execute(statement, (self.shard, named))
        self._head = head
        self._recent.clear()
        if not private:
            return
        with self._committing():
            self._session.execute("VACUUM albatross.log, albatross.handles")  # what was erased leaves the tables' pages

    def _own(self, head: Head) -> None:
        """In a transaction: move the head, which only the owner can do."""
        parameters = (*head, self.lease.seconds, self.shard, self.lease.epoch, self._head.seq)
        if self._session.execute(OWN, parameters).rowcount != 1:
            raise fenced(self.where)

    def _committing(self) -> "_Committing":
        return _Committing(self.where)

    def _check_lease(self) -> None:
        if self.lease.lost is not None:
            raise self.lease.lost

    def keep(self) -> None:
        """Notice a lost lease or connection without a write; and make relaxed commits durable."""
        self._check_lease()
        if self._head.seq > self._flushed:
            self.flush()

    def flush(self) -> None:
        """A commit that waits for the disk makes all earlier ones durable too."""
        if self.durable:  # each did
            return
        with self._committing(), self._session.transaction():
            self._session.execute("SET LOCAL synchronous_commit = on")
            self._own(self._head)
        self._flushed = self._head.seq

    def size(self) -> int | None:
        with understood(self.where):
            found = self._session.execute(
                "SELECT pg_total_relation_size('albatross.log') + pg_total_relation_size('albatross.handles')"
            ).fetchone()
        return None if found is None else int(found[0])

    def close(self) -> None:
        self._session.close()
        self.lease.release()


class _Committing:
    """Errors of PostgreSQL in a write: no space, and nothing was kept; or the outcome is unknown, and nothing more is accepted."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, NoRoom):
            raise DiskFull(f"there is no room for {self._where} to grow; nothing of this was kept") from error
        if isinstance(error, psycopg.Error):
            told = " ".join((error.diag.message_primary or str(error)).split())
            raise StorageFailed(
                f"{self._where} could not be written ({told}), or the outcome is unknown; nothing more is accepted until a restart"
            ) from error


def copy_rows(session: Session, shard: int, rows: Sequence[Written], handles: Sequence[Kept]) -> None:
    """In a transaction: import rows of a log, and their handles."""
    with session.cursor() as cursor:
        for table, content in (("log", copied_rows(shard, rows)), ("handles", copied_handles(shard, handles))):
            with cursor.copy(f"COPY albatross.{table} FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(content)
