"""`albatross serve`: a recommender over HTTP."""

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from albatross.cli.service.settings import address_of, folder_of, settled, takes_settings
from albatross.core.errors import InvalidInput
from albatross.service.http.logs import configure_log
from albatross.service.http.process import serve as serve_home
from albatross.service.settings.file import example
from albatross.service.settings.force import options_of
from albatross.service.storage.home import home_of


@takes_settings
def serve(folder: str | None = None, *, example_config: Annotated[bool, Parameter(negative=())] = False, **flags: Any) -> None:
    """Serve a folder over HTTP. It is made if it does not exist; nothing else is needed. Or serve a database of PostgreSQL.

    Examples: albatross serve shop.albatross --scale 1..5; albatross serve postgresql://albatross@db.example/shop --scale 1..5

    Parameters
    ----------
    folder
        Where everything is kept; or postgresql://user@host/database, where the log and the keys are kept.
    example_config
        Print a configuration file with every setting and what it means, and end.
    **flags
        The settings of a service.
    """
    if example_config:
        print(example(), end="")
        return
    if folder is None:
        raise InvalidInput("there is nothing to serve; accepted: a folder, or an address postgresql://…")
    found = settled(folder_of(folder), flags)
    configure_log(found["log"].value, sys.stderr)
    serve_home(home_of(folder, found["snapshots"].value), options_of(found), address_of(found))
