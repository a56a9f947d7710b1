"""Rows of a table: find changed ones, and add to some."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.operations import Items

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of the digest of a row: odd, with well mixed bits."""
HALF, ODD = np.uint64(32), np.uint64(1)
BLOCK = 64
"""Rows that are digested together: the steps of one row wait for each other, those of different rows do not."""


def note_moved(now: NDArray[Any], before: NDArray[Any], rounding: float, rows: Items, moved: NDArray[np.bool_]) -> None:
    """Mark those of these rows in which some number has changed by more than this fraction of itself."""
    for position in range(rows.size):
        row = rows[position]
        changed = moved[row]
        for column in range(now.shape[1]):
            changed |= abs(now[row, column] - before[row, column]) > rounding * abs(now[row, column])
        moved[row] = changed


@kernel
def digest_rows(rows: NDArray[np.uint64], digests: NDArray[np.uint64]) -> None:
    """A digest of each row, never zero: rows with the same bits have the same one."""
    for first in range(0, rows.shape[0], BLOCK):
        last = min(first + BLOCK, rows.shape[0])
        for row in range(first, last):
            digests[row] = 0
        for column in range(rows.shape[1]):
            for row in range(first, last):
                digest = (digests[row] ^ rows[row, column]) * MULTIPLIER
                digests[row] = digest ^ (digest >> HALF)
        for row in range(first, last):
            digests[row] |= ODD


def add_rows(
    total: NDArray[Any], others: NDArray[Any], sent: NDArray[Any], rows: Items, added: NDArray[Any], start: int, stop: int
) -> None:
    """Add to some rows of three tables. What is added from `start` to `stop` is the own part: it is new only to what was sent."""
    for position in range(rows.size):
        row = rows[position]
        is_own = start <= position < stop
        for column in range(total.shape[1]):
            sent[row, column] += added[position, column]
            if not is_own:
                total[row, column] += added[position, column]
                others[row, column] += added[position, column]
