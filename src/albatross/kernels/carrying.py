"""A user moves to another shard: sums over users lose the user's part here and gain it there."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.alternating.steps import Ellipsoid
from albatross.kernels.compiling import kernel
from albatross.kernels.joining import Rows, list_items
from albatross.kernels.mean_field.learning import Room, refit_item
from albatross.kernels.mean_field.moments import add_moments, row_start
from albatross.kernels.mean_field.partners import pair_weight
from albatross.kernels.mean_field.population import count_belief, own_users
from albatross.kernels.pairs import NOTHING
from albatross.kernels.replacing import refit_again


@kernel
def carry_alternating(state: Any, settings: Any, scratch: Ellipsoid, user: int, arriving: bool, room: Rows) -> None:
    """For Alternating Linear Bandits: the sums of the items that the user has rated; these items are refitted."""
    pairs, vector = state.pairs, state.user_factors[user]
    scratch.current[0] = -1  # no rating was added, but the ellipsoid must be recomputed
    sign = 1.0 if arriving else -1.0
    entry = pairs.first[user]
    while entry != NOTHING:
        gram, moment = state.item_grams[pairs.items[entry]], state.item_moments[pairs.items[entry]]
        position = 0
        for a in range(vector.size):
            for b in range(a + 1):
                gram[position] += sign * pairs.plays[entry] * vector[a] * vector[b]
                position += 1
            moment[a] += sign * pairs.totals[entry] * vector[a]
        entry = pairs.following[entry]
    for position in range(list_items(pairs, user, room[1])):
        refit_again(state, settings, scratch, room[1, position])


@kernel
def carry_mean_field(state: Any, work: Room, user: int, arriving: bool, room: Rows) -> None:
    """For a mean-field factorization: the list of users, the figures of the population, and the sums of the items; these are refitted."""
    pairs, counts, figures = state.pairs, state.counts[0], state.figures[0]
    if pairs.first[user] == NOTHING:
        return
    n_users, moments = own_users(counts), state.user_moments[user]
    nobody = work.weights
    nobody.fill(0.0)
    sign = 1.0 if arriving else -1.0
    entry = pairs.first[user]
    while entry != NOTHING:
        item, weight = pairs.items[entry], sign * pair_weight(figures.share, pairs.plays[entry])
        value = weight * (pairs.totals[entry] / pairs.plays[entry] - figures.origin)
        add_moments(state.item_sums[item], state.item_rights[item], moments, weight, value)
        entry = pairs.following[entry]
    figures.residual += sign * state.residuals[user]
    if arriving:
        state.users[n_users] = user
        counts.users += 1
        count_belief(state.user_squares, state.user_spreads, nobody, moments)
    else:
        place = 0
        while state.users[place] != user:
            place += 1
        for number in range(place, n_users - 1):
            state.users[number] = state.users[number + 1]
        counts.users -= 1
        if place <= counts.user_turn:
            counts.user_turn -= 1  # so that the next turn is that of the same user as before
        count_belief(state.user_squares, state.user_spreads, moments, nobody)
        moments.fill(0.0)
        state.residuals[user] = 0.0
    met = row_start(state.item_variance.size) - 1
    for position in range(list_items(pairs, user, room[1])):
        item = room[1, position]
        if state.item_moments[item, met] == 0.0:  # the shard that the user leaves may not have told of this item, and need not any more
            state.items[counts.items] = item
            counts.items += 1
        refit_item(state, work, item, 0.0)


@kernel
def append_pairs(pairs: Any, user: int, items: NDArray[np.int32], plays: NDArray[np.int32], totals: NDArray[np.float64]) -> None:
    """The pairs of a user who has none. There must be a place for each."""
    last = NOTHING
    for position in range(items.size):
        entry = np.int32(pairs.used[1])
        pairs.used[0] += 1
        pairs.used[1] += 1
        if last == NOTHING:
            pairs.first[user] = entry
        else:
            pairs.following[last] = entry
        pairs.following[entry] = NOTHING
        pairs.items[entry], pairs.plays[entry], pairs.totals[entry] = items[position], plays[position], totals[position]
        last = entry  # type: ignore[assignment]  # one type in compiled code
