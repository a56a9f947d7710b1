"""`albatross restore`: a folder from a backup."""

from pathlib import Path

from albatross.cli.service.folder import meet, opened_log, watched
from albatross.service.storage.home import home_of
from albatross.service.tools.restore import restore as restore_backup


def restore(backup: Path, folder: str, *, policy: str | None = None) -> None:
    """Make a folder from a backup, after rebuilding the model from it. The backup stays as it is.

    Decisions made after the backup are unknown in the new folder: ratings of them are refused.

    Examples: albatross restore backups/monday shop.albatross; albatross restore backups/monday postgresql://albatross@db.example/shop

    Parameters
    ----------
    backup
        A folder that `albatross backup` or POST /v1/backup made.
    folder
        The folder to make, or the address of a database without a log.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    """
    meet(policy)
    with opened_log(backup) as (log, _), watched(log.head.seq) as progress:
        verdict = restore_backup(backup, folder, progress)
    print(f"{home_of(folder)}: {verdict.seq:,} events, {verdict.ratings:,} ratings; state id {verdict.state_id}")
