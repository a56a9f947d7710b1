"""`albatross doctor`: checks whether a folder and this machine are ready to serve."""

from typing import Annotated, Any

from cyclopts import Parameter

from albatross.cli.service.folder import meet
from albatross.cli.service.settings import address_of, folder_of, settled, takes_settings
from albatross.core.errors import InvalidInput
from albatross.service.http.access.keys import Keys
from albatross.service.settings.force import InForce
from albatross.service.storage.home import existing_home, home_of
from albatross.service.tools.doctor import examine


@takes_settings
def doctor(folder: str, *, accept_loss: Annotated[bool, Parameter(negative=())] = False, **flags: Any) -> None:
    """Check everything a service needs, and say what is wrong and what to do. A running service is not disturbed.

    Every setting is shown with its source: a flag, the file, genesis (fixed when the folder was made), or the default.
    The flags are those of albatross serve, as if it were started with them. --policy also gives the new place of your own policy.

    Parameters
    ----------
    folder
        A folder of the service, or where one is to be made; or an address postgresql://…
    accept_loss
        If acknowledged events are missing at the end of the log: continue without them. Copy the folder first.
    **flags
        The settings of a service.
    """
    meet(flags.get("policy"))
    home = home_of(folder)
    if accept_loss:
        before, now = existing_home(folder, flags.get("snapshots")).accept_loss()
        said = "could not be read" if before is None else f"said that events up to {before.seq:,} were acknowledged"
        print(f"{home}: the mark {said}; from now on the log ends at event {now.seq:,}")
    settings: dict[str, InForce] | None = None
    try:
        settings = settled(folder_of(folder), flags)
        home = home_of(folder, settings["snapshots"].value)
        address_of(settings).check(Keys(home.keyring))
        troubles = []
    except InvalidInput as error:
        troubles = [str(error)]
    found = examine(home, settings)
    for fact in found.facts:
        print(fact)
    troubles += found.troubles
    for trouble in troubles:
        print(f"trouble: {trouble}")
    if troubles:
        raise InvalidInput(f"{home}: {len(troubles)} {'thing is' if len(troubles) == 1 else 'things are'} wrong")
    print("nothing is wrong")
