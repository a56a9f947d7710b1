"""`albatross doctor`: is this folder, and this machine, fit to serve?"""

from albatross.cli.service.folder import meet
from albatross.core.errors import InvalidInput
from albatross.service.storage.home import existing_home, home_of
from albatross.service.tools.doctor import examine


def doctor(folder: str, *, accept_loss: bool = False, policy: str | None = None) -> None:
    """Check everything a service needs, and say what is wrong and what to do. A running service is not disturbed.

    Parameters
    ----------
    folder
        A folder of the service, or where one is to be made; or an address postgresql://…
    accept_loss
        If acknowledged events are missing at the end of the log: continue without them. Copy the folder first.
    policy
        Where a policy from outside is now, as file.py:Class, if it was moved.
    """
    meet(policy)
    home = home_of(folder)
    if accept_loss:
        before, now = existing_home(folder).accept_loss()
        said = "could not be read" if before is None else f"said that events up to {before.seq:,} were acknowledged"
        print(f"{home}: the mark {said}; from now on the log ends at event {now.seq:,}")
    found = examine(home)
    for fact in found.facts:
        print(fact)
    for trouble in found.troubles:
        print(f"trouble: {trouble}")
    if found.troubles:
        raise InvalidInput(f"{home}: {len(found.troubles)} {'thing is' if len(found.troubles) == 1 else 'things are'} wrong")
    print("nothing is wrong")
