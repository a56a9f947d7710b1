"""Learning a mean-field factorization online: users and items by turns, the population they come from, and how exact ratings are.

These functions serve every policy whose state has the arrays described in `albatross.policies.mean_field`. What a user or an item is
believed to be is explained in `albatross.kernels.moments`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.moments import Regression, add_moments, expected_mean, fit, partner_weights, row_start
from albatross.kernels.pairs import NOTHING, remember

ORIGIN, MEAN, SQUARES, LARGEST, NOISE, SHARE, MEMORY, CENTER, OFFSETS, WITHIN, RESIDUAL, AGREEMENT, CONTRAST = range(13)
"""Places in `figures`: the first rating, which all others are counted from; mean and summed squared distances of all ratings; the largest;
the noise s²; which part of it belongs to the pair, for fitting and for remembering (ρ); the mean item offset; the sum of the item offsets;
the summed squared distances of repeated ratings from those before; of pairs from what is expected of them; and, over second ratings
of a pair, how far they agree with the first against the model and how far the first stood from the model."""

RATINGS, REPEATS, USERS, ITEMS, NEXT_USER, NEXT_ITEM, REBUILT = range(7)
"""Places in `counts`: ratings; those of a pair that was rated before; users and items met; whose turn it is to be refitted; ratings at the
last rebuild."""

GUESSED_ROWS = 4.0
"""So many users, and items, the first guess of a prior variance is worth."""
GUESSED_PAIRS = 20.0
"""So many pairs the first guess of the noise is worth."""
GUESSED_NOISE = 0.1
"""The first guess of the noise, as a part of the variance of all ratings: little, so that structure is tried before noise is blamed."""
DOUBTED_REPEATS = 10.0
"""So many second ratings speak against memory from the start."""
FADING = 0.999
"""What a second rating counts for after the next one: the model they judge improves."""
EXACT = 0.003
"""Where repeated ratings differ by less than this part of the variance of all ratings, they count as the same."""
EXACT_GUESS, EXACT_REPEATS = 0.02, 3.0
"""How much they are taken to differ before any were seen, and how many repeats that is worth."""
SWEEPS_PER_EFOLD = 8.0
"""Every user and item is refitted whenever the ratings have grown by an eighth, as far as the limit per rating allows."""
REBUILD_INTERVAL = 4096
"""Ratings between two rebuilds of the item sums, at most, beside one per pair; while there are few ratings, a quarter of them."""


class Room(NamedTuple):
    """Room to work in. Not learned: any content serves."""

    work: Regression
    weights: Vector


@kernel
def part_of_pair(share: float, plays: int) -> float:
    """How much of what a pair's mean of `plays` ratings has over the model is its own: τ² / (τ² + σ² / plays)."""
    return share * plays / (share * plays + 1.0 - share)


@kernel
def pair_weight(share: float, plays: int) -> float:
    """What a pair's mean of `plays` ratings is worth to the model, in units of one rating: s² / (τ² + σ² / plays)."""
    return plays / (share * plays + 1.0 - share)


@kernel
def place_user(state: Any, room: Room, user: int) -> float:
    """Fit the user to the present items, into `room.work`; returns Σ w (y² − 2 y E[o]) over the user's pairs, o the offset of the item."""
    work, pairs = room.work, state.pairs
    work.sums.fill(0.0)
    work.rights.fill(0.0)
    share, origin = state.figures[SHARE], state.figures[ORIGIN]
    offset = work.sums.size - 2
    squares = 0.0
    entry = pairs.first[user]
    while entry != NOTHING:
        plays = pairs.plays[entry]
        weight = pair_weight(share, plays)
        value = pairs.totals[entry] / plays - origin
        moments = state.item_moments[pairs.items[entry]]
        add_moments(work.sums, work.rights, moments, weight, weight * value)
        squares += weight * value * (value - 2.0 * moments[offset])
        entry = pairs.following[entry]
    fit(work, work.sums, work.rights, state.user_variance, 0.0, state.figures[NOISE])
    return squares


@kernel
def refit_user(state: Any, room: Room, user: int) -> None:
    """Fit the user, and exchange what the sums of the items the user has rated hold of them."""
    squares = place_user(state, room, user)
    work, pairs, moments = room.work, state.pairs, state.user_moments[user]
    size = work.mean.size
    partner_weights(work.moments, size, room.weights)
    for position in range(room.weights.size):
        squares += room.weights[position] * work.sums[position]
    for a in range(size):
        squares -= 2.0 * work.mean[a] * work.rights[a]
        place = row_start(a) + a if a < size - 1 else moments.size - 1
        state.user_squares[a] += work.moments[place] - moments[place]
    squares = max(squares, 0.0)
    state.figures[RESIDUAL] += squares - state.residuals[user]
    state.residuals[user] = squares
    change = work.sums
    for position in range(moments.size):
        change[position] = work.moments[position] - moments[position]
        moments[position] = work.moments[position]
    share, origin = state.figures[SHARE], state.figures[ORIGIN]
    entry = pairs.first[user]
    while entry != NOTHING:
        plays, item = pairs.plays[entry], pairs.items[entry]
        weight = pair_weight(share, plays)
        value = pairs.totals[entry] / plays - origin
        add_moments(state.item_sums[item], state.item_rights[item], change, weight, weight * value)
        entry = pairs.following[entry]


@kernel
def believe_item(state: Any, item: int, moments: Vector) -> None:
    """Replace what is believed of an item."""
    before, column = state.item_moments[item], state.item_columns[item]
    size = state.item_variance.size
    center = state.figures[CENTER]
    offset = before.size - 2
    for a in range(size - 1):
        place = row_start(a) + a
        state.item_squares[a] += moments[place] - before[place]
    if before[row_start(size) - 1] == 0.0:
        state.item_squares[size - 1] += center * center
    state.item_squares[size - 1] += moments[offset + 1] - before[offset + 1] - 2.0 * center * (moments[offset] - before[offset])
    state.figures[OFFSETS] += moments[offset] - before[offset]
    for position in range(before.size):
        before[position] = moments[position]
        column[position] = moments[position]


@kernel
def refit_item(state: Any, room: Room, item: int) -> None:
    figures = state.figures
    fit(room.work, state.item_sums[item], state.item_rights[item], state.item_variance, figures[CENTER], figures[NOISE])
    believe_item(state, item, room.work.moments)


@kernel
def meet_item(state: Any, room: Room, item: int, random: np.random.Generator) -> None:
    """Give an item that was never rated a vector drawn from the population: users fitted to zero vectors would stay zero for ever."""
    moments = room.work.moments
    size = state.item_variance.size
    one, last = row_start(size - 1), row_start(size)
    center = state.figures[CENTER]
    for a in range(size - 1):
        moments[one + a] = math.sqrt(state.item_variance[a]) * random.standard_normal()
    for a in range(size - 1):
        for b in range(a + 1):
            moments[row_start(a) + b] = moments[one + a] * moments[one + b]
        moments[last + a] = center * moments[one + a]
    moments[one + size - 1] = 1.0
    moments[last + size - 1] = center
    moments[last + size] = center * center
    believe_item(state, item, moments)
    state.items[state.counts[ITEMS]] = item
    state.counts[ITEMS] += 1


@kernel
def spread_of(state: Any) -> float:
    """The variance of all ratings; while they are all the same, their square."""
    ratings, mean = state.counts[RATINGS], state.figures[MEAN]
    spread = state.figures[SQUARES] / ratings
    return spread if spread > 1e-12 * mean * mean else max(mean * mean, 1e-12)  # type: ignore[no-any-return]


@kernel
def learn_population(state: Any) -> None:
    """Prior variances, mean item offset and noise, from sums over all users, items and ratings."""
    figures, counts = state.figures, state.counts
    size = state.user_variance.size
    spread = spread_of(state)
    repeats, share = float(counts[REPEATS]), figures[SHARE]
    within = (figures[WITHIN] + 2.0 * GUESSED_NOISE * spread) / (repeats + 2.0)
    signal = max(spread - within, GUESSED_NOISE * spread)
    for a in range(size):
        # Half of what is not noise is taken to be structure, a quarter the users' and a quarter the items' offsets.
        guess = math.sqrt(0.5 * signal / (size - 1)) if a < size - 1 else 0.25 * signal
        least = 1e-6 * guess
        state.user_variance[a] = max((state.user_squares[a] + GUESSED_ROWS * guess) / (counts[USERS] + GUESSED_ROWS), least)
        state.item_variance[a] = max((state.item_squares[a] + GUESSED_ROWS * guess) / (counts[ITEMS] + GUESSED_ROWS), least)
    figures[CENTER] = (figures[OFFSETS] + figures[MEAN] - figures[ORIGIN]) / (counts[ITEMS] + 1.0)
    # Repeats tell noise from structure at once; what the model leaves unexplained does so late, and where repeats are exact, alone.
    trust = max(share, 1.0 / (1.0 + repeats))
    total = figures[WITHIN] + trust * figures[RESIDUAL] + GUESSED_PAIRS * GUESSED_NOISE * spread
    figures[NOISE] = max(total / ((1.0 - share) * repeats + trust * state.pairs.used[0] + GUESSED_PAIRS), 1e-6 * spread)


@kernel
def rebuild(state: Any) -> None:
    """Judge how exact ratings are, and sum everything afresh: one pass over all pairs, users and items met so far."""
    figures, counts, pairs = state.figures, state.counts, state.pairs
    size = state.user_variance.size
    counts[REBUILT] = counts[RATINGS]
    spread = spread_of(state)
    memory = max(figures[AGREEMENT] / (figures[CONTRAST] + DOUBTED_REPEATS), 0.0)
    differing = (figures[WITHIN] / spread + EXACT_REPEATS * EXACT_GUESS) / (counts[REPEATS] + EXACT_REPEATS)
    # A model that does not fit yet looks like pairs with a mind of their own: for fitting, a half-hearted memory counts little.
    figures[SHARE] = min(max(memory**4, EXACT / (EXACT + differing)), 1.0)
    figures[MEMORY] = min(memory, 1.0)
    share, origin, center = figures[SHARE], figures[ORIGIN], figures[CENTER]
    figures[RESIDUAL] = figures[OFFSETS] = 0.0
    state.user_squares.fill(0.0)
    state.item_squares.fill(0.0)
    for number in range(counts[ITEMS]):
        item = state.items[number]
        moments = state.item_moments[item]
        state.item_sums[item].fill(0.0)
        state.item_rights[item].fill(0.0)
        for a in range(size - 1):
            state.item_squares[a] += moments[row_start(a) + a]
        offset = moments[moments.size - 2]
        state.item_squares[size - 1] += moments[moments.size - 1] - 2.0 * center * offset + center * center
        figures[OFFSETS] += offset
    for number in range(counts[USERS]):
        user = state.users[number]
        moments = state.user_moments[user]
        figures[RESIDUAL] += state.residuals[user]
        for a in range(size):
            state.user_squares[a] += moments[row_start(a) + a if a < size - 1 else moments.size - 1]
        entry = pairs.first[user]
        while entry != NOTHING:
            plays, item = pairs.plays[entry], pairs.items[entry]
            weight = pair_weight(share, plays)
            value = pairs.totals[entry] / plays - origin
            add_moments(state.item_sums[item], state.item_rights[item], moments, weight, weight * value)
            entry = pairs.following[entry]


@kernel
def count_rating(state: Any, user: int, reward: float) -> None:
    figures, counts = state.figures, state.counts
    if counts[RATINGS] == 0:
        figures[ORIGIN] = figures[LARGEST] = reward
    figures[LARGEST] = max(figures[LARGEST], reward)
    counts[RATINGS] += 1
    distance = reward - figures[MEAN]
    figures[MEAN] += distance / counts[RATINGS]
    figures[SQUARES] += distance * (reward - figures[MEAN])
    if counts[RATINGS] == 1:
        learn_population(state)
    if state.pairs.first[user] == NOTHING:
        state.users[counts[USERS]] = user
        counts[USERS] += 1


@kernel
def add_rating(state: Any, room: Room, user: int, item: int, reward: float) -> None:
    """Remember the rating, with what it says of earlier ones of the pair, and add it to the sums of the item."""
    figures, pairs = state.figures, state.pairs
    share, origin = figures[SHARE], figures[ORIGIN]
    entry = pairs.first[user]
    while entry != NOTHING and pairs.items[entry] != item:
        entry = pairs.following[entry]
    weight, value = 0.0, 0.0
    if entry != NOTHING:
        plays = pairs.plays[entry]
        before = pairs.totals[entry] / plays
        if plays == 1:
            # Did the first rating of this pair foretell the second better than the model, which knows the first too?
            place_user(state, room, user)
            expected = origin + expected_mean(room.work.moments, state.item_moments[item], room.work.mean.size)
            contrast = before - expected
            scale = contrast * contrast + figures[NOISE]
            figures[AGREEMENT] = FADING * figures[AGREEMENT] + (reward - expected) * contrast / scale
            figures[CONTRAST] = FADING * figures[CONTRAST] + contrast * contrast / scale
        figures[WITHIN] += plays / (plays + 1.0) * (reward - before) ** 2
        state.counts[REPEATS] += 1
        weight = -pair_weight(share, plays)
        value = weight * (before - origin)
    entry = remember(pairs, user, item, reward)
    plays = pairs.plays[entry]
    present = pair_weight(share, plays)
    value += present * (pairs.totals[entry] / plays - origin)
    add_moments(state.item_sums[item], state.item_rights[item], state.user_moments[user], weight + present, value)


@kernel
def refresh(state: Any, room: Room, limit: int) -> None:
    """Refit the users and items whose turn it is: many while ratings are few, later one of each, never more than `limit`."""
    counts = state.counts
    pace = SWEEPS_PER_EFOLD / counts[RATINGS]
    for _ in range(min(max(int(pace * counts[USERS]), 1), limit, counts[USERS])):
        counts[NEXT_USER] = (counts[NEXT_USER] + 1) % counts[USERS]
        refit_user(state, room, state.users[counts[NEXT_USER]])
    for _ in range(min(max(int(pace * counts[ITEMS]), 1), limit, counts[ITEMS])):
        counts[NEXT_ITEM] = (counts[NEXT_ITEM] + 1) % counts[ITEMS]
        refit_item(state, room, state.items[counts[NEXT_ITEM]])
    if counts[RATINGS] - counts[REBUILT] >= min(counts[RATINGS] // 4, REBUILD_INTERVAL + state.pairs.used[0]):
        rebuild(state)
