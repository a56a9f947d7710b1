"""Who rated what, whatever the policy remembers: counts per user and item, and the pairs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.state import copied_into, reserve
from albatross.kernels.compiling import program
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember


class Ledger(NamedTuple):
    user_ratings: NDArray[np.int64]
    item_ratings: NDArray[np.int64]
    pairs: Pairs


def no_ledger(n_users: int, n_items: int) -> Ledger:
    return Ledger(np.zeros(n_users, np.int64), np.zeros(n_items, np.int64), no_pairs(n_users))


def grown(ledger: Ledger, n_users: int, n_items: int) -> Ledger:
    return copied_into(no_ledger(n_users, n_items), ledger)


def enter_all(
    ledger: Ledger, users: NDArray[np.int64], items: NDArray[np.int64], ratings: NDArray[np.float64]
) -> None:  # compiled: a replay enters millions
    for step in range(users.size):
        ledger.user_ratings[users[step]] += 1
        ledger.item_ratings[items[step]] += 1
        remember(ledger.pairs, users[step], items[step], ratings[step])


def read_rated(ledger: Ledger, user: int, items: NDArray[np.int32], plays: NDArray[np.int32]) -> int:
    """Write the items the user rated, and how often each; returns how many."""
    length = 0
    entry = ledger.pairs.first[user]
    while entry != NOTHING:
        items[length] = ledger.pairs.items[entry]
        plays[length] = ledger.pairs.plays[entry]
        length += 1
        entry = ledger.pairs.following[entry]
    return length


def entered(ledger: Ledger, users: NDArray[np.int64], items: NDArray[np.int64], ratings: NDArray[np.float64]) -> Ledger:
    """The ledger with these ratings, in their order."""
    ledger = reserve(ledger, users.size)
    program(enter_all)(ledger, users, items, ratings)
    return ledger


def rated_by(ledger: Ledger, user: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The items the user rated, in the order of their first rating, and how often each."""
    most = int(min(ledger.user_ratings[user], ledger.item_ratings.size))
    items, plays = np.empty(most, np.int32), np.empty(most, np.int32)
    length = program(read_rated)(ledger, user, items, plays) if most else 0
    return items[:length], plays[:length]
