"""`albatross data`: the rating data sets of the paper, and where they are."""

import sys

from cyclopts import App
from rich import box
from rich.console import Console
from rich.table import Table

from albatross import datasets

data = App(name="data", help="The rating data sets: list, fetch, path.", help_format="plaintext")


@data.command(name="list")
def show() -> None:
    """List every data set, with its size if it is on this machine. Nothing is downloaded."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("data set")
    for heading in ("users", "items", "ratings", "density", "scale"):
        table.add_column(heading, justify="right", no_wrap=True)
    remarks = []
    for entry in datasets.listing():
        name, summary = entry.dataset.dataset_name(), entry.summary
        remarks += [f"{name}: {remark}" for remark in entry.remarks]
        if len(entry.paths) < len(entry.dataset.needed()):
            remarks.append(f"{name}: get it with: albatross data fetch {name}")
        if summary is None:
            table.add_row(name, *["–"] * 5)
            continue
        scale = "–" if summary.scale is None else f"{summary.scale[0]:g} to {summary.scale[1]:g}"
        table.add_row(name, f"{summary.users:,}", f"{summary.items:,}", f"{summary.ratings:,}", f"{summary.density:.4f}", scale)
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    for remark in remarks:
        console.print(remark, markup=False)


@data.command
def fetch(name: str, *, accept: bool = False) -> None:
    """Download a data set, unless it is already on this machine, and check it.

    Parameters
    ----------
    name
        Name of a data set; see: albatross data list.
    accept
        Accept the terms of use without a question. They are still printed.
    """
    for path in datasets.create(name).fetch(accept or None, _tell):
        print(path)


@data.command
def path(name: str) -> None:
    """Print where the archives of a data set are. Nothing is downloaded.

    Parameters
    ----------
    name
        Name of a data set; see: albatross data list.
    """
    for file in datasets.create(name).fetch(False, _tell):
        print(file)


def _tell(note: str) -> None:
    print(f"albatross: {note}", file=sys.stderr)
