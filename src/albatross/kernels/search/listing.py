"""The n best candidates of a slate, best first, during a search."""

import math
import sys

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix
from albatross.kernels.operations import Items, Slate

LARGEST = sys.float_info.max

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


@kernel
def tell_best(slate: Slate, candidates: Items, told: Matrix) -> None:
    """Item, score and mean of the best candidates, as finite numbers. Lists them if the policy has filled the slate instead."""
    if slate.best.size > 0 and slate.best[0] == NOBODY:
        least = -math.inf
        for position in range(candidates.size):
            if not slate.scores[position] < least and enlist(slate, position):
                least = least_listed(slate)
    for place in range(slate.best.size):
        position = slate.best[place]
        told[place, 0] = candidates[position]
        told[place, 1] = max(-LARGEST, min(slate.scores[position], LARGEST))
        told[place, 2] = max(-LARGEST, min(slate.means[position], LARGEST))
