"""Beliefs of a mean-field factorization after supposed ratings, and contributions of ratings to a mean.

These functions serve every policy whose state and scratch are those of `albatross.kernels.mean_field.beliefs`. They learn nothing.
"""

import math
from typing import Any

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.gittins import bonus
from albatross.kernels.mean_field.learning import part_of_pair, place_user, weight_for_user
from albatross.kernels.mean_field.measuring import is_met, position_of
from albatross.kernels.mean_field.moments import add_moments, expected_mean, fit, row_start, solve, whitened_square
from albatross.kernels.mean_field.partners import pair_weight
from albatross.kernels.mean_field.valuing import describe_stranger, top_of_scale
from albatross.kernels.operations import Items, Slate
from albatross.kernels.pairs import NOTHING, find_pair


@kernel
def describe_item(state: Any, once: float, item: int, moments: Vector) -> None:
    """The belief about an item, rated or not."""
    if state.item_moments[item, row_start(state.item_variance.size) - 1] == 0.0:
        describe_stranger(state, once, moments)
        return
    for position in range(moments.size):
        moments[position] = state.item_moments[item, position]


@kernel
def ratings_of_pair(state: Any, user: int, item: int) -> int:
    entry = find_pair(state.pairs, user, item)
    return 0 if entry == NOTHING else state.pairs.plays[entry]


@kernel
def weigh_further(state: Any, moments: Vector, plays: int, more: int) -> float:
    """The increase of the weight of a pair for its user, with so many further ratings of the item with these moments."""
    return weight_for_user(state, moments, plays + more) - weight_for_user(state, moments, plays)


@kernel
def suppose_ratings(state: Any, scratch: Any, user: int, items: Items, rewards: Vector) -> None:
    """Fit the user as if these ratings had been given too. NaN means as predicted: it counts for the covariance and leaves the mean."""
    work, moments, pairs, figures = scratch.room.work, scratch.stranger, state.pairs, state.figures[0]
    for position in range(items.size):
        if not math.isnan(rewards[position]):
            item = items[position]
            entry = find_pair(pairs, user, item)
            plays = 0 if entry == NOTHING else pairs.plays[entry]
            total = 0.0 if entry == NOTHING else pairs.totals[entry]
            describe_item(state, scratch.room.once, item, moments)
            present = weight_for_user(state, moments, plays + 1) * ((total + rewards[position]) / (plays + 1) - figures.origin)
            before = 0.0 if entry == NOTHING else weight_for_user(state, moments, plays) * (total / plays - figures.origin)
            add_moments(work.sums, work.rights, moments, weigh_further(state, moments, plays, 1), present - before)
    fit(work, work.sums, work.rights, state.user_variance, 0.0, figures.noise)
    for a in range(work.mean.size):
        work.rights[a] = work.mean[a]  # the right-hand side is no longer needed: it keeps the mean while the covariance is fitted again
    for position in range(items.size):
        if math.isnan(rewards[position]):
            describe_item(state, scratch.room.once, items[position], moments)
            plays = ratings_of_pair(state, user, items[position])
            add_moments(work.sums, work.rights, moments, weigh_further(state, moments, plays, 1), 0.0)
    fit(work, work.sums, work.rights, state.user_variance, 0.0, figures.noise)
    for a in range(work.mean.size):
        work.mean[a] = work.rights[a]


@kernel
def all_met_as_predicted(state: Any, items: Items, rewards: Vector) -> bool:
    """Whether all supposed ratings are as predicted, and of items that have ratings."""
    for position in range(items.size):
        if not (math.isnan(rewards[position]) and is_met(state, items[position])):
            return False
    return True


@kernel
def adjust_supposed(
    state: Any, settings: Any, scratch: Any, user: int, candidates: Items, n_candidates: int, items: Items, rewards: Vector, slate: Slate
) -> None:
    """For candidates with supposed ratings, correct mean and score by memory, for the user that `suppose_ratings` has fitted."""
    pairs, work, figures = state.pairs, scratch.room.work, state.figures[0]
    top = top_of_scale(state, settings)
    for number in range(items.size):
        item = items[number]
        position = position_of(scratch, candidates, item, n_candidates)
        if position >= 0:
            entry = find_pair(pairs, user, item)
            plays = 0 if entry == NOTHING else pairs.plays[entry]
            total = 0.0 if entry == NOTHING else pairs.totals[entry]
            own = settings.memory * part_of_pair(figures.memory, plays + 1)
            if not math.isnan(rewards[number]):
                describe_item(state, scratch.room.once, item, scratch.stranger)
                mean = figures.origin + work.mean[work.mean.size - 1] + expected_mean(work.moments, scratch.stranger, work.mean.size)
                slate.means[position] = mean + own * ((total + rewards[number]) / (plays + 1) - mean)
                top = max(top, rewards[number]) if math.isinf(settings.top) else top
            mean = slate.means[position]
            slate.scores[position] = mean + bonus((1.0 - own) * scratch.squares[position], top - mean)


@kernel
def attribute_mean(state: Any, settings: Any, scratch: Any, user: int, item: int, items: Items, parts: Vector) -> int:
    """By ⟨z, m⟩, m = G⁻¹ Σ w (E[x] (y − g) − E[x o]), z the regressors of the item; and by memory, where the pair itself was rated."""
    pairs, figures = state.pairs, state.figures[0]
    work, moments = scratch.room.work, scratch.stranger
    size = work.mean.size
    one, last = row_start(size - 1), row_start(size)
    place_user(state, scratch.room, user)
    describe_item(state, scratch.room.once, item, moments)
    solved = work.rights  # the right-hand side has done its work
    for a in range(size):
        solved[a] = moments[one + a]
    solve(work, solved, work.mean)
    count, place, own, remembered, entry = 0, NOTHING, 0.0, 0.0, pairs.first[user]
    while entry != NOTHING:
        if count < parts.size:
            other, plays = pairs.items[entry], pairs.plays[entry]
            weight, average, part = weight_for_user(state, state.item_moments[other], plays), pairs.totals[entry] / plays, 0.0
            for a in range(size):
                right = (average - figures.origin) * state.item_moments[other, one + a] - state.item_moments[other, last + a]
                part += solved[a] * weight * right
            items[count], parts[count] = other, part
            if other == item:
                place, own, remembered = count, settings.memory * part_of_pair(figures.memory, plays), average
        count += 1
        entry = pairs.following[entry]
    if place != NOTHING:
        for position in range(min(count, parts.size)):
            parts[position] *= 1.0 - own
        parts[place] += own * remembered
    return count


@kernel
def width_of_pair(state: Any, settings: Any, scratch: Any, user: int, item: int, more: int) -> float:
    """The standard deviation of the pair's mean: (1 − ρ_n)² (v_u + v_i) + (1 − ρ_n) τ², each after so many more ratings of the pair."""
    if state.counts[0].ratings == 0:
        return math.nan
    figures, room, work = state.figures[0], scratch.room, scratch.room.work
    place_user(state, room, user)
    user_mean, size, one = room.weights, work.mean.size, row_start(work.mean.size - 1)
    for a in range(size - 1):
        user_mean[a] = work.mean[a]
    user_mean[size - 1] = 1.0
    plays, moments = ratings_of_pair(state, user, item), scratch.stranger
    describe_item(state, scratch.room.once, item, moments)
    add_moments(work.sums, work.rights, moments, weigh_further(state, moments, plays, more) if more > 0 else 0.0, 0.0)
    fit(work, work.sums, work.rights, state.user_variance, 0.0, figures.noise)
    square = whitened_square(work, moments[one : one + size])
    weight = 0.0
    if more > 0:
        weight = pair_weight(figures.share, plays + more) - (pair_weight(figures.share, plays) if plays > 0 else 0.0)
    for position in range(work.sums.size):
        work.sums[position] = state.item_sums[item, position] + weight * state.user_moments[user, position]
    fit(work, work.sums, state.item_rights[item], state.item_variance, figures.center, figures.noise)
    square += whitened_square(work, user_mean[:size])
    left = 1.0 - settings.memory * part_of_pair(figures.memory, plays + more) if plays + more > 0 else 1.0
    return math.sqrt(figures.noise * (left * left * square + left * figures.memory))
