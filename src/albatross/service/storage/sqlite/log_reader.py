"""A log in a SQLite file, for reading: it looks as it did when the reading began."""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import NotWritten
from albatross.service.storage.events import FORMAT
from albatross.service.storage.mark import Head
from albatross.service.storage.store import NO_CHAIN, SALT, Base, DamagedLog, Found, Handle, Written, check_rows, digest_of

CHUNK = 10_000
"""Rows read at a time."""
HANDLES_AT_ONCE = 256
"""Handles per SELECT statement."""

UNREADABLE = (sqlite3.Error, UnicodeDecodeError, TypeError)
"""The errors of a damaged file: from SQLite, from decoding SQLite's message, and for a value of the wrong type."""


class LogReader:
    """A log as it was when it was opened. A writer may go on."""

    _missing: tuple[Sequence[Written], Sequence[Handle]] = (), ()
    """Rows and handles that the file has not."""
    restored = 0

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = connect(path, readonly=True)
        try:
            check_format(path, self._connection)
            self._connection.execute("BEGIN")  # from here on, all reads see the same snapshot
            self._head = self._last()
        except UNREADABLE as error:
            self._connection.close()
            raise refusal(path, error) from error
        except BaseException:
            self._connection.close()
            raise

    def complete(self, rows: Sequence[Written], handles: Sequence[Handle]) -> None:
        """Read on as if these rows were in the log. The file is not changed."""
        if not rows:
            return
        handles = self._without_known(handles)
        self._missing, self.restored = (rows, handles), len(rows)
        for table, columns, lines in (("log", "?, ?, ?, ?", rows), ("handles", "?, ?, ?", handles)):
            self._connection.execute(f"CREATE TEMP TABLE missing_{table} AS SELECT * FROM main.{table} LIMIT 0")
            self._connection.executemany(f"INSERT INTO missing_{table} VALUES ({columns})", lines)
            # SQLite looks for a name among what is temporary first.
            self._connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} UNION ALL SELECT * FROM missing_{table}")
        self._head = Head(rows[-1][0], rows[-1][3])

    def _without_known(self, handles: Sequence[Handle]) -> list[Handle]:
        """The handles that are not there yet with the same row and content: damage may leave a handle and take its row."""
        known = self.find_all([handle for handle, _, _ in handles])
        return [line for line in handles if known.get(line[0]) != line[1:]]

    def _last(self) -> Head:
        last = self._connection.execute("SELECT seq, chain FROM log ORDER BY seq DESC LIMIT 1").fetchone()
        head = Head(*last) if last is not None else Head(0, NO_CHAIN)
        if not isinstance(head.chain, bytes):
            raise TypeError(f"the chain of event {head.seq} is gone")
        return head

    @property
    def head(self) -> Head:
        return self._head

    def find(self, handle: bytes) -> Found | None:
        return self.find_all([handle]).get(handle)

    def find_all(self, handles: Sequence[bytes]) -> dict[bytes, Found]:
        known: dict[bytes, Found] = {}
        for start in range(0, len(handles), HANDLES_AT_ONCE):
            wanted = handles[start : start + HANDLES_AT_ONCE]
            # Pad with the first handle, so that a few prepared statements serve all lengths.
            size = next(size for size in (1, 4, 16, 64, HANDLES_AT_ONCE) if size >= len(wanted))
            question = f"SELECT handle, seq, content FROM handles WHERE handle IN ({', '.join('?' * size)})"
            padded = [*wanted, *[wanted[0]] * (size - len(wanted))]
            try:
                rows = self._connection.execute(question, padded).fetchall()
            except UNREADABLE as error:
                raise DamagedLog(f"{self.path} is damaged in its table of handles: {error}") from error
            known.update((handle, Found(seq, content)) for handle, seq, content in rows)
        return known

    def body(self, seq: int) -> bytes | None:
        try:
            body, digest = self._connection.execute("SELECT body, digest FROM log WHERE seq = ?", (seq,)).fetchone() or (None, b"")
            sound = body is None or digest_of(body) == digest
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: {error}") from error
        if not sound:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: its content does not have the digest that was kept with it")
        return None if body is None else body[SALT:]

    def chain_at(self, seq: int) -> bytes | None:
        if seq == 0:
            return NO_CHAIN
        try:
            found = self._connection.execute("SELECT chain FROM log WHERE seq = ?", (seq,)).fetchone()
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path} is damaged at event {seq}: {error}") from error
        return found[0] if found is not None and isinstance(found[0], bytes) else None

    def handles(self) -> Iterator[list[tuple[bytes, int, bytes]]]:
        try:
            cursor = self._connection.execute("SELECT handle, seq, content FROM handles")
            while rows := cursor.fetchmany(CHUNK):
                yield rows
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path} is damaged in its table of handles: {error}") from error

    def version(self, number: int) -> Sequence[bytes | None]:
        raise DamagedLog(f"{self.path} is damaged: it names version {number} of what shards exchange, and a folder is one shard")

    def base_version(self) -> int:
        return 0

    def base(self, version: int) -> Base:
        raise DamagedLog(f"{self.path} is damaged: it names a base of several shards, but a folder is one shard")

    def read(self, checked: bool = True) -> Iterator[tuple[int, list[bytes | None]]]:
        chain = NO_CHAIN
        for rows in self.rows():
            if checked:
                chain = check_rows(str(self.path), chain, rows)
            yield rows[0][0], [None if row[1] is None else row[1][SALT:] for row in rows]

    def rows(self) -> Iterator[list[Written]]:
        before = 0
        for rows in self._chunks("SELECT seq, body, digest, chain FROM log ORDER BY seq"):
            if rows[0][0] != before + 1 or rows[-1][0] != before + len(rows):
                missing = next(expected for expected, row in enumerate(rows, start=before + 1) if row[0] != expected)
                raise DamagedLog(f"{self.path} is damaged at event {missing}: it is missing")
            yield rows
            before += len(rows)
        if before != self._head.seq:
            raise DamagedLog(f"{self.path} is damaged behind event {before}: {self._head.seq} events were expected")

    def _chunks(self, query: str) -> Iterator[list[Written]]:
        cursor = None
        before = 0
        while True:
            try:
                if cursor is None:
                    cursor = self._connection.execute(query)
                rows: list[Written] = cursor.fetchmany(CHUNK)
            except UNREADABLE as error:
                raise DamagedLog(f"{self.path} is damaged behind event {before}: {error}") from error
            if not rows:
                return
            yield rows
            before = rows[-1][0]

    def copy(self, target: Path) -> None:
        """Copy the whole log, as seen here, to a new file without a journal."""
        try:
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
                self._connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
                rows, handles = self._missing
                copy.execute("BEGIN")
                copy.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)
                copy.executemany("INSERT INTO handles VALUES (?, ?, ?)", handles)
                copy.execute("COMMIT")
        except sqlite3.Error as error:
            raise NotWritten(f"{target} could not be written ({error})") from error

    def close(self) -> None:
        self._connection.close()


def format_of(path: Path) -> int:
    """The format of a log."""
    with naming_journal(path), contextlib.closing(connect(path, readonly=True)) as connection:
        try:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        except UNREADABLE as error:
            raise refusal(path, error) from error
    if version == 0 and not {"log", "keys"} <= tables:
        raise DamagedLog(f"{path} is damaged: it is empty, or not a log of albatross")
    return version or 1


def check_format(path: Path, connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != FORMAT:
        raise InvalidInput(f"{path} has format {version}; accepted: {FORMAT}")


def connect(path: Path, readonly: bool = False) -> sqlite3.Connection:
    if readonly and Path(f"{path}-journal").exists():
        _roll_back(path)
    connection = _connect(path, "mode=ro" if readonly else "mode=rw")
    if readonly and _needs_files(path, connection):
        connection.close()
        return _connect(path, "mode=ro&immutable=1")
    return connection


def _connect(path: Path, how: str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False, timeout=1.0)
    except sqlite3.Error as error:
        raise refusal(path, error) from error


def _needs_files(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether SQLite can read a log only if it can make files beside it, although there is no journal: on a disk that is read-only."""
    if Path(f"{path}-wal").exists():
        return False
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    except UNREADABLE as error:
        return getattr(error, "sqlite_errorname", "").startswith("SQLITE_CANTOPEN")
    return False


def _roll_back(path: Path) -> None:
    """Undo what a process did not finish when it turned the journal on: a connection that only reads cannot. Others are not disturbed."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(path)) as connection:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchall()


@contextlib.contextmanager
def naming_journal(path: Path) -> Iterator[None]:
    """Let an error of a damaged log say that the journal may be at fault: behind a checkpoint, the main file has all that it has."""
    try:
        yield
    except DamagedLog as error:
        journal = Path(f"{path}-wal")
        if not journal.exists() or journal.stat().st_size == 0:
            raise
        raise DamagedLog(
            f"{error}. If only {journal.name} is damaged, nothing may be missing: "
            f"copy the folder, put that file aside in the copy, and see what albatross verify says of it"
        ) from error


def refusal(path: Path, error: BaseException) -> InvalidInput:
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return InvalidInput(f"{path} is in use by another process; accepted: one process per folder")
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_CANTOPEN") and path.is_file() and Path(f"{path}-wal").exists():
        return InvalidInput(
            f"{path} cannot be opened ({error}); with a journal, it is not read where nothing can be written: copy the folder"
        )
    return DamagedLog(f"{path} is damaged or is not a log of albatross: {error}")
