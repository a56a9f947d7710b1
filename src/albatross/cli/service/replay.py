"""`albatross replay`: a log with another policy."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross.cli.arguments import parse_policy
from albatross.cli.service.folder import opened_engine, opened_log, watched
from albatross.service.api.requests import AskVersion
from albatross.service.storage.home import home_of
from albatross.service.tools.change_policy import change_policy


def replay(
    folder: str,
    into: Path,
    *,
    policy: str,
    setting: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
) -> None:
    """Build a new folder with all events of a folder and another policy, which learns from every past rating.

    Ids of events and of decisions stay valid, and so do keys: the new folder can take the place of the old one. Its albatross.toml is
    not copied.

    Example: albatross replay shop.albatross shop-pts.albatross --policy pts --set rank=5

    Parameters
    ----------
    folder
        A folder of the service or an address postgresql://…, running or not. It stays as it is.
    into
        The folder to make.
    policy
        Name of a policy (see: albatross list), file.py:Class or module:Class.
    setting
        Parameter of the policy, as key=value; may be given several times.
    """
    successor = parse_policy(policy)
    with opened_log(folder) as (log, genesis), watched(log.head.seq) as progress:
        change_policy(log, genesis, home_of(folder).keyring, successor, into, progress)
    with opened_engine(into) as engine:
        version = engine.ask(AskVersion())
    print(f"{into}: {version.ratings:,} ratings learned by {version.policy}; state id {version.state_id}")
