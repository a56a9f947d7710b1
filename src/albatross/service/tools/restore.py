"""A backup, back in service; and a folder that lost something, accepted as it is."""

import contextlib
from pathlib import Path

from albatross.core.errors import InvalidInput
from albatross.service.engine.verifying import Verdict, verify
from albatross.service.storage.backup import copy_folder
from albatross.service.storage.folder import LOG, FolderLock
from albatross.service.storage.log import LogReader
from albatross.service.storage.mark import Head, read_mark, write_mark
from albatross.service.storage.migration import check_folder, reading_log
from albatross.service.storage.reading import Progress, nothing, read_genesis
from albatross.service.storage.snapshots import remove_all


def restore(backup: Path, folder: Path, progress: Progress = nothing) -> Verdict:
    """Make a folder from a backup, which stays as it is. Returns what a rebuild of the model from the backup gives.

    Decisions of the restored folder get other ids than those that the lost one gave after the backup: each life of an engine names its own.
    """
    with reading_log(backup) as log:
        verdict = verify(log, backup, read_genesis(log, str(backup)), progress)
    copy_folder(backup, folder)
    return verdict


def accept_loss(folder: Path) -> tuple[Head | None, Head]:
    """Take the log as it is for all there ever was. Returns what the mark said, and what it says now."""
    check_folder(folder)
    lock = FolderLock(folder)
    try:
        with contextlib.closing(LogReader(folder / LOG)) as log:
            for _ in log.read():  # what is left must be sound
                pass
            if log.head.seq == 0:
                raise InvalidInput(f"{folder}: nothing is left of the log; accepted: a log with at least its first event")
            before, now = read_mark(folder), log.head
        remove_all(folder)  # some may know of what is gone
        write_mark(folder, now)
    finally:
        lock.release()
    return before, now
