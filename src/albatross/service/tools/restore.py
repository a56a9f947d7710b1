"""A backup, back in service."""

from pathlib import Path

from albatross.service.engine.recovering.verifying import Verdict, verify
from albatross.service.storage.home import home_of
from albatross.service.storage.migration import reading_log
from albatross.service.storage.reading import Progress, nothing, read_genesis


def restore(backup: Path, where: str | Path, progress: Progress = nothing) -> Verdict:
    """Make a folder, or the log of a database, from a backup, which stays as it is. Returns what a rebuild of the model from it gives.

    Decisions of the new service get other ids than those that the lost one gave after the backup: each life of an engine names its own.
    """
    home = home_of(where)
    with reading_log(backup) as log:
        verdict = verify(log, backup, read_genesis(log, str(backup)), progress)
    home.take_over(backup)
    return verdict
