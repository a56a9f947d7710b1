"""`albatross backup`: copy a folder while it serves."""

from pathlib import Path

from albatross.cli.service.folder import meet, opened_log, watched
from albatross.service.engine.recovering.verifying import verify
from albatross.service.settings.file import file_beside
from albatross.service.storage.home import home_of
from albatross.service.storage.sqlite.backup import copy_log


def backup(folder: str, target: Path, *, policy: str | None = None) -> None:
    """Copy a folder to a new one, also while it serves, and verify the copy. It has everything acknowledged before the command.

    The copy of a PostgreSQL database is a folder that can be served.

    Example: albatross backup shop.albatross backups/monday

    Parameters
    ----------
    folder
        A folder of the service, running or not, or an address postgresql://…
    target
        The folder to make. `albatross restore` makes a folder to serve from it.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    """
    meet(policy)
    home = home_of(folder)
    settings = file_beside(home.folder)
    with home.reading() as source:
        copy_log(source, home.keyring, None if settings is None else settings.read_bytes(), target)
    with opened_log(target) as (log, genesis), watched(log.head.seq) as progress:
        verdict = verify(log, target, genesis, progress)
    print(f"{target}: {verdict.seq:,} events, {verdict.ratings:,} ratings; every row, id and link is sound; state id {verdict.state_id}")
