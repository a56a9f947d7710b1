"""Learning a mean-field factorization online: users and items by turns, the population they come from, and how exact ratings are.

These functions serve every policy whose state has the arrays described in `albatross.policies.mean_field`. What a user or an item is
believed to be is explained in `albatross.kernels.moments`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.moments import Regression, add_moments, certain, describe, expected_mean, fit, partner_weights, row_start
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
GUESSED_USERS, GUESSED_ITEMS, GUESSED_VECTORS = 0.2, 0.5, 4.5
"""The first guess of the variance of user offsets, item offsets and of what vectors say, as parts of the variance of all ratings but for
noise. It is much: what is thought too large shrinks soon, while vectors thought too short are slow to begin, and items slow to be tried."""
DOUBTED_REPEATS = 10.0
"""So many second ratings speak against memory from the start."""
FADING = 0.999
"""What a second rating counts for after the next one: the model they judge improves."""
EXACT = 0.003
"""Where repeated ratings differ by less than this part of the variance of all ratings, they count as the same."""
EXACT_GUESS, EXACT_REPEATS = 0.02, 1.0
"""How much they are taken to differ before any were seen, and how many repeats that is worth."""
NEWS = 0.05
"""A rating that only says again what the user said before, and weighs less than this, refits nobody."""
SWEEPS_PER_EFOLD = 8.0
"""Every user and item is refitted whenever the ratings have grown by an eighth, as far as the limit per rating allows."""
LONGEST_PAUSE = 4.0
"""So many ratings pass at most before somebody else has a turn."""
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
def count_belief(squares: Vector, spreads: Vector, before: Vector, after: Vector) -> None:
    """Exchange, in sums over all users or all items, what was believed of one of them for what is believed now."""
    size = squares.size
    one, last = row_start(size - 1), row_start(size)
    for a in range(size):
        mean = one + a if a < size - 1 else last + size - 1
        second = row_start(a) + a if a < size - 1 else last + size
        square = after[mean] * after[mean] - before[mean] * before[mean]
        squares[a] += square
        spreads[a] += after[second] - before[second] - square


@kernel
def refit_user(state: Any, room: Room, user: int) -> None:
    """Fit the user, and exchange what the sums of the items the user has rated hold of them."""
    squares = place_user(state, room, user)
    describe(room.work, state.figures[NOISE])
    work, pairs, moments = room.work, state.pairs, state.user_moments[user]
    size = work.mean.size
    partner_weights(work.moments, size, room.weights)
    for position in range(room.weights.size):
        squares += room.weights[position] * work.sums[position]
    for a in range(size):
        squares -= 2.0 * work.mean[a] * work.rights[a]
    count_belief(state.user_squares, state.user_spreads, moments, work.moments)
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
    count_belief(state.item_squares, state.item_spreads, before, moments)
    state.figures[OFFSETS] += moments[before.size - 2] - before[before.size - 2]
    for position in range(before.size):
        before[position] = moments[position]
        column[position] = moments[position]


@kernel
def refit_item(state: Any, room: Room, item: int) -> None:
    figures = state.figures
    fit(room.work, state.item_sums[item], state.item_rights[item], state.item_variance, figures[CENTER], figures[NOISE])
    describe(room.work, figures[NOISE])
    believe_item(state, item, room.work.moments)


@kernel
def meet_item(state: Any, room: Room, item: int, random: np.random.Generator) -> None:
    """Give an item that was never rated a vector drawn from the population: users fitted to zero vectors would stay zero for ever."""
    mean, moments = room.work.mean, room.work.moments
    rank = mean.size - 1
    for a in range(rank):
        mean[a] = math.sqrt(state.item_variance[a]) * random.standard_normal()
    mean[rank] = state.figures[CENTER]
    certain(mean, moments)
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
def guess_variance(coordinate: int, rank: int, signal: float, offsets: float) -> float:
    """The first guess of a prior variance, from the variance of all ratings but for noise."""
    return math.sqrt(GUESSED_VECTORS * signal / rank) if coordinate < rank else offsets * signal


@kernel
def guess_population(state: Any) -> None:
    """What is thought of users, items and noise from the start."""
    rank = state.user_variance.size - 1
    spread = spread_of(state)
    signal = (1.0 - GUESSED_NOISE) * spread
    for a in range(rank + 1):
        state.user_variance[a] = guess_variance(a, rank, signal, GUESSED_USERS)
        state.item_variance[a] = guess_variance(a, rank, signal, GUESSED_ITEMS)
    state.figures[NOISE] = GUESSED_NOISE * spread


@kernel
def settled(variance: float, square: float, spread: float, rows: float, guess: float) -> float:
    """What the prior variance of a coordinate ought to be: its squared means, over as many rows as ratings have determined."""
    determined = max(rows - spread / variance, 0.0)
    return max((square + GUESSED_ROWS * guess) / (determined + GUESSED_ROWS), 1e-6 * guess)


@kernel
def turns(state: Any, rows: int, limit: int) -> int:
    """How many of these rows a rating refits by turns: many while ratings are few, later one now and then, never more than `limit`."""
    ratings = state.counts[RATINGS]
    pause = int(min(ratings / (SWEEPS_PER_EFOLD * rows), LONGEST_PAUSE))
    if pause > 1 and ratings % pause > 0:
        return 0
    return min(max(int(SWEEPS_PER_EFOLD * rows / ratings), 1), limit, rows)


@kernel
def learn_population(state: Any, limit: int) -> None:
    """Prior variances, mean item offset and noise, from sums over all users, items and ratings."""
    figures, counts = state.figures, state.counts
    rank = state.user_variance.size - 1
    spread = spread_of(state)
    users, items = float(counts[USERS]), float(counts[ITEMS])
    repeats, share, center = float(counts[REPEATS]), figures[SHARE], figures[CENTER]
    within = (figures[WITHIN] + 2.0 * GUESSED_NOISE * spread) / (repeats + 2.0)
    signal = max(spread - within, GUESSED_NOISE * spread)
    # No faster than rows are refitted: their means and variances still go by the former ones.
    users_pace = min((1 + turns(state, counts[USERS], limit)) / users, 1.0)
    items_pace = min((1 + turns(state, counts[ITEMS], limit)) / items, 1.0)
    for a in range(rank + 1):
        guess, present = guess_variance(a, rank, signal, GUESSED_USERS), state.user_variance[a]
        state.user_variance[a] += users_pace * (settled(present, state.user_squares[a], state.user_spreads[a], users, guess) - present)
        square = state.item_squares[a]
        if a == rank:
            square = max(square + center * (items * center - 2.0 * figures[OFFSETS]), 0.0)  # about their mean
        guess, present = guess_variance(a, rank, signal, GUESSED_ITEMS), state.item_variance[a]
        state.item_variance[a] += items_pace * (settled(present, square, state.item_spreads[a], items, guess) - present)
    figures[CENTER] = (figures[OFFSETS] + figures[MEAN] - figures[ORIGIN]) / (items + 1.0)
    # Repeats tell noise from structure at once; what the model leaves unexplained does so late, and where repeats are exact, alone.
    trust = max(share, 1.0 / (1.0 + repeats))
    total = figures[WITHIN] + trust * figures[RESIDUAL] + GUESSED_PAIRS * GUESSED_NOISE * spread
    figures[NOISE] = max(total / ((1.0 - share) * repeats + trust * state.pairs.used[0] + GUESSED_PAIRS), 1e-6 * spread)


@kernel
def rebuild(state: Any, nobody: Vector) -> None:
    """Judge how exact ratings are, and sum everything afresh: one pass over all pairs, users and items met so far. `nobody` is room."""
    figures, counts, pairs = state.figures, state.counts, state.pairs
    counts[REBUILT] = counts[RATINGS]
    spread = spread_of(state)
    memory = max(figures[AGREEMENT] / (figures[CONTRAST] + DOUBTED_REPEATS), 0.0)
    differing = (figures[WITHIN] / spread + EXACT_REPEATS * EXACT_GUESS) / (counts[REPEATS] + EXACT_REPEATS)
    # A model that does not fit yet looks like pairs with a mind of their own: for fitting, a half-hearted memory counts little.
    figures[SHARE] = min(max(memory**4, EXACT / (EXACT + differing)), 1.0)
    figures[MEMORY] = min(memory, 1.0)
    share, origin = figures[SHARE], figures[ORIGIN]
    figures[RESIDUAL] = figures[OFFSETS] = 0.0
    for sums in (state.user_squares, state.user_spreads, state.item_squares, state.item_spreads):
        sums.fill(0.0)
    nobody.fill(0.0)
    for number in range(counts[ITEMS]):
        item = state.items[number]
        moments = state.item_moments[item]
        state.item_sums[item].fill(0.0)
        state.item_rights[item].fill(0.0)
        count_belief(state.item_squares, state.item_spreads, nobody, moments)
        figures[OFFSETS] += moments[moments.size - 2]
    for number in range(counts[USERS]):
        user = state.users[number]
        moments = state.user_moments[user]
        figures[RESIDUAL] += state.residuals[user]
        count_belief(state.user_squares, state.user_spreads, nobody, moments)
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
    alike = figures[SQUARES] == 0.0
    counts[RATINGS] += 1
    distance = reward - figures[MEAN]
    figures[MEAN] += distance / counts[RATINGS]
    figures[SQUARES] += distance * (reward - figures[MEAN])
    if alike:  # ratings that are all the same tell nothing of the scale
        guess_population(state)
    if state.pairs.first[user] == NOTHING:
        state.users[counts[USERS]] = user
        counts[USERS] += 1


@kernel
def add_rating(state: Any, room: Room, user: int, item: int, reward: float) -> bool:
    """Remember the rating, with what it says of earlier ones of the pair, and add it to the sums of the item; was it news?"""
    figures, pairs = state.figures, state.pairs
    share, origin = figures[SHARE], figures[ORIGIN]
    entry = pairs.first[user]
    while entry != NOTHING and pairs.items[entry] != item:
        entry = pairs.following[entry]
    weight, value, distance = 0.0, 0.0, 0.0
    if entry != NOTHING:
        plays = pairs.plays[entry]
        before = pairs.totals[entry] / plays
        if plays == 1:
            # Did the first rating of this pair foretell the second better than the model, which knows the first too?
            place_user(state, room, user)
            certain(room.work.mean, room.work.moments)
            expected = origin + expected_mean(room.work.moments, state.item_moments[item], room.work.mean.size)
            contrast = before - expected
            scale = contrast * contrast + figures[NOISE]
            figures[AGREEMENT] = FADING * figures[AGREEMENT] + (reward - expected) * contrast / scale
            figures[CONTRAST] = FADING * figures[CONTRAST] + contrast * contrast / scale
        distance = (reward - before) ** 2
        figures[WITHIN] += plays / (plays + 1.0) * distance
        state.counts[REPEATS] += 1
        weight = -pair_weight(share, plays)
        value = weight * (before - origin)
    entry = remember(pairs, user, item, reward)
    plays = pairs.plays[entry]
    present = pair_weight(share, plays)
    value += present * (pairs.totals[entry] / plays - origin)
    add_moments(state.item_sums[item], state.item_rights[item], state.user_moments[user], weight + present, value)
    return weight + present > NEWS or distance > EXACT * figures[NOISE]


@kernel
def refresh(state: Any, room: Room, limit: int) -> None:
    """Refit the users and items whose turn it is, and now and then sum everything afresh."""
    counts = state.counts
    for _ in range(turns(state, counts[USERS], limit)):
        counts[NEXT_USER] = (counts[NEXT_USER] + 1) % counts[USERS]
        refit_user(state, room, state.users[counts[NEXT_USER]])
    for _ in range(turns(state, counts[ITEMS], limit)):
        counts[NEXT_ITEM] = (counts[NEXT_ITEM] + 1) % counts[ITEMS]
        refit_item(state, room, state.items[counts[NEXT_ITEM]])
    if counts[RATINGS] - counts[REBUILT] >= min(counts[RATINGS] // 4, REBUILD_INTERVAL + state.pairs.used[0]):
        rebuild(state, room.weights)
