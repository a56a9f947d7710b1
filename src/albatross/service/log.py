"""The log: every event in one total order, each row checked by itself and chained to the row before.

A row holds `digest`, the hash of its body, and `chain`, the hash of the chain before it and its digest. The body of an erased row
is gone, but its digest stays, so the chain still holds. `Store` is all the engine needs: another database could serve.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from albatross.core.errors import InvalidInput
from albatross.service.messages import DiskFull, StorageFailed
from albatross.service.wal import check_journal

try:
    import fcntl
except ImportError:  # not every system has it: SQLite's exclusive lock remains
    fcntl = None  # type: ignore[assignment]

LOG = "log.sqlite"
LOCK = "lock"

NO_CHAIN = bytes(16)
"""What the first row is chained to."""

CHUNK = 10_000
"""Rows read at a time."""

UNREADABLE = (sqlite3.Error, UnicodeDecodeError, TypeError)
"""What damage looks like: to SQLite, to Python's reading of SQLite's complaint, and where a value is of another type than was written."""

FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
"""There is no room, or the file may not grow: the transaction is undone as if it had never been, and reading goes on."""

SCHEMA = """
CREATE TABLE log (seq INTEGER PRIMARY KEY, body BLOB, digest BLOB NOT NULL, chain BLOB NOT NULL) STRICT;
CREATE TABLE keys (key BLOB PRIMARY KEY, seq INTEGER NOT NULL, content BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""


class DamagedLog(InvalidInput):
    """The log cannot be what was written. Nothing is served from it."""


class Head(NamedTuple):
    """The last row."""

    seq: int
    chain: bytes


class Row(NamedTuple):
    """A row to be written. With a key, the row can be found by it; `content` is what another delivery must agree with."""

    body: bytes
    key: bytes | None = None
    content: bytes = b""


class Found(NamedTuple):
    seq: int
    content: bytes


class Store(Protocol):
    """A durable log. Used by one thread."""

    @property
    def head(self) -> Head: ...
    def append(self, rows: Sequence[Row]) -> None:
        """Write rows behind the head, all or none. When this returns they are durable."""

    def find(self, key: bytes) -> Found | None:
        """The row with this key."""

    def body(self, seq: int) -> bytes | None:
        """The body of a row; none where there is no such row, or it was erased."""

    def read(self, checked: bool = True) -> Iterator[tuple[int, list[bytes | None]]]:
        """All rows in chunks, each with the number of its first. Raises `DamagedLog` at the first that does not fit."""

    def chain_at(self, seq: int) -> bytes | None: ...
    def key_rows(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Key, row and content, in the order of the rows."""

    def erase(self, seqs: Sequence[int], tombstone: Row) -> None:
        """Remove the bodies of rows and append the tombstone, all or nothing."""

    def flush(self) -> None:
        """Make durable what was appended with relaxed durability."""

    def close(self) -> None: ...


def digest_of(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def link(chain: bytes, digest: bytes) -> bytes:
    return hashlib.blake2b(chain + digest, digest_size=16).digest()


class FolderLock:
    """Keeps every other process off a folder, until it is released or the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = (folder / LOCK).open("a+")
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            whom = f"process {holder}" if holder else "another process"
            raise InvalidInput(
                f"{folder} is in use by {whom}; accepted: one process per folder (stop that one, or ask it over HTTP)"
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()


class SQLiteLog:
    """The log in one SQLite file, in WAL mode. With `durable`, a commit is on disk when it returns."""

    def __init__(self, folder: Path, durable: bool = True) -> None:
        self.path = folder / LOG
        if durable:  # otherwise commits are not synchronised one by one, and a gap among the last may be a power failure
            check_journal(self.path)
        new = not self.path.exists()
        self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=1.0)
        try:
            for pragma in (
                "locking_mode = EXCLUSIVE",
                "journal_mode = WAL",
                f"synchronous = {'FULL' if durable else 'NORMAL'}",
                "fullfsync = ON",
                "secure_delete = ON",
                "trusted_schema = OFF",
            ):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            if new:
                self._connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
                sync_folder(folder)
            last = self._connection.execute("SELECT seq, chain FROM log ORDER BY seq DESC LIMIT 1").fetchone()
            self._head = Head(*last) if last is not None else Head(0, NO_CHAIN)
            if not isinstance(self._head.chain, bytes):
                raise TypeError(f"the chain of event {self._head.seq} is gone")
        except UNREADABLE as error:
            self._connection.close()
            raise _refusal(self.path, error) from error

    @property
    def head(self) -> Head:
        return self._head

    def append(self, rows: Sequence[Row]) -> None:
        self._commit(rows, ())

    def erase(self, seqs: Sequence[int], tombstone: Row) -> None:
        self._commit([tombstone], [(seq,) for seq in seqs])
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # the old pages leave the journal, too

    def _commit(self, rows: Sequence[Row], erased: Iterable[tuple[int]]) -> None:
        seq, chain = self._head
        written, keys = [], []
        for row in rows:
            seq += 1
            digest = digest_of(row.body)
            chain = link(chain, digest)
            written.append((seq, row.body, digest, chain))
            if row.key is not None:
                keys.append((row.key, seq, row.content))
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", written)
            connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", keys)
            connection.executemany("UPDATE log SET body = NULL WHERE seq = ?", erased)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            if getattr(error, "sqlite_errorname", "") in FULL:
                raise DiskFull(f"there is no room for {self.path} to grow ({error}); nothing of this was kept") from error
            raise StorageFailed(f"{self.path} could not be written ({error}); nothing more is accepted until a restart") from error
        self._head = Head(seq, chain)

    def _undo(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StorageFailed(f"{self.path} could not be written, nor the writing be undone ({error})") from error

    def find(self, key: bytes) -> Found | None:
        found = self._connection.execute("SELECT seq, content FROM keys WHERE key = ?", (key,)).fetchone()
        return Found(*found) if found is not None else None

    def body(self, seq: int) -> bytes | None:
        try:
            body, digest = self._connection.execute("SELECT body, digest FROM log WHERE seq = ?", (seq,)).fetchone() or (None, b"")
            sound = body is None or digest_of(body) == digest
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: {error}") from error
        if not sound:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: its content does not have the digest that was kept with it")
        return body

    def chain_at(self, seq: int) -> bytes | None:
        if seq == 0:
            return NO_CHAIN
        try:
            found = self._connection.execute("SELECT chain FROM log WHERE seq = ?", (seq,)).fetchone()
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: {error}") from error
        return found[0] if found is not None and isinstance(found[0], bytes) else None

    def key_rows(self) -> Iterator[tuple[bytes, int, bytes]]:
        cursor = self._connection.execute("SELECT key, seq, content FROM keys ORDER BY seq")
        try:
            while rows := cursor.fetchmany(CHUNK):
                yield from rows
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path} is damaged in its table of ids: {error}") from error

    def read(self, checked: bool = True) -> Iterator[tuple[int, list[bytes | None]]]:
        chain, before = NO_CHAIN, 0
        cursor = None
        while True:
            try:
                if cursor is None:
                    cursor = self._connection.execute("SELECT seq, body, digest, chain FROM log ORDER BY seq")
                rows = cursor.fetchmany(CHUNK)
            except UNREADABLE as error:
                raise DamagedLog(f"{self.path} is damaged behind event {before}: {error}") from error
            if not rows:
                break
            if rows[0][0] != before + 1 or rows[-1][0] != before + len(rows):
                missing = next(expected for expected, row in enumerate(rows, start=before + 1) if row[0] != expected)
                raise DamagedLog(f"{self.path} is damaged at event {missing}: it is missing")
            if checked:
                chain = self._check(chain, rows)
            yield before + 1, [row[1] for row in rows]
            before += len(rows)
        if before != self._head.seq:
            raise DamagedLog(f"{self.path} is damaged behind event {before}: {self._head.seq} events were expected")

    def _check(self, chain: bytes, rows: list[tuple[int, bytes | None, bytes, bytes]]) -> bytes:
        blake2b = hashlib.blake2b
        seq = 0
        try:
            for seq, body, digest, kept in rows:
                if body is not None and blake2b(body, digest_size=16).digest() != digest:
                    raise DamagedLog(f"{self.path} is damaged at event {seq}: its content does not have the digest that was kept with it")
                chain = blake2b(chain + digest, digest_size=16).digest()
                if chain != kept:
                    raise DamagedLog(f"{self.path} is damaged at event {seq}: it is not chained to the event before")
        except TypeError as error:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: {error}") from error
        return chain

    def flush(self) -> None:
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            raise StorageFailed(f"{self.path} could not be written ({error})") from error

    def close(self) -> None:
        self._connection.close()


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refusal(path: Path, error: BaseException) -> InvalidInput:
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return InvalidInput(f"{path} is in use by another process; accepted: one process per folder")
    return DamagedLog(f"{path} is damaged or is not a log of albatross: {error}")
