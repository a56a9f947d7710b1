"""Restore of a backup."""

from pathlib import Path

from albatross.service.engine.recovering.verifying import Verdict, verify
from albatross.service.storage.home import home_of
from albatross.service.storage.migration import reading_log
from albatross.service.storage.reading import Progress, nothing, read_genesis


def restore(backup: Path, where: str | Path, progress: Progress = nothing) -> Verdict:
    """Make a folder, or the log of a database, from a backup, which is not changed. Returns the result of rebuilding the model from it.

    The new service never repeats ids of decisions that the lost one made after the backup: each incarnation of an engine has its own ids.
    """
    home = home_of(where)
    with reading_log(backup) as log:
        verdict = verify(log, backup, read_genesis(log, str(backup)), progress)
    home.take_over(backup)
    return verdict
