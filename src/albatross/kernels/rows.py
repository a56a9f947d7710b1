"""Rows of a table: find changed ones, and add to some."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.operations import Items

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of the digest of a row: odd, with well mixed bits."""
HALF, ODD = np.uint64(32), np.uint64(1)


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
    for row in range(rows.shape[0]):
        digest = np.uint64(0)
        for column in range(rows.shape[1]):
            digest = (digest ^ rows[row, column]) * MULTIPLIER
            digest ^= digest >> HALF
        digests[row] = digest | ODD


def add_rows(total: NDArray[Any], others: NDArray[Any], sent: NDArray[Any], rows: Items, added: NDArray[Any], is_own: bool) -> None:
    """Add to some rows of three tables. The own part is new only to what was sent."""
    for position in range(rows.size):
        row = rows[position]
        for column in range(total.shape[1]):
            sent[row, column] += added[position, column]
            if not is_own:
                total[row, column] += added[position, column]
                others[row, column] += added[position, column]
