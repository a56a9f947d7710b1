"""Migration of logs of earlier formats: one function per format, applied to a copy. The old file is kept.

A reader uses a temporary copy. A writer replaces the log by the copy once that is complete.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import MsgspecError
from msgspec.structs import replace

from albatross.core.errors import InvalidInput
from albatross.core.files import sync_folder
from albatross.service.storage.events import FORMAT, Event, Genesis, Rated, decode, encode
from albatross.service.storage.folder import LOG, SNAPSHOTS
from albatross.service.storage.handles import answer_handle
from albatross.service.storage.mark import read_marked
from albatross.service.storage.reading import check_log
from albatross.service.storage.sqlite.log import SQLiteLog, create_log
from albatross.service.storage.sqlite.log_reader import CHUNK, LogReader, format_of, naming_journal
from albatross.service.storage.sqlite.tail import missing_rows
from albatross.service.storage.store import NO_CHAIN, DamagedLog, Row, check_rows

ANSWERED = b"answered"
"""Content of the handle of an answered item: it has only one possible value."""


def from_format_1(path: Path) -> Iterator[list[Row]]:
    """Format 1 had no salt before bodies and no handles of answers, and its table of handles was called `keys`."""
    chain, before = NO_CHAIN, 0
    answered: set[bytes] = set()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            kept = {seq: (handle, content) for handle, seq, content in connection.execute("SELECT key, seq, content FROM keys")}
            cursor = connection.execute("SELECT seq, body, digest, chain FROM log ORDER BY seq")
            while rows := cursor.fetchmany(CHUNK):
                if [row[0] for row in rows] != list(range(before + 1, before + len(rows) + 1)):
                    raise DamagedLog(f"{path} is damaged behind event {before}: an event is missing")
                chain = check_rows(str(path), chain, rows)
                before += len(rows)
                yield [_row_of_format_1(seq, body, kept.get(seq), answered) for seq, body, _, _ in rows]
        except (sqlite3.Error, UnicodeDecodeError, TypeError, MsgspecError) as error:
            raise DamagedLog(f"{path} is damaged behind event {before}: {error}") from error


def _row_of_format_1(seq: int, body: bytes | None, kept: tuple[bytes, bytes] | None, answered: set[bytes]) -> Row:
    if body is None:
        return Row(None, [] if kept is None else [(kept[0], b"")])
    event: Event = decode(body)
    handles = [] if kept is None else [kept]
    if isinstance(event, Genesis):
        if event.format != 1:
            raise InvalidInput(f"the first event has format {event.format}; accepted: 1")
        event = replace(event, format=2)
    elif isinstance(event, Rated) and event.decision is not None:
        answer = answer_handle(event.decision, event.item)
        if answer in answered:
            event = replace(event, again=True)
        else:
            answered.add(answer)
            handles.append((answer, ANSWERED))
    return Row(encode(event), handles)


MIGRATIONS: dict[int, Callable[[Path], Iterator[Sequence[Row]]]] = {1: from_format_1}
"""For each earlier format, a function that gives the rows in the current format."""


def migrate(folder: Path) -> None:
    """Migrate the log of a folder to the current format, if needed. The caller must hold the lock of the folder."""
    path = folder / LOG
    known = format_of(path)
    if known == FORMAT:
        return
    journal = folder / f"{LOG}-wal"
    if journal.exists() and journal.stat().st_size:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, so that the copy gets no old journal
    name = f"{LOG}.migrated"
    _create(folder, path, known, name)
    kept = folder / f"log.format-{known}.sqlite"
    kept.unlink(missing_ok=True)
    try:
        os.link(path, kept)
    except OSError:  # not every file system has hard links
        shutil.copy2(path, kept)
    kept.chmod(0o600)
    (folder / name).replace(path)
    shutil.rmtree(folder / SNAPSHOTS, ignore_errors=True)  # they belong to the old chain
    sync_folder(folder)


def _create(folder: Path, source: Path, known: int, name: str) -> None:
    if known not in MIGRATIONS:
        accepted = ", ".join(map(str, (*MIGRATIONS, FORMAT)))
        raise InvalidInput(f"{source} has format {known}; accepted: {accepted} (a newer one needs a newer albatross)")
    create_log(folder, MIGRATIONS[known](source), name)
    with contextlib.closing(LogReader(folder / name)) as log:
        check_log(log)


def open_log(folder: Path, durable: bool = True) -> SQLiteLog:
    """The log of a folder for writing, in the current format."""
    migrate(folder)
    return SQLiteLog(folder, durable)


@contextlib.contextmanager
def reading_log(folder: Path) -> Iterator[LogReader]:
    """The log of a folder as it is now, also while it is written to. Refuses a log that has lost acknowledged events.

    What only the mark has is read from there. The folder is not changed: a service may be about to open it, or its disk may be read-only
    (then only a folder that was closed has no journal, which SQLite reads only where it can make files).
    """
    check_folder(folder)
    known = format_of(folder / LOG)
    if known == FORMAT:
        mark = read_marked(folder)  # before the log is opened, so that the mark cannot be newer than the log
        with naming_journal(folder / LOG), contextlib.closing(LogReader(folder / LOG)) as log:
            log.complete(*missing_rows(str(folder), mark, log))
            yield log
        return
    with tempfile.TemporaryDirectory(prefix="albatross-") as scratch:
        copy = Path(scratch) / "source.sqlite"
        where = f"{(folder / LOG).absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(where, uri=True)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        _create(Path(scratch), copy, known, LOG)
        with contextlib.closing(LogReader(Path(scratch) / LOG)) as log:
            yield log


def check_folder(folder: Path) -> None:
    if not (folder / LOG).is_file():
        raise InvalidInput(f"{folder} is no folder of the service; accepted: one that albatross serve or Recommender made")
