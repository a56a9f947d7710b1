"""Tables on a terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import PaddingDimensions
from rich.table import Table

from albatross.studies.comparison import Comparison
from albatross.studies.report.comparison import comparison_blocks, headings, headline
from albatross.studies.report.study import Summary


def print_comparison(comparison: Comparison) -> None:
    """A line per policy, in narrow columns, so that long policy names fit."""
    table = _table(headings(comparison), folded=0, padding=(0, 1, 0, 0))
    for number, (told, rows) in enumerate(comparison_blocks(comparison).items()):
        if number > 0:
            table.add_section()
            table.add_row(f"told {told}:", style="bold")
        for row in rows:
            table.add_row(*row)
    _print(headline(comparison), table)


def print_summary(summary: Summary, folded: int = 0, narrowest: int = 0) -> None:
    """A block of lines per data set. Headings of number columns are wrapped; the width is that of the terminal or more."""
    table = _table(summary.headings, folded % len(summary.headings), padding=(0, 1))
    for title, rows in summary.blocks.items():
        table.add_row(title, style="bold")
        for first, *others in rows:
            table.add_row(f"  {first}", *others)
    _print(summary.title, table, narrowest)


def _table(headings: Sequence[str], folded: int, padding: PaddingDimensions) -> Table:
    """Words to the left, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, padding=padding, pad_edge=False)
    for number, heading in enumerate(headings):
        if number == folded:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _print(title: str, table: Table, narrowest: int = 0) -> None:
    console = Console(highlight=False)
    console.width = max(console.width, narrowest)
    console.print(title, markup=False)
    console.print(table)
