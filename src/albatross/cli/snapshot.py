"""`albatross snapshot`: the model beside the log, so that the next start is quick."""

from pathlib import Path

from albatross.cli.folder import check_folder, opened_engine
from albatross.service.messages import TakeSnapshot


def snapshot(folder: Path) -> None:
    """Write the model of a folder beside its log. A running service does that by itself.

    Parameters
    ----------
    folder
        A folder of the service, which must not be running.
    """
    check_folder(folder)
    with opened_engine(folder) as engine:
        taken = engine.ask(TakeSnapshot())
    print(f"{taken.path}: event {taken.seq:,}, state id {taken.state_id}")
