"""Rows of a table: find changed ones, and add to some."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.operations import Items


def note_moved(now: NDArray[Any], before: NDArray[Any], rounding: float, moved: NDArray[np.bool_]) -> None:
    """Mark rows in which some number has changed by more than this fraction of itself."""
    for row in range(now.shape[0]):
        for column in range(now.shape[1]):
            if abs(now[row, column] - before[row, column]) > rounding * abs(now[row, column]):
                moved[row] = True


def add_rows(table: NDArray[Any], rows: Items, added: NDArray[Any]) -> None:
    """Add to some rows of a table."""
    for position in range(rows.size):
        row = rows[position]
        for column in range(table.shape[1]):
            table[row, column] += added[position, column]
