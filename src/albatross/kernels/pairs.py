"""Which items each user has rated, how often, and the sum of the ratings: one entry per distinct pair.

The entries of a user form a chain in the order in which the items were first rated, so memory grows with distinct
pairs and never with users × items, and a repeated rating costs no memory.

A chain is walked several times per rating. If its entries stood in the order of arrival, each would be a miss in every cache as soon as
there are many users. So whoever takes a place at the end of the table has some places behind it kept free for further entries, a quarter of
what the user has so far: a chain of a hundred entries stands in twenty runs of neighbours. Where entries stand is not learned;
two tables with the same chains are the same.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel

NOTHING = -1
"""End of a chain."""

FREE = -2
"""Instead of the next entry: this place is kept for the user whose entries stand before it."""


KEPT = 4
"""One place is kept free per so many entries of the user."""


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
    """How many entries there are, and how many places they and those kept free take; the arrays may be longer."""


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
    """So many places hold so many pairs, whoever rated them: of a user's, only those behind the last entry are free."""
    return n_pairs + n_pairs // KEPT


@kernel
def count_pairs(pairs: Pairs, user: int) -> int:
    """How many items the user has rated."""
    count, entry = 0, pairs.first[user]
    while entry != NOTHING:
        count += 1
        entry = pairs.following[entry]
    return count


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
    """A place behind the last entry of a chain if one is kept free there, else at the end, where some are kept free in turn."""
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
    """Per item that `other` has rated: the user's entry of it, or `NOTHING`. `same` has a place per item."""
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
    """Put the entries of `other` behind those of the user; what both have rated becomes one entry. `same` is room for `find_same`.

    Places that then belong to nobody are not used again: `albatross.core.state.reserve` must be told of them.
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
