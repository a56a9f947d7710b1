"""Tuples that are handed over by address are the same to the functions that get them."""

from typing import Any, NamedTuple

import numpy as np

from albatross.kernels.building.addressing import by_address
from albatross.kernels.compiling import kernel, program
from albatross.kernels.operations import ALL_ITEMS, Slate


class Nested(NamedTuple):
    slate: Slate
    number: int


@kernel
def summed(slate: Any, most: int) -> float:
    """Writes, too: what it reads again by the address must not have changed."""
    total = 0.0
    for position in range(min(slate.scores.size, most)):
        slate.means[position] = 2.0 * slate.scores[position]
        total += slate.means[position] + (1.0 if slate.whole else 0.0)
    return total


def handed_over(slate: Any, most: int) -> float:
    lent = by_address(slate)
    return summed(lent, most) + summed(lent, 1)


def not_handed_over(nested: Any, most: int) -> float:
    lent = by_address(nested)
    slate, number = lent  # a tuple of another package stays one
    return summed(slate, most) + number  # type: ignore[no-any-return]


def a_slate() -> Slate:
    return Slate(np.arange(4.0), np.zeros(4), True, ALL_ITEMS)


def test_a_function_reads_and_writes_by_address() -> None:
    for function in (handed_over, program(handed_over)):
        slate = a_slate()
        assert function(slate, 3) == 6.0 + 3.0 + 0.0 + 1.0
        assert slate.means.tolist() == [0.0, 2.0, 4.0, 0.0]


def test_a_tuple_of_another_package_stays_a_tuple() -> None:
    for function in (not_handed_over, program(not_handed_over)):
        assert function(Nested(a_slate(), 5), 3) == 14.0
