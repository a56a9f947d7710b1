"""`albatross forget`: erase a user."""

from albatross.cli.service.folder import meet, opened_engine
from albatross.service.api.requests import ForgetUser


def forget(folder: str, user: str, *, policy: str | None = None) -> None:
    """Erase a user's events from the log, and rebuild the model without them. This cannot be undone.

    Parameters
    ----------
    folder
        A folder of the service or an address postgresql://…, which must not be running; a running one does it over HTTP.
    user
        The user to forget.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    """
    meet(policy)
    with opened_engine(folder, existing=True) as engine:
        forgotten = engine.ask(ForgetUser(user))
    print(f"{forgotten.events:,} events of {user!r} were erased; event {forgotten.seq:,} says so, without the name")
