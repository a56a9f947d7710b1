"""What a mean-field factorization expects of items for a user, and what each of them is worth to try.

These functions serve every policy whose state and scratch are those of `beliefs`. `albatross.policies.mean_field` has the formulas.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.gittins import LOOKS, bonus, worth, worth_of
from albatross.kernels.mean_field.learning import part_of_pair
from albatross.kernels.mean_field.measuring import measure_items, position_of
from albatross.kernels.mean_field.moments import expected_mean, row_start
from albatross.kernels.mean_field.population import kept_covariance, newcomer_offset, variance_of_vectors
from albatross.kernels.operations import Items, Slate
from albatross.kernels.pairs import NOTHING

USER_CAUTION = 4.0
"""Inflation of the user's part where vectors, not noise, explain the ratings: there, beliefs that treat users and items as independent
are overconfident."""
STRANGER_CAUTION = 4.0
"""For unrated items, the variance of item offsets is raised by so many standard errors: it is estimated from the rated ones."""
COMING_VISITS = 3.0
"""Expected number of later visits per user, at least; in addition, as many as so far."""
SHOWN = 4.0
"""Without repeats: how many times as often as the mean item a good item is expected to be shown from now on."""
LASTING = 5.0
"""What is learned of an item is expected to serve this many times the ratings so far: stopping exploration too early locks in a mediocre
item."""
ONLY_ONCE = 0.85
"""The share of an item's value to all users that is lost if every user must find out alone."""


@kernel
def describe_stranger(state: Any, once: float, moments: Vector) -> None:
    """The belief about an unrated item, from the prior and from the latest first ratings."""
    rank, kept = state.item_variance.size - 1, kept_covariance(state, once)
    center = newcomer_offset(state.figures[0])
    caution = 1.0 + STRANGER_CAUTION * math.sqrt(2.0 / (1.0 + state.counts[0].items))
    moments.fill(0.0)
    for a in range(rank):
        moments[row_start(a) + a] = kept * state.item_variance[a]
    moments[row_start(rank + 1) - 1] = 1.0
    moments[moments.size - 2] = center
    moments[moments.size - 1] = center * center + kept * caution * state.item_variance[rank]


@kernel
def expect_stranger(state: Any, scratch: Any) -> tuple[float, float, float]:
    """Mean, square and second moment of an item nobody has rated, for the user in `scratch.room`."""
    work, weights, size = scratch.room.work, scratch.room.weights, scratch.room.work.mean.size
    describe_stranger(state, scratch.room.once, scratch.stranger)
    second = 0.0
    for a in range(size - 1):
        second += weights[row_start(a) + a] * scratch.stranger[row_start(a) + a]
    second += weights[weights.size - 1] * scratch.stranger[weights.size - 1]  # all other products are zero
    square = work.whitener[size - 1, size - 1] * work.whitener[size - 1, size - 1]
    return expected_mean(work.moments, scratch.stranger, size), square, second


@kernel
def part_that_returns(state: Any, settings: Any, scratch: Any, user: int, candidates: Items, n_candidates: int) -> tuple[float, float]:
    """The share of this user's rated items that is offered again, and how many items were ever offered: candidates and rated items."""
    back, rated = 0.0, 0.0
    entry = state.pairs.first[user]
    while entry != NOTHING:
        back += position_of(scratch, candidates, state.pairs.items[entry], n_candidates) >= 0
        rated += 1.0
        entry = state.pairs.following[entry]
    return returning_part(state, settings, n_candidates, rated, back)


@kernel
def returning_part(state: Any, settings: Any, n_candidates: int, rated: float, back: float) -> tuple[float, float]:
    """The same for a user who has rated so many items, of which so many are candidates."""
    counts = state.counts[0]
    returns = settings.returns
    if math.isnan(returns):  # for a user without ratings, use the share of all
        returns = back / rated if rated > 0.0 else counts.repeats / max(counts.ratings - counts.users, 1)
    return returns, n_candidates + rated - back


@kernel
def count_strangers(scratch: Any, n_candidates: int) -> float:
    """How many candidates have no ratings, among those that `score_items` has scored."""
    strangers = 0.0
    for position in range(n_candidates):
        strangers += scratch.squares[position] < 0.0
    return strangers


@kernel
def visits_of_item(state: Any, returns: float, offered: float, strangers: float) -> float:
    """The number of later visits that profit from knowing an item better, N_t."""
    counts = state.counts[0]
    ratings, users, items = float(counts.ratings), float(counts.users), float(counts.items)
    items *= (offered + 1.0) / (offered - strangers + 1.0)  # unrated items are estimated by their share of the candidates
    common = min(offered / items, 1.0)
    once = min(SHOWN * ratings / items * common * common, common * users)
    return returns * (COMING_VISITS * users + LASTING * ratings) + (1.0 - returns) * once


class Scales(NamedTuple):
    """What the scores of all candidates share."""

    origin: float
    """What ratings are counted from, and the user's offset."""
    top: float
    inverse_noise: float
    """1 / (κ s²): what makes of the variance that the moments of an item hold its variance, in units of the noise."""
    for_user: float
    for_all: float
    """N_u and N_t."""
    own_part: float
    user_part: float
    item_part: float
    """Factors of the terms of e²; the first is the whole term of the pair."""
    strange_mean: float
    strange_square: float
    strange_second: float
    """For an unrated item."""


@kernel
def scales_of(state: Any, settings: Any, scratch: Any, returns: float, offered: float, strangers: float) -> Scales:
    figures, counts, size = state.figures[0], state.counts[0], scratch.room.work.mean.size
    strange_mean, strange_square, strange_second = expect_stranger(state, scratch)
    noise, share = figures.noise, figures.share
    for_user = COMING_VISITS + float(counts.ratings) / float(counts.users)
    for_all = visits_of_item(state, returns, offered, strangers)
    optimism = settings.optimism * settings.optimism
    own = figures.memory
    own_part = returns * optimism * noise * own * worth(for_user * own, own + LOOKS * (1.0 - own)) ** 2
    said = variance_of_vectors(state)
    user_part = returns * optimism * noise * (1.0 + USER_CAUTION * said / (said + noise))
    item_part = optimism * noise * (1.0 - ONLY_ONCE * share)
    top = top_of_scale(state, settings)
    return Scales(
        figures.origin + scratch.room.work.mean[size - 1],
        top,
        1.0 / (kept_covariance(state, scratch.room.once) * noise),
        for_user,
        for_all,
        own_part,
        user_part,
        item_part,
        strange_mean,
        strange_square,
        strange_second,
    )


class Reach(NamedTuple):
    """What the variances of an item's mean, the user's in units of the noise and the item's, are multiplied by to bound e² from above."""

    of_user: float
    of_item: float


@kernel
def reach_of(scales: Scales, square: float, variance: float) -> Reach:
    """For items whose variances are at most these. In units of its variance, trying an item is worth the more the larger that is."""
    ratio = variance * scales.inverse_noise
    of_user = scales.user_part * worth(scales.for_user * square, square + LOOKS) ** 2
    return Reach(of_user, scales.item_part * worth(scales.for_all * ratio, ratio + LOOKS) ** 2 * scales.inverse_noise)


@kernel
def square_of(scales: Scales, of_user: float, of_item: float) -> float:
    """e² of an item the user has not rated, from the variances of its mean in units of the noise; grows with both."""
    return scales.own_part + scales.user_part * worth_of(of_user, scales.for_user) + scales.item_part * worth_of(of_item, scales.for_all)


@kernel
def value_items(scales: Scales, squares: Vector, seconds: Vector, means: Vector, scores: Vector, length: int) -> None:
    """From means and variances to scores, as if the user had rated none of the items; leaves e² in `squares`."""
    for position in range(length):
        strange = squares[position] < 0.0
        mean = scales.strange_mean if strange else means[position]
        second = scales.strange_second if strange else seconds[position]
        of_user = scales.strange_square if strange else squares[position]
        square = square_of(scales, of_user, max(second - mean * mean, 0.0) * scales.inverse_noise)
        mean += scales.origin
        squares[position] = square
        means[position] = mean
        scores[position] = mean + bonus(square, scales.top - mean)


@kernel
def value_stranger(scratch: Any, scales: Scales) -> float:
    """The score of an item nobody has rated, by the same operations as that of any other."""
    block, packed = scratch.block, scratch.room.weights.size
    block[packed, 0] = -1.0
    value_items(scales, block[packed], block[packed + 2], block[packed + 1], block[packed + 3], 1)
    return block[packed + 3, 0]  # type: ignore[no-any-return]


@kernel
def rank_items(state: Any, settings: Any, scratch: Any, user: int, candidates: Items, slate: Slate) -> None:
    """Fill the slate for the user who was placed in `scratch.room`."""
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    measure_items(state, scratch, candidates, slate.means)
    returns, offered = part_that_returns(state, settings, scratch, user, candidates, n_candidates)
    scales = scales_of(state, settings, scratch, returns, offered, count_strangers(scratch, n_candidates))
    value_items(scales, scratch.squares, scratch.seconds, slate.means, slate.scores, n_candidates)
    remember_ratings(state, settings, scratch, user, candidates, n_candidates, slate)


@kernel
def remember_ratings(state: Any, settings: Any, scratch: Any, user: int, candidates: Items, n_candidates: int, slate: Slate) -> None:
    """For candidates that the user has rated, correct mean and score by memory."""
    pairs, share, top = state.pairs, state.figures[0].memory, top_of_scale(state, settings)
    entry = pairs.first[user]
    while entry != NOTHING:
        position = position_of(scratch, candidates, pairs.items[entry], n_candidates)
        if position >= 0:
            own = settings.memory * part_of_pair(share, pairs.plays[entry])
            slate.means[position] += own * (pairs.totals[entry] / pairs.plays[entry] - slate.means[position])
            slate.scores[position] = slate.means[position] + bonus((1.0 - own) * scratch.squares[position], top - slate.means[position])
        entry = pairs.following[entry]


@kernel
def top_of_scale(state: Any, settings: Any) -> float:
    return state.figures[0].largest if math.isinf(settings.top) else settings.top  # type: ignore[no-any-return]


@kernel
def nothing_known(n_candidates: int, slate: Slate, random: np.random.Generator) -> tuple[int, float]:
    """Before the first rating all items are equal."""
    slate.means[:n_candidates] = 0.0
    slate.scores[:n_candidates] = 0.0
    return any_best(slate.scores, n_candidates, random)
