"""The items each user has rated, with number and sum of the ratings: one entry per distinct pair.

The entries of a user form a chain in the order in which the items were first rated, so memory grows with distinct
pairs and never with users × items, and a repeated rating costs no memory.

A chain is walked several times per rating. In order of arrival, almost every entry of a large table would be a cache miss. So when a
new entry is put at the end of the table, some places after it are reserved for further entries of the same user: a quarter of the
entries so far. A chain of a hundred entries then takes twenty contiguous runs. Where entries are stored is not learned;
two tables with the same chains are equal.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel

NOTHING = -1
"""End of a chain."""

FREE = -2
"""Instead of the next entry: this place is reserved for the user whose entries stand before it."""


KEPT = 4
"""One place is reserved per so many entries of the user."""


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
    """The number of entries, and the number of places including the reserved ones; the arrays may be longer."""


def no_pairs(n_users: int) -> Pairs:
    return Pairs(
        first=np.full(n_users, NOTHING, np.int32),
        following=np.empty(0, np.int32),
        items=np.empty(0, np.int32),
        plays=np.empty(0, np.int32),
        totals=np.empty(0),
        used=np.zeros(2, np.int64),
    )


def places(n_pairs: int) -> int:
    """So many places always hold so many pairs: a user has reserved places only after the last entry."""
    return n_pairs + n_pairs // KEPT


@kernel
def find_pair(pairs: Pairs, user: int, item: int) -> int:
    """The entry of a pair, or `NOTHING`."""
    entry = pairs.first[user]
    while entry != NOTHING and pairs.items[entry] != item:
        entry = pairs.following[entry]
    return int(entry)


@kernel
def remember(pairs: Pairs, user: int, item: int, reward: float) -> int:
    """Add one rating and return its entry. There must be `places` for one more pair."""
    entry = pairs.first[user]
    before, length = NOTHING, 0
    while entry != NOTHING and pairs.items[entry] != item:
        before = entry
        entry = pairs.following[entry]
        length += 1
    if entry == NOTHING:
        entry = np.int32(take_place(pairs, before, length))
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


@kernel
def take_place(pairs: Pairs, last: int, length: int) -> int:
    """The place after the last entry of a chain if it is reserved, else at the end of the table, where more are then reserved."""
    used = pairs.used[1]
    if last != NOTHING and last + 1 < used and pairs.following[last + 1] == FREE:
        return last + 1
    kept = length // KEPT
    for place in range(used + 1, used + 1 + kept):
        pairs.following[place] = FREE
    pairs.used[1] += 1 + kept
    return int(used)


@kernel
def find_same(pairs: Pairs, user: int, other: int, same: NDArray[np.int32]) -> None:
    """Per item that `other` has rated: the user's entry for it, or `NOTHING`. `same` has a place per item."""
    entry = pairs.first[other]
    while entry != NOTHING:
        same[pairs.items[entry]] = NOTHING
        entry = pairs.following[entry]
    entry = pairs.first[user]
    while entry != NOTHING:
        same[pairs.items[entry]] = entry
        entry = pairs.following[entry]


@kernel
def join_pairs(pairs: Pairs, user: int, other: int, same: NDArray[np.int32]) -> None:
    """Append the entries of `other` to those of the user; for items that both have rated, add them up. `same` is for `find_same`.

    The places that become free are not used again: `albatross.core.state.reserve` must be told of them.
    """
    find_same(pairs, user, other, same)
    last, entry = NOTHING, pairs.first[user]
    while entry != NOTHING:
        last = entry
        entry = pairs.following[entry]
    entry = pairs.first[other]
    pairs.first[other] = NOTHING
    while entry != NOTHING:
        following, own = pairs.following[entry], same[pairs.items[entry]]
        if own != NOTHING:
            pairs.plays[own] += pairs.plays[entry]
            pairs.totals[own] += pairs.totals[entry]
            pairs.used[0] -= 1
        else:
            if last == NOTHING:
                pairs.first[user] = entry
            else:
                pairs.following[last] = entry
            pairs.following[entry] = NOTHING
            last = entry
        entry = following
