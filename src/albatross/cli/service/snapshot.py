"""`albatross snapshot`: write the model beside the log, so that the next start is quick."""

from albatross.cli.service.folder import meet, opened_engine
from albatross.service.api.requests import TakeSnapshot


def snapshot(folder: str, *, policy: str | None = None) -> None:
    """Write the model of a folder beside its log. A running service does that by itself.

    Parameters
    ----------
    folder
        A folder of the service or an address postgresql://…, which must not be running.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    """
    meet(policy)
    with opened_engine(folder, existing=True) as engine:
        taken = engine.ask(TakeSnapshot())
    print(f"{taken.path}: event {taken.seq:,}, state id {taken.state_id}")
