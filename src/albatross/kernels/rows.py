"""Rows of a table: find changed ones, and add to some."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.operations import Items

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of the digest of a row: odd, with well mixed bits."""
HALF, ODD = np.uint64(32), np.uint64(1)


def note_moved(now: NDArray[Any], before: NDArray[Any], rounding: float, moved: NDArray[np.bool_]) -> None:
    """Mark rows in which some number has changed by more than this fraction of itself."""
    for row in range(now.shape[0]):
        for column in range(now.shape[1]):
            if abs(now[row, column] - before[row, column]) > rounding * abs(now[row, column]):
                moved[row] = True


def digest_rows(rows: NDArray[np.uint64], digests: NDArray[np.uint64]) -> None:
    """A digest of each row, never zero: rows with the same bits have the same one."""
    for row in range(rows.shape[0]):
        digest = np.uint64(0)
        for column in range(rows.shape[1]):
            digest = (digest ^ rows[row, column]) * MULTIPLIER
            digest ^= digest >> HALF
        digests[row] = digest | ODD


def add_rows(table: NDArray[Any], rows: Items, added: NDArray[Any]) -> None:
    """Add to some rows of a table."""
    for position in range(rows.size):
        row = rows[position]
        for column in range(table.shape[1]):
            table[row, column] += added[position, column]
