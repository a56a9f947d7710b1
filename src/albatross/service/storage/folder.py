"""The folder of a service: its files, its lock, and its creation."""

import os
import shutil
import weakref
from pathlib import Path
from typing import IO

from albatross.core.errors import InvalidInput
from albatross.core.files import lock_file
from albatross.service.storage.mark import MARK, read_mark

LOG, LOCK, SNAPSHOTS, BACKUPS, KEYS, SETTINGS = "log.sqlite", "lock", "snapshots", "backups", "keys.json", "albatross.toml"


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can read, if there is none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove a folder that was not finished."""
    shutil.rmtree(folder, ignore_errors=True)


def tidy(folder: Path) -> None:
    """Remove unfinished files of killed processes. The caller must hold the lock of the folder. Keys have a lock of their own."""
    partial = (path for path in folder.glob(".*.partial") if not path.name.startswith(f".{KEYS}."))
    for path in (*partial, *(folder / SNAPSHOTS).glob(".*.partial"), *folder.glob(f".{LOG}*.unfinished*")):
        path.unlink(missing_ok=True)
    for path in (folder / BACKUPS).glob(".*.unfinished"):
        remove_unfinished(path)
    for path in (folder / SNAPSHOTS).glob("*.npz"):
        if not path.with_suffix(".json").exists():
            path.unlink(missing_ok=True)


def check_begun(folder: Path) -> None:
    """Refuse to begin a new log in a folder that had one."""
    mark = read_mark(folder)
    if (folder / MARK).exists() and (mark is None or mark.seq > 1):
        known = "" if mark is None else f", but events up to {mark.seq} were acknowledged"
        raise InvalidInput(f"{folder} is damaged: there is no {LOG}{known}; a backup may have it")
    for rest in (f"{LOG}-wal", SNAPSHOTS):
        if (folder / rest).exists():
            raise InvalidInput(f"{folder} is damaged: there is no {LOG}, but there is {rest}; a backup may have it")


class FolderLock:
    """Keeps other processes from writing to a folder, until it is released or the process ends in any way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: IO[str] = os.fdopen(os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600), "r+")
        if not lock_file(self._file, wait=False):
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            whom = f"process {holder}" if holder else "another process"
            raise InvalidInput(f"{folder} is in use by {whom}; accepted: one process per folder (stop that one, or ask it over HTTP)")
        self._file.seek(0)
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        _held.add(self)

    def release(self) -> None:
        _held.discard(self)
        self._file.close()

    def abandon(self) -> None:
        """In a forked child: close the file, because the lock belongs to the parent."""
        self._file.close()


_held: "weakref.WeakSet[FolderLock]" = weakref.WeakSet()


def _abandon_all() -> None:
    for lock in list(_held):
        lock.abandon()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
