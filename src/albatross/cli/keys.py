"""`albatross keys`: who may ask a service what."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from albatross.core.errors import InvalidInput
from albatross.service.keys import Keys

keys = App(name="keys", help="Who may ask a service what: create, list, revoke.", help_format="plaintext")


@keys.command
def create(folder: Path, *, scope: Annotated[list[str], Parameter(negative=())], note: str = "") -> None:
    """Make a key and print it. This is the only time that it can be seen: only a hash of it is kept.

    A running service knows it at once, and from the first key on answers nobody without one.

    Parameters
    ----------
    folder
        The folder of the service; made if it does not exist.
    scope
        What the key allows: recommend, feedback, read (users, version, series, metrics) or admin (catalogue, forgetting); may be given
        several times. No scope includes another.
    note
        What the key is for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    print(Keys(folder).create(scope, note))


@keys.command(name="list")
def show(folder: Path) -> None:
    """The keys of a service: their names, never themselves.

    Parameters
    ----------
    folder
        The folder of the service.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("name", "scopes", "made", "note"):
        table.add_column(heading)
    for key in _existing(folder):
        table.add_row(*(Text(cell) for cell in (key.name, " ".join(key.scopes), key.made, key.note)))
    Console(highlight=False, soft_wrap=True).print(table)


@keys.command
def revoke(folder: Path, name: str) -> None:
    """End a key, at once, in a running service, too.

    Parameters
    ----------
    folder
        The folder of the service.
    name
        Name of the key, the part between the underscores; see: albatross keys list.
    """
    _existing(folder).revoke(name)


def _existing(folder: Path) -> Keys:
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder; accepted: the folder of a service")
    return Keys(folder)
