"""A self-contained copy of a folder, made while the folder is served."""

import contextlib
import os
import re
import shutil
from pathlib import Path

from albatross.core.errors import InvalidInput
from albatross.core.files import sync_folder
from albatross.service.storage.folder import BACKUPS, LOG, SETTINGS, make_folder, remove_unfinished
from albatross.service.storage.keyring import FileKeyring, Keyring, copy_keys
from albatross.service.storage.mark import Head, write_mark
from albatross.service.storage.migration import reading_log
from albatross.service.storage.reading import Progress, check_log, nothing
from albatross.service.storage.sqlite.log import copy_rows
from albatross.service.storage.sqlite.log_reader import LogReader
from albatross.service.storage.store import ReadableLog

NAME = re.compile(r"(\d{6,})-event-\d+")
"""Names of our own backups. Other files in that folder are left alone."""
KEEP = 3
"""How many backups to keep in the folder itself: the newest."""


def copy_folder(folder: Path, target: Path, progress: Progress = nothing) -> Head:
    """Copy the log, its mark, keys and settings to a new folder, and check every row of the copy. Leaves the whole folder or nothing.

    Snapshots are not copied: they can be rebuilt from the log.
    """
    with reading_log(folder) as log:
        return copy_log(log, FileKeyring(folder), _read(folder / SETTINGS), target, progress)


def copy_log(log: ReadableLog, keys: Keyring, settings: bytes | None, target: Path, progress: Progress = nothing) -> Head:
    """Make a folder from a log, row by row the same, and from the files beside it."""
    if target.exists():
        raise InvalidInput(f"{target} exists already; accepted: the name of a folder to make")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    make_folder(target.parent)
    try:
        make_folder(unfinished)
        head = log.head
        if isinstance(log, LogReader):
            os.close(os.open(unfinished / LOG, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            log.copy(unfinished / LOG)
            write_mark(unfinished, head)
        else:
            copy_rows(unfinished, log.rows(), log.handles())
        copy_keys(keys, unfinished)
        if settings is not None:
            (unfinished / SETTINGS).touch(0o600)
            (unfinished / SETTINGS).write_bytes(settings)
        with contextlib.closing(LogReader(unfinished / LOG)) as copy:
            check_log(copy, progress)
        for path in unfinished.iterdir():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        sync_folder(unfinished)
        unfinished.rename(target)
    except BaseException:
        remove_unfinished(unfinished)
        raise
    sync_folder(target.parent)
    return head


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def keep_backup(folder: Path) -> tuple[Path, Head]:
    """Make a backup inside the folder itself, and remove all but the newest."""
    with reading_log(folder) as log:
        seq = log.head.seq
    ours = {int(found[1]): path for path in (folder / BACKUPS).glob("*") if (found := NAME.fullmatch(path.name))}
    taken = [ours[number] for number in sorted(ours)]
    target = folder / BACKUPS / f"{max(ours, default=0) + 1:06d}-event-{seq}"
    head = copy_folder(folder, target)
    for old in [*taken, target][:-KEEP]:
        shutil.rmtree(old)
    return target, head
