"""Joins two users: sums change as if all ratings had come from one user.

Vectors that were fitted before stay, except those of the user and of the items that the other has rated.
If the user has no ratings, the user gets the other's row, and nothing is refitted.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.alternating.steps import Ellipsoid
from albatross.kernels.compiling import kernel
from albatross.kernels.mean_field.learning import Room, refit_item, refit_user
from albatross.kernels.mean_field.moments import add_moments
from albatross.kernels.mean_field.partners import pair_weight
from albatross.kernels.mean_field.population import count_belief, own_users
from albatross.kernels.operations import Items
from albatross.kernels.pairs import NOTHING, Pairs, find_same, join_pairs
from albatross.kernels.replacing import refit_again

Rows = NDArray[np.int32]
"""Working space: two rows with a place per item."""


@kernel
def swap_rows(rows: NDArray[np.float64], user: int, other: int) -> None:
    for a in range(rows.shape[1]):
        rows[user, a], rows[other, a] = rows[other, a], rows[user, a]


@kernel
def list_items(pairs: Pairs, user: int, items: Items) -> int:
    """The items that the user has rated, into the first places. Returns their number."""
    count, entry = 0, pairs.first[user]
    while entry != NOTHING:
        items[count] = pairs.items[entry]
        count += 1
        entry = pairs.following[entry]
    return count


@kernel
def join_alternating(state: Any, settings: Any, scratch: Ellipsoid, user: int, other: int, room: Rows) -> None:
    """For Alternating Linear Bandits: in the sums of the items that the other has rated, replace the other's vector by the user's."""
    pairs = state.pairs
    if pairs.first[other] == NOTHING:
        return
    scratch.current[0] = -1  # no rating was added, but the ellipsoid must be recomputed
    if pairs.first[user] == NOTHING:
        swap_rows(state.user_factors, user, other)
        join_pairs(pairs, user, other, room[0])
        return
    kept, gone = state.user_factors[user], state.user_factors[other]
    entry = pairs.first[other]
    while entry != NOTHING:
        gram, moment = state.item_grams[pairs.items[entry]], state.item_moments[pairs.items[entry]]
        position = 0
        for a in range(kept.size):
            for b in range(a + 1):
                gram[position] += pairs.plays[entry] * (kept[a] * kept[b] - gone[a] * gone[b])
                position += 1
            moment[a] += pairs.totals[entry] * (kept[a] - gone[a])
        entry = pairs.following[entry]
    items, count = room[1], list_items(pairs, other, room[1])
    join_pairs(pairs, user, other, room[0])
    for position in range(count):
        refit_again(state, settings, scratch, items[position])


@kernel
def join_mean_field(state: Any, work: Room, user: int, other: int, room: Rows) -> None:
    """For a mean-field factorization: join the sums over pairs and over the items that the other has rated; refit them and the user."""
    pairs, counts = state.pairs, state.counts[0]
    if pairs.first[other] == NOTHING:
        return
    n_users, place = own_users(counts), 0
    while state.users[place] != other:
        place += 1
    if pairs.first[user] == NOTHING:
        state.users[place] = user
        swap_rows(state.user_moments, user, other)
        state.residuals[user], state.residuals[other] = state.residuals[other], state.residuals[user]
        join_pairs(pairs, user, other, room[0])
        return
    for number in range(place, n_users - 1):
        state.users[number] = state.users[number + 1]
    counts.users -= 1
    if place <= counts.user_turn:
        counts.user_turn -= 1  # so that the next turn is that of the same user as before
    items, count = room[1], list_items(pairs, other, room[1])
    join_sums(state, user, other, room[0])
    join_pairs(pairs, user, other, room[0])
    nobody, gone = work.weights, state.user_moments[other]
    nobody.fill(0.0)
    count_belief(state.user_squares, state.user_spreads, gone, nobody)
    gone.fill(0.0)
    state.figures[0].residual -= state.residuals[other]
    state.residuals[other] = 0.0
    refit_user(state, work, user, 0.0)
    for position in range(count):
        refit_item(state, work, items[position], 0.0)


@kernel
def join_sums(state: Any, user: int, other: int, same: Items) -> None:
    """In sums over pairs, assign the ratings of the other to the user. The pairs themselves are not changed."""
    figures, counts, pairs = state.figures[0], state.counts[0], state.pairs
    share, origin = figures.share, figures.origin
    kept, gone = state.user_moments[user], state.user_moments[other]
    find_same(pairs, user, other, same)
    entry = pairs.first[other]
    while entry != NOTHING:
        item, plays = pairs.items[entry], pairs.plays[entry]
        mean = pairs.totals[entry] / plays
        weight = pair_weight(share, plays)
        value = weight * (mean - origin)
        add_moments(state.item_sums[item], state.item_rights[item], gone, -weight, -value)
        own = same[item]
        if own != NOTHING:
            before, both = pairs.plays[own], pairs.plays[own] + plays
            mean_before = pairs.totals[own] / before
            figures.within += before * plays / both * (mean - mean_before) ** 2
            counts.repeats += 1  # one of two first ratings is no longer a first one
            weight = pair_weight(share, both) - pair_weight(share, before)
            value = pair_weight(share, both) * ((pairs.totals[own] + pairs.totals[entry]) / both - origin)
            value -= pair_weight(share, before) * (mean_before - origin)
        add_moments(state.item_sums[item], state.item_rights[item], kept, weight, value)
        entry = pairs.following[entry]
