"""The log in one SQLite file, in WAL mode, for writing: there is one writer, and readers do not wait for it."""

import contextlib
import functools
import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from albatross.core.errors import InvalidInput
from albatross.core.files import sync_folder, synchronise
from albatross.service.api.errors import DiskFull, StorageFailed
from albatross.service.storage.events import FORMAT
from albatross.service.storage.folder import LOG
from albatross.service.storage.mark import NO_SPACE, Head, Mark, read_marked, write_mark
from albatross.service.storage.sqlite.log_reader import UNREADABLE, LogReader, connect, naming_journal, refusal
from albatross.service.storage.sqlite.tail import Tail, encode_tail, first_missing_rows, missing_rows
from albatross.service.storage.store import NO_CHAIN, HandleTaken, Row, Written, chained

ROWS_AT_ONCE = (64, 16, 4, 1)
"""Rows per INSERT statement. There are few sizes, so that SQLite can reuse prepared statements."""
PAGE = 2048
"""Bytes of a page of a new log. Each handle changes a page of its own, and each changed page is written twice. Half of SQLite's default of
4096 takes little more than half of the processor time of a commit. A quarter takes longer, because there are more pages.
A row adds about one page to the journal at least."""
FLUSH_SECONDS = 0.5
"""Seconds between two synchronisations with relaxed durability. With their own duration, a power failure costs a second at most."""
JOURNAL_BYTES = 1 << 22
"""From this size on, the journal is copied into the main file (checkpoint)."""

COPIED_AT_ONCE = 1 << 20
"""Bytes of the journal that a start writes once more in one call."""
FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
"""The disk is full, or the file may not grow: the transaction is rolled back, and reads still work."""

SCHEMA = f"""
PRAGMA page_size = {PAGE};
CREATE TABLE log (seq INTEGER PRIMARY KEY, body BLOB, digest BLOB NOT NULL, chain BLOB NOT NULL) STRICT;
CREATE TABLE handles (handle BLOB PRIMARY KEY, seq INTEGER NOT NULL, content BLOB NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA user_version = {FORMAT};
"""


class SQLiteLog(LogReader):
    """The log of a folder, open for writing. With `durable`, a commit is on disk and marked when it returns.

    With `lossy`, a log is accepted that has lost more than the mark can restore.
    """

    refuses_taken = True

    def __init__(self, folder: Path, durable: bool = True, lossy: bool = False) -> None:
        self.path = folder / LOG
        self.durable = durable
        self.beat = None if durable else FLUSH_SECONDS
        self._flushed = 0
        self._journal_name = str(self.path) + "-wal"
        self._failed = False
        """Whether something could not be written or synchronised. Then the mark stays as it is."""
        self._unsettled = 0
        """About how many bytes are in the journal and not yet in the main file."""
        self._erasing = True
        """Whether erased rows may still be in the journal. True at first, because an earlier process may have erased some."""
        # Check before any write: a refused folder stays as it is, including its journal.
        with naming_journal(self.path), contextlib.closing(LogReader(self.path)) as found:
            mark = read_marked(folder)
            missing = first_missing_rows(mark, found) if lossy else missing_rows(str(folder), mark, found)
        with contextlib.ExitStack() as opened:
            self._open(folder, missing, opened)
            self._opened = opened.pop_all()

    def _open(self, folder: Path, missing: Tail, opened: contextlib.ExitStack) -> None:
        self._connection = connect(self.path)
        opened.callback(self._connection.close)
        try:
            for pragma in (
                "journal_mode = WAL",
                "synchronous = NORMAL",  # it synchronises what a checkpoint needs; `_commit` does the rest
                "fullfsync = ON",
                "wal_autocheckpoint = 0",  # a commit does not report a failed checkpoint; `_checkpoint` does
                "secure_delete = ON",
                "trusted_schema = OFF",
            ):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            if self._connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                raise InvalidInput(f"{folder} is on a file system on which SQLite cannot keep a journal; accepted: a local disk")
            self._restore(missing)
            self._head = self._last()
            # Once for all commits, which then need no free descriptor. SQLite has made the journal and keeps it while it is connected.
            self._journal = Path(self._journal_name).open("rb+", buffering=0)  # noqa: SIM115 - closed with the log
            opened.callback(self._journal.close)
            self._mark = Mark(folder)
            opened.callback(self._mark.close)
            # An earlier process may have left entries. If it failed to synchronise the journal, no one knows what is on disk of that, so
            # they are needed until all of it is written once more. The checkpoint does not reach what a reader still uses.
            self._write_again()
            self._checkpoint()
            self.flush(wipe=True)
        except UNREADABLE as error:
            if getattr(error, "sqlite_errorname", "") in FULL:
                raise DiskFull(f"there is no room for {self.path} to grow ({error}), and the mark has rows that it lacks") from error
            raise refusal(self.path, error) from error
        except OSError as error:
            raise self._failure(error) from error

    def _write_again(self) -> None:
        """Write the journal as it is, in place: after a failed synchronisation, the system may call clean what never reached the disk."""
        try:
            journal, at = self._journal, 0
            while content := journal.read(COPIED_AT_ONCE):
                journal.seek(at)
                at += journal.write(content)
                journal.seek(at)
            synchronise(journal.fileno())
        except OSError as error:
            if error.errno in NO_SPACE:  # also in place: not every file system overwrites what is there
                raise DiskFull(f"there is no room to write {self._journal_name} once more ({error}); nothing is lost") from error
            raise self._failure(error) from error

    def _restore(self, missing: Tail) -> None:
        """Write the rows that the mark has and the log has not."""
        self.restored = len(missing.rows)
        if missing.rows:
            self._connection.execute("BEGIN IMMEDIATE")
            _insert(self._connection, "log", 4, missing.rows)
            _insert(self._connection, "handles", 3, self._without_known(missing.handles))
            self._connection.execute("COMMIT")

    def append(self, rows: Sequence[Row]) -> None:
        self._commit(rows, ())

    def erase(self, rows: Sequence[tuple[int, Sequence[bytes]]], tombstone: Row, private: bool = True) -> None:
        self._erasing |= private  # until the old pages have left the journal too
        self._commit([tombstone], rows)

    def _commit(self, rows: Sequence[Row], erased: Sequence[tuple[int, Sequence[bytes]]]) -> None:
        written = chained(self._head, rows)
        handles = [(handle, line[0], content) for row, line in zip(rows, written, strict=True) for handle, content in row.handles]
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            _insert(connection, "log", 4, written)
            _insert(connection, "handles", 3, handles)
            for seq, gone in erased:
                connection.execute("UPDATE log SET body = NULL WHERE seq = ?", (seq,))
                # The first handle is that of an id and must be recognised for ever. The others tell what the event was.
                connection.executemany("UPDATE handles SET content = x'' WHERE handle = ?", [(handle,) for handle in gone[:1]])
                connection.executemany("DELETE FROM handles WHERE handle = ?", [(handle,) for handle in gone[1:]])
            connection.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            self._undo()
            raise HandleTaken(str(error)) from error
        except sqlite3.Error as error:
            self._undo()
            if getattr(error, "sqlite_errorname", "") in FULL:
                raise DiskFull(f"there is no room for {self.path} to grow ({error}); nothing of this was kept") from error
            raise self._failure(error, "written") from error
        self._head = Head(written[-1][0], written[-1][3])
        if erased or (self.durable and not self._mark.add(self._head, encode_tail(Tail(written, handles)))):
            self.flush(wipe=bool(erased))  # an entry does not tell what was erased
        self._unsettled += sum(PAGE + len(line[1] or b"") for line in written)
        if self._erasing or self._unsettled > JOURNAL_BYTES:
            self._checkpoint()

    def _undo(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise self._failure(error, "written, nor the writing be undone") from error

    def _failure(self, error: BaseException, what: str = "synchronised") -> StorageFailed:
        self._failed = True
        return StorageFailed(f"{self.path} could not be {what} ({error}); nothing more is accepted until a restart")

    def _checkpoint(self) -> None:
        """Copy the journal into the main file and synchronise it. After an erasure, also empty the journal once no one reads it."""
        try:
            busy, _, _ = self._connection.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if self._erasing else 'PASSIVE'})").fetchone()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "") in FULL:
                return  # the journal has everything and grows until there is space
            raise self._failure(error) from error
        self._unsettled = 0
        self._erasing = self._erasing and bool(busy)

    def keep(self) -> None:
        if self._head.seq > self._flushed:
            self.flush()

    def flush(self, wipe: bool = False) -> None:
        """Synchronise the journal itself: a checkpoint stops at pages that a reader still uses.

        With `wipe`, nothing is left of the rows in the mark.
        """
        try:
            synchronise(self._journal.fileno())
            removed = os.fstat(self._journal.fileno()).st_nlink == 0
        except OSError as error:
            raise self._failure(error) from error
        if removed:
            self._checkpoint()
        self._mark.set(self._head, wipe)
        self._flushed = self._head.seq

    def size(self) -> int | None:
        sizes = []
        for name in (str(self.path), self._journal_name):
            with contextlib.suppress(OSError):
                sizes.append(os.stat(name).st_size)  # noqa: PTH116 - one has the name that SQLite gave it
        return sum(sizes) if sizes else None

    def close(self) -> None:
        with self._opened:
            # Rows that are not synchronised may be nowhere else than in the mark.
            if not self._failed and not self._mark.unusable and self._flushed == self._head.seq:
                with contextlib.suppress(StorageFailed):
                    self._mark.set(self._head, wipe=True)


def _insert(connection: sqlite3.Connection, table: str, columns: int, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert many rows per statement: during each statement, other Python threads may take the interpreter lock."""
    position = 0
    for size in ROWS_AT_ONCE:
        while len(rows) - position >= size:
            connection.execute(_insertion(table, columns, size), list(itertools.chain.from_iterable(rows[position : position + size])))
            position += size


@functools.cache
def _insertion(table: str, columns: int, size: int) -> str:
    one = f"({', '.join('?' * columns)})"
    return f"INSERT INTO {table} VALUES {', '.join([one] * size)}"


def create_log(folder: Path, rows: Iterable[Sequence[Row]], name: str = LOG) -> Head:
    """Make the log of a folder with its first rows and its mark. It gets its name only when it is complete.

    Rows come in groups, so that a long log need not fit in memory.
    """

    def lines() -> Iterator[tuple[list[Written], list[tuple[bytes, int, bytes]]]]:
        head = Head(0, NO_CHAIN)
        for group in rows:
            written = chained(head, group)
            yield written, [(handle, line[0], content) for row, line in zip(group, written, strict=True) for handle, content in row.handles]
            head = Head(written[-1][0], written[-1][3])

    return _create(folder, lines(), name)


def copy_rows(folder: Path, rows: Iterable[list[Written]], handles: Iterable[list[tuple[bytes, int, bytes]]]) -> Head:
    """Make the log of a folder with all rows and handles of another log, unchanged."""
    return _create(folder, itertools.chain(((part, []) for part in rows), (([], part) for part in handles)), LOG)


def _create(folder: Path, lines: Iterable[tuple[list[Written], list[tuple[bytes, int, bytes]]]], name: str) -> Head:
    path, unfinished = folder / name, folder / f".{name}.unfinished"
    for old in folder.glob(f".{name}.unfinished*"):
        old.unlink()
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    head = Head(0, NO_CHAIN)
    with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("BEGIN")
        for written, handles in lines:
            connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", written)
            connection.executemany("INSERT OR IGNORE INTO handles VALUES (?, ?, ?)", handles)
            if written:
                head = Head(written[-1][0], written[-1][3])
        connection.execute("COMMIT")
    write_mark(folder, head)
    unfinished.replace(path)
    sync_folder(folder)
    return head
