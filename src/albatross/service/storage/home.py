"""The home of a service: its log, and a folder for snapshots. A folder home has both; a database holds the log only."""

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol

from albatross.core.errors import InvalidInput
from albatross.service.storage.folder import (
    BACKUPS,
    KEYS,
    LOCK,
    LOG,
    SETTINGS,
    SNAPSHOTS,
    FolderLock,
    check_begun,
    make_folder,
    remove_unfinished,
    tidy,
)
from albatross.service.storage.keyring import LOCK as KEYS_LOCK
from albatross.service.storage.keyring import FileKeyring, Keyring
from albatross.service.storage.mark import MARK, Head, read_marked, write_mark
from albatross.service.storage.migration import check_folder, open_log, reading_log
from albatross.service.storage.snapshots import remove_all
from albatross.service.storage.sqlite.backup import copy_folder, keep_backup
from albatross.service.storage.sqlite.log import SQLiteLog, create_log
from albatross.service.storage.sqlite.log_reader import LogReader
from albatross.service.storage.sqlite.tail import first_missing_rows
from albatross.service.storage.store import ReadableLog, Row, Store

OURS = {LOG, f"{LOG}-wal", f"{LOG}-shm", f"{LOG}-journal", MARK, LOCK, SNAPSHOTS, BACKUPS, KEYS, KEYS_LOCK}
"""Names in a folder of the service, besides settings and what is not finished."""
POSTGRES = ("postgresql://", "postgres://")
"""Prefixes of a PostgreSQL address."""


class Home(Protocol):
    """`str` of a home is its name in messages; it has no password in it."""

    @property
    def folder(self) -> Path:
        """The folder for snapshots."""

    @property
    def begun(self) -> bool:
        """Whether there is a log. Refuses a home that has lost its log."""

    def claim(self) -> None:
        """Lock the home before anything is written. Raises `InvalidInput` if another process holds it."""

    def begin(self, rows: Sequence[Row]) -> None:
        """Make the log, with its first rows."""

    def open(self, durable: bool) -> Store:
        """The log, for writing."""

    def release(self, refused: bool = False) -> None:
        """Release the lock, after the log was closed or could not be opened. If that was `refused`, no new file stays."""

    def reading(self) -> AbstractContextManager[ReadableLog]:
        """The log as it is now, also while another process writes to it."""

    @property
    def keyring(self) -> Keyring:
        """The store of the service's keys."""

    def bring_snapshots(self) -> None:
        """Copy snapshots into the folder, if they are also kept elsewhere."""

    def keep_snapshot(self, path: Path) -> None:
        """Copy a new snapshot, named by the path of its arrays, if they are also kept elsewhere."""

    def remove_snapshots(self) -> None:
        """Remove all snapshots everywhere, because they are no longer valid."""

    def erased(self) -> None:
        """Something was erased from the log: remove old copies that still contain it."""

    def keep_backup(self) -> tuple[Path, Head]:
        """Make a backup beside the log, while it is written to."""

    def facts(self) -> list[str]:
        """Facts for `albatross doctor`."""

    def take_over(self, folder: Path) -> Head:
        """Make the log from the log of a folder. That folder is not changed."""

    def accept_loss(self) -> tuple[Head | None, Head]:
        """Accept the log as it is as complete. Returns the last event known to be acknowledged, and the head of the log."""


class FolderHome:
    """A folder with everything, used by one process at a time."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._made: list[Path] = []
        """Folders that did not exist before: this one, and those it is in."""
        self._lock: FolderLock | None = None

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def begun(self) -> bool:
        if (self.folder / LOG).exists():
            return True
        check_begun(self.folder)
        return False

    def claim(self) -> None:
        _ = self.begun  # a folder that is refused stays as it is
        made = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        make_folder(self.folder)
        self._lock = FolderLock(self.folder)
        self._made = made

    def begin(self, rows: Sequence[Row]) -> None:
        create_log(self.folder, [rows])

    def open(self, durable: bool) -> Store:
        log = open_log(self.folder, durable)
        try:
            tidy(self.folder)
        except BaseException:
            log.close()
            raise
        return log

    def release(self, refused: bool = False) -> None:
        if self._lock is None:
            return
        if self._made and not (self.folder / LOG).exists():  # we hold the lock, so no other process has begun it
            remove_unfinished(self.folder)
            with contextlib.suppress(OSError):  # another process uses one of them
                for path in self._made[1:]:
                    path.rmdir()
        self._lock.release(remove_new=refused)

    def reading(self) -> AbstractContextManager[ReadableLog]:
        return reading_log(self.folder)

    @property
    def keyring(self) -> Keyring:
        return FileKeyring(self.folder)

    def bring_snapshots(self) -> None:
        """Nothing to do: they are in the folder."""

    def keep_snapshot(self, path: Path) -> None:
        """Nothing to do: it is in the folder."""

    def remove_snapshots(self) -> None:
        remove_all(self.folder)

    def erased(self) -> None:
        for old in self.folder.glob("log.format-*.sqlite"):  # they still contain what was erased
            old.unlink()

    def keep_backup(self) -> tuple[Path, Head]:
        return keep_backup(self.folder)

    def facts(self) -> list[str]:
        return []

    def take_over(self, folder: Path) -> Head:
        return copy_folder(folder, self.folder)

    def accept_loss(self) -> tuple[Head | None, Head]:
        lock = FolderLock(self.folder)
        try:
            before = read_marked(self.folder)
            with closing(LogReader(self.folder / LOG)) as log:
                for _ in log.read():  # the remaining rows must be valid
                    pass
                if log.head.seq == 0:
                    raise InvalidInput(f"{self.folder}: nothing is left of the log; accepted: a log with at least its first event")
                now = log.head
                mendable = bool(first_missing_rows(before, log).rows)
            if mendable:  # an error, like that of a full disk, is no reason to lose them
                with closing(SQLiteLog(self.folder, lossy=True)) as restored:
                    now = restored.head
            remove_all(self.folder)  # some may contain lost events
            write_mark(self.folder, now)
        finally:
            lock.release()
        return before.head, now


def is_address(where: str | Path) -> bool:
    """Whether this is the address of a database and not a folder."""
    return isinstance(where, str) and where.startswith(POSTGRES)


def home_of(where: str | Path, snapshots: Path | None = None) -> Home:
    """The home for a folder or the address of a database. `snapshots`: the folder for snapshots of a database."""
    if is_address(where):
        from albatross.service.storage.postgres.home import PostgresHome  # an extra, needed only here

        return PostgresHome(str(where), snapshots)
    if snapshots is not None:
        raise InvalidInput(f"{where} keeps its snapshots itself; accepted: a folder for snapshots with an address postgresql://…")
    if isinstance(where, str) and "://" in where:
        raise InvalidInput(f"{where.partition('://')[0]}:// is not supported; accepted: a folder, or postgresql://…")
    return FolderHome(where)


def may_be_home(folder: Path) -> bool:
    """Whether a folder is one of the service, or may become one: it is empty, or has settings. One that has lost its log is one, too."""
    names = {path.name for path in folder.iterdir()}
    unfinished = (f".{LOG}", f".{MARK}.", f".{KEYS}.")
    return LOG in names or SETTINGS in names or all(name in OURS or name.startswith(unfinished) for name in names)


def existing_home(where: str | Path, snapshots: Path | None = None) -> Home:
    """The same, for a home that must have a log already."""
    home = home_of(where, snapshots)
    if isinstance(home, FolderHome):
        check_folder(home.folder)
    elif not home.begun:
        raise InvalidInput(f"{home} has no log of albatross; accepted: one that albatross serve or Recommender made")
    return home
