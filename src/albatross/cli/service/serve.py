"""`albatross serve`: a recommender over HTTP."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from albatross.cli.service.settings import address_of, folder_of, settled, takes_settings
from albatross.core.errors import InvalidInput
from albatross.service.http.hosting import How, serve_root
from albatross.service.http.logs import configure_log
from albatross.service.http.process import serve as serve_home
from albatross.service.settings.file import example
from albatross.service.settings.force import options_of
from albatross.service.settings.table import BY_KEY
from albatross.service.storage.home import home_of


@takes_settings
def serve(
    folder: str | None = None,
    *,
    root: Path | None = None,
    example_config: Annotated[bool, Parameter(negative=())] = False,
    **flags: Any,
) -> None:
    """Serve a folder over HTTP. It is made if it does not exist; nothing else is needed. A PostgreSQL database can be served too.

    Examples: albatross serve shop.albatross --scale 1..5; albatross serve postgresql://albatross@db.example/shop --scale 1..5

    Parameters
    ----------
    folder
        The folder for everything; or postgresql://user@host/database, for the log and the keys.
    root
        Instead of a folder: serve each sub-folder of this one, at /shops/NAME/, as its albatross.toml says. The albatross.toml in this
        folder itself, and --config, are for the process: host, port, TLS, log.
    example_config
        Print a configuration file with every setting and its meaning, and exit.
    **flags
        The settings of a service.
    """
    if example_config:
        print(example(), end="")
        return
    if (folder is None) == (root is None):
        raise InvalidInput("exactly one of these is needed: a folder, an address postgresql://…, or --root FOLDER")
    if root is not None:
        _serve_all(root, flags)
        return
    assert folder is not None
    found = settled(folder_of(folder), flags)
    configure_log(found["log"].value, sys.stderr)
    serve_home(home_of(folder, found["snapshots"].value), options_of(found), address_of(found))


def _serve_all(root: Path, flags: Mapping[str, Any]) -> None:
    """Flags for shops apply to each of them."""
    whole = {key: setting for key, setting in BY_KEY.items() if setting.process}
    each = {key: setting for key, setting in BY_KEY.items() if not setting.process and key != "snapshots"}
    found = settled(root, flags, whole)
    for_shops = {key: word for key, word in flags.items() if key in each}
    settled(None, for_shops, each)  # report errors that concern all shops at once

    def how(folder: Path) -> How:
        told = settled(folder, for_shops, each)
        return How(options_of(told), told["allow_origin"].value)

    configure_log(found["log"].value, sys.stderr)
    serve_root(root, how, address_of(found))
