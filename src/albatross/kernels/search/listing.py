"""The n best candidates of a slate, best first, during a search."""

import math

from albatross.kernels.compiling import kernel
from albatross.kernels.operations import Slate

NOBODY = -1
"""This place of the list is still free."""


@kernel
def least_listed(slate: Slate) -> float:
    """The score that a candidate must reach to enter the list; while there is space, any score will do."""
    last = slate.best[slate.best.size - 1]
    return -math.inf if last == NOBODY else slate.scores[last]


@kernel
def enlist(slate: Slate, position: int) -> bool:
    """Put a candidate on the list if it belongs there: by score, ties by position."""
    best, scores = slate.best, slate.scores
    place = best.size
    while place > 0:
        other = best[place - 1]
        if other != NOBODY and (scores[other] > scores[position] or (scores[other] == scores[position] and other < position)):
            break
        place -= 1
        if place + 1 < best.size:
            best[place + 1] = other
    if place == best.size:
        return False
    best[place] = position
    return True
