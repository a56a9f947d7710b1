"""A folder of the service, opened by a command that is not the service."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from albatross.cli.progress import progress_bar
from albatross.core.errors import InvalidInput
from albatross.service.engine import Engine, Options
from albatross.service.events import Genesis
from albatross.service.log import LOG, FolderLock, SQLiteLog
from albatross.service.recovery import Progress, genesis_of


def check_folder(folder: Path) -> None:
    if not (folder / LOG).is_file():
        raise InvalidInput(f"{folder} is no folder of the service; accepted: one that albatross serve or Recommender made")


@contextmanager
def opened_log(folder: Path) -> Iterator[tuple[SQLiteLog, Genesis]]:
    """The log of a folder and its first event, with every other process kept off."""
    check_folder(folder)
    lock = FolderLock(folder)
    try:
        store = SQLiteLog(folder)
        try:
            yield store, genesis_of(store, Options(), str(folder))
        finally:
            store.close()
    finally:
        lock.release()


@contextmanager
def opened_engine(folder: Path, options: Options | None = None) -> Iterator[Engine]:
    """An engine that is ready."""
    with Engine(folder, options) as engine:
        engine.wait_ready()
        for complaint in engine.complaints:
            print(f"albatross: {complaint}", file=sys.stderr)
        yield engine


@contextmanager
def watched(total: int) -> Iterator[Progress]:
    """Progress over so many events, with a bar for a person who waits."""
    with progress_bar(total, "events") as advance:
        done = 0

        def progress(reached: int, _: int) -> None:
            nonlocal done
            if advance is not None and reached > done:
                advance(reached - done)
                done = reached

        yield progress
