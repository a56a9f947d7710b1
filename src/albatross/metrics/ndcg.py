"""Normalized discounted cumulative gain of the ranking whose first item was shown."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.parameters import Recipe, parameter
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector


@dataclass(frozen=True)
class NDCG(Recipe):
    """Rank the candidates by score, discount the relevance of the first few by rank, divide by the best possible value.

    DCG = Σ gain(relevance of rank r) / log₂(r + 1) over the first min(depth, |C|) ranks. Ties are ranked by index. If every
    relevance is zero, or there is one candidate, the value is 1 and the step counts as trivial.
    """

    depth: int = parameter(5, "how many ranks count", at_least=1)
    gain: str = parameter("linear", "relevance as it is, or 2^relevance − 1", choices=("linear", "exponential"))

    def ruler(self, n_items: int) -> "Ruler":
        return Ruler(np.zeros(n_items), np.zeros(self.depth, np.int64), self.gain == "exponential")


class Ruler(NamedTuple):
    """Working space in compiled code: the relevances of the candidates, and the leading positions."""

    relevances: Vector
    positions: NDArray[np.int64]
    """As many as ranks count; empty: nothing is measured."""
    exponential: bool


NO_RULER = Ruler(np.zeros(0), np.zeros(0, np.int64), False)


@kernel
def discounted_gain(values: Vector, length: int, ruler: Ruler) -> float:
    """DCG of the ranking by `values`: the scores of a policy, or the relevances themselves for the best possible ranking."""
    positions = ruler.positions
    found = 0
    for candidate in range(length):
        if found == positions.size:
            if not values[candidate] > values[positions[found - 1]]:
                continue
        else:
            found += 1
        place = found - 1
        while place > 0 and values[candidate] > values[positions[place - 1]]:
            positions[place] = positions[place - 1]
            place -= 1
        positions[place] = candidate
    total = 0.0
    for place in range(found):
        gain = ruler.relevances[positions[place]]
        if ruler.exponential:
            gain = 2.0**gain - 1.0
        total += gain / math.log2(place + 2.0)
    return total
