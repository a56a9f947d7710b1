"""A folder of the service, opened for a command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from albatross import policies
from albatross.cli.arguments import SEPARATOR
from albatross.cli.progress import progress_bar
from albatross.service.engine.engine import Engine
from albatross.service.engine.options import Options
from albatross.service.storage.events import Genesis
from albatross.service.storage.log import LogReader
from albatross.service.storage.migration import check_folder, reading_log
from albatross.service.storage.reading import Progress, read_genesis


def meet(policy: str | None) -> None:
    """Load a policy from outside that was moved: it is known by its source, wherever that is."""
    if policy is not None:
        policies.find(policy.partition(SEPARATOR)[0])


@contextmanager
def opened_log(folder: Path) -> Iterator[tuple[LogReader, Genesis]]:
    """The log of a folder as it is now, and its first event. The folder may be served meanwhile."""
    with reading_log(folder) as log:
        yield log, read_genesis(log, str(folder))


@contextmanager
def opened_engine(folder: Path, options: Options | None = None, existing: bool = False) -> Iterator[Engine]:
    """An engine that is ready, with every other process kept off. `existing`: refuse a folder that is not there."""
    if existing:
        check_folder(folder)
    with Engine(folder, options, on_complaint=lambda complaint: print(f"albatross: {complaint}", file=sys.stderr)) as engine:
        engine.wait_ready()
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
