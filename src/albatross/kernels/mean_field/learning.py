"""Learning a mean-field factorization online: users and items, each in turn given the others.

These functions serve every policy whose state has the arrays of `beliefs`. `moments` explains the beliefs about users and items,
`population` learns their priors.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector, inner
from albatross.kernels.mean_field.moments import (
    Regression,
    add_moments,
    certain,
    describe,
    expected_mean,
    fit,
    overshoot_mean,
    partner_weights,
    row_start,
)
from albatross.kernels.mean_field.partners import click_weight, pair_weight, sum_partners, tell_partners
from albatross.kernels.mean_field.population import (
    RECENT_NEWCOMERS,
    count_belief,
    count_rating,
    kept_covariance,
    learn_population,
    overshoot,
    own_users,
    spread_of,
    turns,
    variance_of_clicks,
)
from albatross.kernels.mean_field.shelving import Shelves, note_belief, note_sum
from albatross.kernels.pairs import NOTHING, find_pair, remember
from albatross.kernels.search.catalogue import SmallCatalogue

DOUBTED_REPEATS = 10.0
"""Weight of the prior against memory, in second ratings."""
GUESSED_MEMORY, GUESSED_REPEATS = 1.0 / 3.0, 20.0
"""The prior guess of ρ where half of all ratings are 1 and half 0, and its weight in second ratings: if every probability of a click is
equally likely, their variance is 1/12, that of a click 1/4. Without a guess users do not come back to what they liked, and ρ is learned
late. The rarer one of both is, the less can users differ: the guess is in proportion to a (1 − a), a the mean of all ratings."""
FADING = 0.999
"""Decay of a second rating with each further one, because the model it is compared with improves."""
EXACT = 0.003
"""Repeated ratings that differ by less than this fraction of the variance of all ratings count as equal."""
EXACT_GUESS, EXACT_REPEATS = 0.02, 1.0
"""Prior guess of that difference, and its weight in repeats."""
NEWS = 0.05
"""A rating that repeats an earlier one, and weighs less than this, causes no refit."""
REBUILD_INTERVAL = 4096
"""Limit of ratings between two rebuilds of the item sums, plus one per pair; while there are few ratings, a quarter of them."""


class Room(NamedTuple):
    """Working space. Not learned: any content will do."""

    work: Regression
    weights: Vector
    shelves: Shelves | SmallCatalogue
    once: float
    """Not room, but given: 1 if it is known that no pair comes back, else 0."""


@kernel
def part_of_pair(share: float, plays: int) -> float:
    """The share of a pair's mean residual over `plays` ratings that belongs to the pair: τ² / (τ² + σ² / plays)."""
    return share * plays / (share * plays + 1.0 - share)


@kernel
def place_user(state: Any, room: Room, user: int) -> float:
    """Fit the user to the current items, into `room.work`. Returns Σ w (y² − 2 y E[o]) over the user's pairs, o the item's offset."""
    work, pairs, figures = room.work, state.pairs, state.figures[0]
    chain = pairs.first[user], pairs.following, pairs.items, pairs.plays, pairs.totals
    clicks = variance_of_clicks(state)
    squares = sum_partners(*chain, state.item_moments, figures.share, figures.origin, clicks, work.sums, work.rights)
    fit(work, work.sums, work.rights, state.user_variance, 0.0, figures.noise)
    return squares


@kernel
def weight_for_user(state: Any, moments: Vector, plays: int) -> float:
    """The weight that `place_user` gives to so many ratings of an item with these moments."""
    figures, clicks = state.figures[0], variance_of_clicks(state)
    if plays == 0:
        return 0.0
    if clicks > 0.0:
        return click_weight(figures.share, plays, figures.origin + moments[moments.size - 2], clicks)
    return pair_weight(figures.share, plays)


@kernel
def refit_user(state: Any, room: Room, user: int, further: float) -> None:
    """Fit the user, and move its mean beyond the fit, by this fraction of the step.

    Exchanges the user's terms in the sums of the items the user has rated.
    """
    squares = place_user(state, room, user)
    figures = state.figures[0]
    work, pairs, moments = room.work, state.pairs, state.user_moments[user]
    if further > 0.0:
        overshoot_mean(work.mean, moments, further)
    describe(work, figures.noise)
    size = work.mean.size
    partner_weights(work.moments, size, room.weights)
    squares += inner(room.weights, work.sums) - 2.0 * inner(work.mean, work.rights)
    count_belief(state.user_squares, state.user_spreads, moments, work.moments)
    squares = max(squares, 0.0)
    figures.residual += squares - state.residuals[user]
    state.residuals[user] = squares
    change = work.sums
    for position in range(moments.size):
        change[position] = work.moments[position] - moments[position]
        moments[position] = work.moments[position]
    chain = pairs.first[user], pairs.following, pairs.items, pairs.plays, pairs.totals
    tell_partners(*chain, change, figures.share, figures.origin, state.item_sums, state.item_rights)


@kernel
def believe_item(state: Any, room: Room, item: int, moments: Vector) -> None:
    """Replace the belief about an item."""
    before, column, figures = state.item_moments[item], state.item_columns[item], state.figures[0]
    count_belief(state.item_squares, state.item_spreads, before, moments)
    offsets = figures.offsets
    figures.offsets += moments[before.size - 2] - before[before.size - 2]
    for position in range(before.size):
        before[position] = moments[position]
        column[position] = moments[position]
    note_belief(room.shelves, offsets, figures.offsets, item)


@kernel
def refit_item(state: Any, room: Room, item: int, further: float) -> None:
    """Fit the item, and move its mean beyond the fit, by this fraction of the step."""
    figures = state.figures[0]
    fit(room.work, state.item_sums[item], state.item_rights[item], state.item_variance, figures.center, figures.noise)
    if further > 0.0:
        overshoot_mean(room.work.mean, state.item_moments[item], further)
    describe(room.work, kept_covariance(state, room.once) * figures.noise)
    believe_item(state, room, item, room.work.moments)


@kernel
def note_newcomer(state: Any, room: Room, user: int, reward: float) -> None:
    """Compare the first rating of an item with what this user is predicted to give the mean item."""
    place_user(state, room, user)
    figures, left = state.figures[0], 1.0 - 1.0 / RECENT_NEWCOMERS
    expected = figures.origin + room.work.mean[room.work.mean.size - 1] + figures.center
    figures.surprise = left * figures.surprise + reward - expected
    figures.newcomers = left * figures.newcomers + 1.0


@kernel
def meet_item(state: Any, room: Room, item: int, random: np.random.Generator) -> None:
    """Give an unrated item a vector drawn from the prior: users fitted to zero vectors would stay zero for ever."""
    mean, moments, counts = room.work.mean, room.work.moments, state.counts[0]
    rank = mean.size - 1
    for a in range(rank):
        mean[a] = math.sqrt(state.item_variance[a]) * random.standard_normal()
    mean[rank] = state.figures[0].center
    certain(mean, moments)
    believe_item(state, room, item, moments)
    state.items[counts.items] = item
    counts.items += 1


@kernel
def guessed_memory(state: Any) -> float:
    """ρ by the second ratings so far and by its prior; may be negative."""
    figures, clicks = state.figures[0], variance_of_clicks(state)
    if clicks > 0.0:
        guess = GUESSED_MEMORY * 4.0 * clicks
        return (figures.agreement + GUESSED_REPEATS * guess) / (figures.contrast + GUESSED_REPEATS)  # type: ignore[no-any-return]
    return figures.agreement / (figures.contrast + DOUBTED_REPEATS)  # type: ignore[no-any-return]


@kernel
def rebuild(state: Any, room: Room) -> None:
    """Estimate the exactness of ratings, and recompute all sums: one pass over all pairs, users and items with ratings."""
    figures, counts, pairs, nobody = state.figures[0], state.counts[0], state.pairs, room.weights
    offsets = figures.offsets
    users, counts.rebuilt = own_users(counts), counts.ratings
    spread = spread_of(state)
    memory = max(guessed_memory(state), 0.0)
    differing = (figures.within / spread + EXACT_REPEATS * EXACT_GUESS) / (counts.repeats + EXACT_REPEATS)
    # A model that does not fit yet makes pairs look as if they had a part of their own. So for fitting, a moderate memory counts little.
    figures.share = min(max(memory**4, EXACT / (EXACT + differing)), 1.0)
    figures.memory = min(memory, 1.0)
    share, origin = figures.share, figures.origin
    figures.residual = figures.offsets = 0.0
    for sums in (state.user_squares, state.user_spreads, state.item_squares, state.item_spreads):
        sums.fill(0.0)
    nobody.fill(0.0)
    for number in range(counts.items):
        item = state.items[number]
        moments = state.item_moments[item]
        state.item_sums[item].fill(0.0)
        state.item_rights[item].fill(0.0)
        count_belief(state.item_squares, state.item_spreads, nobody, moments)
        figures.offsets += moments[moments.size - 2]
    note_sum(room.shelves, offsets, figures.offsets)
    for number in range(users):
        user = state.users[number]
        moments = state.user_moments[user]
        figures.residual += state.residuals[user]
        count_belief(state.user_squares, state.user_spreads, nobody, moments)
        entry = pairs.first[user]
        while entry != NOTHING:
            plays, item = pairs.plays[entry], pairs.items[entry]
            weight = pair_weight(share, plays)
            value = pairs.totals[entry] / plays - origin
            add_moments(state.item_sums[item], state.item_rights[item], moments, weight, weight * value)
            entry = pairs.following[entry]


@kernel
def add_rating(state: Any, room: Room, user: int, item: int, reward: float) -> bool:
    """Store the rating, compare it with earlier ones of the pair, and add it to the sums of the item. Returns whether it was news."""
    figures, pairs = state.figures[0], state.pairs
    share, origin = figures.share, figures.origin
    entry = find_pair(pairs, user, item)
    weight, value, distance = 0.0, 0.0, 0.0
    if entry != NOTHING:
        plays = pairs.plays[entry]
        before = pairs.totals[entry] / plays
        if plays == 1:
            # Does the first rating of this pair predict the second better than the model, which knows the first too?
            place_user(state, room, user)
            certain(room.work.mean, room.work.moments)
            expected = origin + expected_mean(room.work.moments, state.item_moments[item], room.work.mean.size)
            contrast = before - expected
            scale = contrast * contrast + figures.noise
            figures.agreement = FADING * figures.agreement + (reward - expected) * contrast / scale
            figures.contrast = FADING * figures.contrast + contrast * contrast / scale
        distance = (reward - before) ** 2
        figures.within += plays / (plays + 1.0) * distance
        state.counts[0].repeats += 1
        weight = -pair_weight(share, plays)
        value = weight * (before - origin)
    entry = remember(pairs, user, item, reward)
    plays = pairs.plays[entry]
    present = pair_weight(share, plays)
    value += present * (pairs.totals[entry] / plays - origin)
    add_moments(state.item_sums[item], state.item_rights[item], state.user_moments[user], weight + present, value)
    return weight + present > NEWS or distance > EXACT * figures.noise


@kernel
def refresh(state: Any, room: Room, limit: int) -> None:
    """Refit the users and items whose turn it is, and recompute all sums when it is due."""
    counts, further = state.counts[0], overshoot(state, limit)
    for _ in range(turns(state, counts.users, limit)):
        counts.user_turn = (counts.user_turn + 1) % own_users(counts)
        refit_user(state, room, state.users[counts.user_turn], further)
    for _ in range(turns(state, counts.items, limit)):
        counts.item_turn = (counts.item_turn + 1) % counts.items
        refit_item(state, room, state.items[counts.item_turn], further)
    if counts.ratings - counts.rebuilt >= min(counts.ratings // 4, REBUILD_INTERVAL + state.pairs.used[0]):
        rebuild(state, room)


@kernel
def learn(state: Any, room: Room, refreshes: int, user: int, item: int, reward: float, random: np.random.Generator) -> None:
    """Learn from one rating, and refit at most so many other users and items."""
    user, item = np.int64(user), np.int64(item)  # type: ignore[assignment]  # the type that `refresh` has, so that nothing is compiled for two
    count_rating(state, user, reward)
    if state.item_moments[item, row_start(state.item_variance.size) - 1] == 0.0:
        note_newcomer(state, room, user, reward)
        meet_item(state, room, item, random)
    if add_rating(state, room, user, item, reward):
        refit_user(state, room, user, 0.0)
        refit_item(state, room, item, 0.0)
    learn_population(state, refreshes, room.once)
    refresh(state, room, refreshes)
