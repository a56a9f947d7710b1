"""Which items each user has rated, how often, and the sum of the ratings: one entry per distinct pair.

The entries of a user form a chain in the order in which the items were first rated, so memory grows with distinct
pairs and never with users × items, and a repeated rating costs no memory.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel

NOTHING = -1
"""End of a chain."""


class Pairs(NamedTuple):
    first: NDArray[np.int32]
    """Per user: the first entry of the chain."""
    following: NDArray[np.int32]
    """Per entry: the next entry of the same user."""
    items: NDArray[np.int32]
    plays: NDArray[np.int32]
    totals: NDArray[np.float64]
    """Per entry: the item, how often it was rated, the sum of the ratings."""
    used: NDArray[np.int64]
    """How many entries there are; the arrays may be longer."""


def no_pairs(n_users: int) -> Pairs:
    return Pairs(
        first=np.full(n_users, NOTHING, np.int32),
        following=np.empty(0, np.int32),
        items=np.empty(0, np.int32),
        plays=np.empty(0, np.int32),
        totals=np.empty(0),
        used=np.zeros(1, np.int64),
    )


@kernel
def remember(pairs: Pairs, user: int, item: int, reward: float) -> int:
    """Add one rating and return its entry. There must be room for one more entry."""
    entry = pairs.first[user]
    before = NOTHING
    while entry != NOTHING and pairs.items[entry] != item:
        before = entry
        entry = pairs.following[entry]
    if entry == NOTHING:
        entry = np.int32(pairs.used[0])
        pairs.used[0] += 1
        if before == NOTHING:
            pairs.first[user] = entry
        else:
            pairs.following[before] = entry
        pairs.following[entry] = NOTHING
        pairs.items[entry] = item
        pairs.plays[entry] = 0
        pairs.totals[entry] = 0.0
    pairs.plays[entry] += 1
    pairs.totals[entry] += reward
    return int(entry)
