"""A folder of the service, or a database, opened for a command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from albatross import policies
from albatross.cli.arguments import SEPARATOR
from albatross.cli.progress import progress_bar
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.events import Genesis
from albatross.service.storage.home import existing_home, home_of
from albatross.service.storage.reading import Progress, read_genesis
from albatross.service.storage.store import ReadableLog


def meet(policy: str | None) -> None:
    """Load your own policy from its new place. It is identified by its source, not by its path."""
    if policy is not None:
        policies.find(policy.partition(SEPARATOR)[0])


@contextmanager
def opened_log(where: str | Path) -> Iterator[tuple[ReadableLog, Genesis]]:
    """The log of a folder or database as it is now, and its first event. The folder may be in service."""
    home = home_of(where)
    with home.reading() as log:
        yield log, read_genesis(log, str(home))


@contextmanager
def opened_engine(where: str | Path, options: Options | None = None, existing: bool = False) -> Iterator[Engine]:
    """An engine that is ready. It locks the home. `existing`: refuse a home without a log."""
    home = existing_home(where) if existing else home_of(where)
    with Engine(home, options, on_complaint=lambda complaint: print(f"albatross: {complaint}", file=sys.stderr)) as engine:
        engine.wait_ready()
        yield engine


@contextmanager
def watched(total: int) -> Iterator[Progress]:
    """Progress over so many events, with a bar on a terminal."""
    with progress_bar(total, "events") as advance:
        done = 0

        def progress(reached: int, _: int) -> None:
            nonlocal done
            if advance is not None and reached > done:
                advance(reached - done)
                done = reached

        yield progress
