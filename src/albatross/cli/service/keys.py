"""`albatross keys`: the API keys of a service."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from albatross.core.errors import InvalidInput
from albatross.service.http.access.keys import OVERLAP, Keys
from albatross.service.storage.folder import make_folder
from albatross.service.storage.home import home_of, is_address

WIDE = 1_000
"""Columns. Wide enough that no cell is cut or folded, because programs may read the list."""

keys = App(name="keys", help="API keys of a service: create, list, rotate, revoke.", help_format="plaintext")


@keys.command
def create(folder: str, *, scope: Annotated[list[str], Parameter(negative=())], note: str = "", expires: str | None = None) -> None:
    """Create a key and print it. It cannot be printed again: only a hash is stored.

    A running service accepts it at once. From the first key on, every request needs a key.

    Parameters
    ----------
    folder
        The folder of the service, made if it does not exist; or an address postgresql://…
    scope
        What the key allows: recommend, feedback, read (users, version, series, metrics) or admin (catalogue, forgetting); may be given
        several times. No scope includes another.
    note
        What the key is for.
    expires
        When it expires: a time from now as 30d, 12h or 45m, or a day as 2026-12-31 (until its end, UTC). Never if not given.
    """
    end = None if expires is None else _end(expires)
    if not is_address(folder):
        make_folder(Path(folder))
    print(Keys(home_of(folder).keyring).create(scope, note, end))


@keys.command(name="list")
def show(folder: str) -> None:
    """List the keys of a service: their names and scopes, never the keys themselves.

    Parameters
    ----------
    folder
        The folder of the service, or an address postgresql://…
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("name", "scopes", "made", "expires", "note"):
        table.add_column(heading, no_wrap=True)
    now = datetime.now(UTC)
    for key in _existing(folder):
        end = "never" if key.expires is None else f"{key.expires}{' (over)' if key.expired(now) else ''}"
        table.add_row(*(Text(cell) for cell in (key.name, " ".join(key.scopes), key.made, end, key.note)))
    Console(highlight=False, soft_wrap=True, width=WIDE).print(table)


@keys.command
def revoke(folder: str, name: str) -> None:
    """Revoke a key at once, also in a running service.

    Parameters
    ----------
    folder
        The folder of the service, or an address postgresql://…
    name
        Name of the key, the part between the underscores; see: albatross keys list.
    """
    _existing(folder).revoke(name)


@keys.command
def rotate(folder: str, name: str, *, overlap: str | None = None) -> None:
    """Create a key with the scopes of another and print it. The old key still works for a while.

    If the old key was made with a lifetime, the new key gets the same lifetime, from now on.

    Parameters
    ----------
    folder
        The folder of the service, or an address postgresql://…
    name
        Name of the key to replace; see: albatross keys list.
    overlap
        How long both work, as 1d, 12h or 45m; 0m ends the old one at once. A day if not given.
    """
    print(_existing(folder).rotate(name, OVERLAP if overlap is None else _span("--overlap", overlap)))


def _end(given: str) -> datetime:
    """A point in time, from a day or a span."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", given):
        try:
            return datetime.fromisoformat(given).replace(tzinfo=UTC) + timedelta(days=1)
        except (ValueError, OverflowError) as error:  # the last day that Python supports has no next day
            raise InvalidInput(f"--expires is {given!r}, which is not a valid day; accepted: a day such as 2026-12-31") from error
    return datetime.now(UTC) + _span("--expires", given)


def _span(option: str, given: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,5})([dhm])", given)
    if found is None:
        raise InvalidInput(f"{option} is {given!r}; accepted: a number of days, hours or minutes, as 30d, 12h or 45m")
    return timedelta(**{{"d": "days", "h": "hours", "m": "minutes"}[found[2]]: int(found[1])})


def _existing(folder: str) -> Keys:
    if not is_address(folder) and not Path(folder).is_dir():
        raise InvalidInput(f"{folder} is not a folder; accepted: the folder of a service, or an address postgresql://…")
    return Keys(home_of(folder).keyring)
