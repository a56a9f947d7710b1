"""`albatross restore`: a folder from a backup."""

from pathlib import Path

from albatross.cli.folder import meet, opened_log, watched
from albatross.service.tools.restore import restore as restore_backup


def restore(backup: Path, folder: Path, *, policy: str | None = None) -> None:
    """Make a folder from a backup, after rebuilding the model from it. The backup stays as it is.

    Decisions of the lost folder that are younger than the backup are unknown in the new one: rating them is refused.

    Example: albatross restore backups/monday shop.albatross

    Parameters
    ----------
    backup
        A folder that `albatross backup` or POST /v1/backup made.
    folder
        The folder to make.
    policy
        Where a policy from outside is now, as file.py:Class, if it was moved.
    """
    meet(policy)
    with opened_log(backup) as (log, _), watched(log.head.seq) as progress:
        verdict = restore_backup(backup, folder, progress)
    print(f"{folder}: {verdict.seq:,} events, {verdict.ratings:,} ratings; state id {verdict.state_id}")
