"""The folder of a service: its files, its lock, and its creation."""

import contextlib
import os
import shutil
import weakref
from pathlib import Path
from typing import IO

from albatross.core.errors import InvalidInput
from albatross.core.files import lock_file
from albatross.service.storage.mark import MARK, read_mark

LOG, LOCK, SNAPSHOTS, BACKUPS, KEYS, SETTINGS = "log.sqlite", "lock", "snapshots", "backups", "keys.json", "albatross.toml"
UNFINISHED = (
    f".{MARK}.*.partial",
    f".{LOG}*.unfinished*",
    f"{SNAPSHOTS}/.{'[0-9]' * 15}.*.partial",
    f"{BACKUPS}/.[0-9]*-event-[0-9]*.[0-9]*.unfinished",
)
"""Files and folders that a killed process leaves. Keys are not among them: they have a lock of their own."""


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can read, if there is none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove a folder that was not finished."""
    shutil.rmtree(folder, ignore_errors=True)


def tidy(folder: Path) -> None:
    """Remove unfinished files of killed processes. The caller must have opened the log for writing: then the folder is one of ours."""
    for pattern in UNFINISHED:
        for path in folder.glob(pattern):
            if path.is_dir():
                remove_unfinished(path)
            else:
                path.unlink(missing_ok=True)
    for path in (folder / SNAPSHOTS).glob(f"{'[0-9]' * 15}.npz"):
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
        self.path = folder / LOCK
        while True:
            self._made, self._file = self._open()
            if not lock_file(self._file, wait=False):
                self._file.seek(0)
                holder = self._file.read().strip()
                self._file.close()
                whom = f"process {holder}" if holder else "another process"
                raise InvalidInput(f"{folder} is in use by {whom}; accepted: one process per folder (stop that one, or ask it over HTTP)")
            if self._stands():
                break
            self._file.close()
        self._file.seek(0)
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        _held.add(self)

    def _open(self) -> tuple[bool, IO[str]]:
        """The file, and whether it is a new one."""
        try:
            return True, os.fdopen(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "r+")
        except FileExistsError:
            return False, os.fdopen(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600), "r+")

    def _stands(self) -> bool:
        """Whether what is locked is still the file of that name: another process may have removed it before this one locked it."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self, remove_new: bool = False) -> None:
        """Let others in. With `remove_new`, the file is gone if there was none before."""
        _held.discard(self)
        if remove_new and self._made and self._stands():
            with contextlib.suppress(OSError):  # while it is open, Windows does not remove it
                self.path.unlink(missing_ok=True)
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
