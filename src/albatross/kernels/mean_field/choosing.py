"""The best item of a small catalogue by mean-field's score, exactly, without the roots and divisions for most items.

The score is mean + √(s L² / (s + L²)), L = top − mean > 0, s = e². The root grows with s, so for s ≤ s̄ the score reaches a number
b > mean only if

    s̄ L² ≥ (b − mean)² (s̄ + L²),

which needs neither a root nor a division. And with q(N) as in `gittins`, which grows with N,

    w(v, s², N)² = v q(N v / (v + 0.8 s²))² ≤ v q(N V / (V + 0.8 s²))²    for v ≤ V,

so that with V the largest variance of any candidate, such an s̄ is linear in both variances. Items that cannot reach the best score so
far are skipped. Items that the user has rated come first: once users have found what they like, the best is one of them, and nearly all
others are skipped.
"""

import math
from typing import Any

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.mean_field.gittins import bonus
from albatross.kernels.mean_field.learning import part_of_pair
from albatross.kernels.mean_field.measuring import is_met, measure_listed, weigh_partners
from albatross.kernels.mean_field.side_by_side import largest_parts, may_reach, value_lanes
from albatross.kernels.mean_field.valuing import (
    Reach,
    Scales,
    reach_of,
    returning_part,
    scales_of,
    square_of,
    top_of_scale,
    value_stranger,
)
from albatross.kernels.operations import Items, Slate
from albatross.kernels.pairs import NOTHING, find_pair
from albatross.kernels.search.catalogue import SAFETY
from albatross.kernels.search.lanes import LANES

NOT_TOLD = -1
"""Instead of a position: there are equals, and which of them it is depends on the order of all candidates."""

HIDDEN = -1.0
"""In place of a square: the item has no ratings, or it is already scored because of a rating of the user, given or supposed."""


@kernel
def choose_best(
    state: Any, settings: Any, scratch: Any, user: int, candidates: Items, supposed: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    """The choice of `rank_items` and `any_best` for the user in `scratch.room`, or NOT_TOLD, which is rare.

    With `supposed` ratings, as predicted, of items that have ratings: as `adjust_supposed` has it. The slate has only the chosen item.
    """
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    weigh_partners(scratch)
    n_listed, n_strangers = list_met(state, scratch, candidates)
    measure_listed(state, scratch, scratch.listed[: n_listed if candidates.size > 0 else 0], n_listed, scratch.means)
    rated, back, favourite = count_own(state, scratch, user, candidates, n_listed)
    returns, offered = returning_part(state, settings, n_candidates, rated, back)
    scales = scales_of(state, settings, scratch, returns, offered, float(n_strangers))
    strange_score = value_stranger(scratch, scales) if n_strangers > 0 else -math.inf
    reach = reach_of(scales, *largest_variances(scratch, n_listed))
    best, place, mean, ties = look_at_supposed(state, settings, scratch, scales, user, supposed, candidates, n_listed)
    best, place, mean, ties = look_at_own(
        state, settings, scratch, scales, reach, user, favourite, candidates, n_listed, best, place, mean, ties
    )
    best, place, mean, ties = look_at_others(scratch, scales, reach, n_listed, strange_score, best, place, mean, ties)
    position = int(scratch.places[place]) if candidates.size > 0 else place
    if strange_score > best:
        ties = n_strangers
        position = any_stranger(state, candidates, n_candidates, int(random.random() * ties) if ties > 1 else 0)
        best, mean = strange_score, scales.strange_mean + scales.origin
    elif ties != 1 or strange_score == best:
        return NOT_TOLD, 0.0
    slate.scores[position], slate.means[position] = best, mean
    return position, 1.0 / ties


@kernel
def list_met(state: Any, scratch: Any, candidates: Items) -> tuple[int, int]:
    """List the rated candidates, unless all items are candidates; returns how many to measure, and how many are unrated."""
    if candidates.size == 0:
        n_items = state.item_moments.shape[0]
        return n_items, n_items - state.counts[0].items
    n_listed = 0
    for position in range(candidates.size):
        item = np.uint32(candidates[position])  # unsigned: never counted from the end
        scratch.listed[n_listed], scratch.places[n_listed], scratch.positions[item] = item, position, n_listed
        n_listed += is_met(state, item)  # type: ignore[arg-type]
    return n_listed, candidates.size - n_listed


@kernel
def place_of(scratch: Any, candidates: Items, item: int, n_listed: int) -> int:
    """The place of an item in the list; −1 if it is not listed."""
    if candidates.size == 0:
        return item
    place = scratch.positions[item]
    return place if 0 <= place < n_listed and scratch.listed[place] == item else -1


@kernel
def count_own(state: Any, scratch: Any, user: int, candidates: Items, n_listed: int) -> tuple[float, float, int]:
    """The number of items that the user has rated, of those offered, and the entry of the one rated most often."""
    pairs, rated, back, most = state.pairs, 0.0, 0.0, 0
    entry = favourite = pairs.first[user]
    while entry != NOTHING:
        here = np.uint32(entry)  # unsigned: never counted from the end
        back += place_of(scratch, candidates, pairs.items[here], n_listed) >= 0
        rated += 1.0
        if pairs.plays[here] > most:
            favourite, most = entry, pairs.plays[here]
        entry = pairs.following[here]
    return rated, back, favourite


@kernel
def largest_variances(scratch: Any, n_listed: int) -> tuple[float, float]:
    """The largest variances of the listed items: that of the user, in units of the noise, and that of the item."""
    n_groups = -(-n_listed // LANES)
    for place in range(n_listed, LANES * n_groups):
        scratch.squares[place], scratch.means[place], scratch.seconds[place] = HIDDEN, 0.0, 0.0
    return largest_parts(scratch.squares, scratch.seconds, scratch.means, n_groups)


@kernel
def look_at_supposed(
    state: Any, settings: Any, scratch: Any, scales: Scales, user: int, supposed: Items, candidates: Items, n_listed: int
) -> tuple[float, int, float, int]:
    """Score, place and mean of the best of the items with supposed ratings, and how many have that score. Then they are hidden."""
    pairs, share, top = state.pairs, state.figures[0].memory, top_of_scale(state, settings)
    squares, means, seconds = scratch.squares, scratch.means, scratch.seconds
    best, best_place, best_mean, ties = -math.inf, 0, 0.0, 0
    for number in range(supposed.size):
        place = place_of(scratch, candidates, supposed[number], n_listed)
        if place >= 0:
            mean = means[place]
            square = square_of(scales, squares[place], max(seconds[place] - mean * mean, 0.0) * scales.inverse_noise)
            squares[place] = HIDDEN
            mean += scales.origin
            entry, plays = find_pair(pairs, user, supposed[number]), 0
            if entry != NOTHING:
                plays = pairs.plays[entry]
                mean += settings.memory * part_of_pair(share, plays) * (pairs.totals[entry] / plays - mean)
            score = mean + bonus((1.0 - settings.memory * part_of_pair(share, plays + 1)) * square, top - mean)
            if score >= best:
                ties = ties + 1 if score == best else 1
                best, best_place, best_mean = score, place, mean
    return best, best_place, best_mean, ties


@kernel
def look_at_own(
    state: Any,
    settings: Any,
    scratch: Any,
    scales: Scales,
    reach: Reach,
    user: int,
    favourite: int,
    candidates: Items,
    n_listed: int,
    best: float,
    best_place: int,
    best_mean: float,
    ties: int,
) -> tuple[float, int, float, int]:
    """The same for the items that the user has rated, given the best so far.

    The favourite comes first: it is often the best, and most others can then be skipped.
    """
    pairs, share, top = state.pairs, state.figures[0].memory, top_of_scale(state, settings)
    squares, means, seconds = scratch.squares, scratch.means, scratch.seconds
    entry, following = favourite, pairs.first[user]
    while entry != NOTHING:
        here = np.uint32(entry)
        place = place_of(scratch, candidates, pairs.items[here], n_listed)
        entry = following if following != favourite else pairs.following[following]
        following = pairs.following[entry]  # without an entry: of the last place, which is never read
        if place >= 0 and squares[place] != HIDDEN:
            mean = means[place]
            of_user, of_item = squares[place], max(seconds[place] - mean * mean, 0.0)
            squares[place] = HIDDEN
            mean += scales.origin
            own = settings.memory * part_of_pair(share, pairs.plays[here])
            mean += own * (pairs.totals[here] / pairs.plays[here] - mean)
            lacking, missing = top - mean, best - mean - SAFETY * (abs(best) + abs(mean))
            room = lacking * lacking
            most = (1.0 - own) * (scales.own_part + reach.of_user * of_user + reach.of_item * of_item)
            if not missing > 0.0 or not most * room < missing * missing * (most + room):
                score = mean + bonus((1.0 - own) * square_of(scales, of_user, of_item * scales.inverse_noise), lacking)
                if score >= best:
                    ties = ties + 1 if score == best else 1
                    best, best_place, best_mean = score, place, mean
    return best, best_place, best_mean, ties


@kernel
def look_at_others(
    scratch: Any,
    scales: Scales,
    reach: Reach,
    n_listed: int,
    strange_score: float,
    best: float,
    best_place: int,
    best_mean: float,
    ties: int,
) -> tuple[float, int, float, int]:
    """The same for all listed items, given the best so far: scores are computed only if one of LANES items may reach it.

    What comes after the last of them must be hidden, as `largest_variances` leaves it.
    """
    block, packed = scratch.block, scratch.room.weights.size
    values, means, seconds, scores = block[packed], block[packed + 1], block[packed + 2], block[packed + 3]
    n_groups = -(-n_listed // LANES)
    promising = scratch.promising[0] if scratch.promising[0] < n_groups else 0
    for number in range(n_groups):
        # The group of the last choice comes first: its best item is often good for other users too, so more is skipped.
        start = LANES * (promising if number == 0 else number - 1 if number <= promising else number)
        reaching = may_reach(scales, reach, scratch.squares, scratch.seconds, scratch.means, start, max(best, strange_score))
        if reaching == 0:
            continue
        if reaching & (reaching - 1) == 0:  # most often it is a single one, and then the roots of all lanes would take longer
            place = start
            while (reaching >> (place - start)) & 1 == 0:
                place += 1
            mean = scratch.means[place]
            square = square_of(scales, scratch.squares[place], max(scratch.seconds[place] - mean * mean, 0.0) * scales.inverse_noise)
            mean += scales.origin
            score = mean + bonus(square, scales.top - mean)
            if score >= best:
                ties = ties + 1 if score == best else 1
                best, best_place, best_mean = score, place, mean
                scratch.promising[0] = start // LANES
            continue
        for lane in range(LANES):
            values[lane], means[lane], seconds[lane] = (
                scratch.squares[start + lane],
                scratch.means[start + lane],
                scratch.seconds[start + lane],
            )
        value_lanes(scales, values, seconds, means, scores)
        for lane in range(LANES):
            if (reaching >> lane) & 1 and scores[lane] >= best:
                ties = ties + 1 if scores[lane] == best else 1
                best, best_place, best_mean = scores[lane], start + lane, means[lane]
                scratch.promising[0] = start // LANES
    return best, best_place, best_mean, ties


@kernel
def any_stranger(state: Any, candidates: Items, n_candidates: int, passed_over: int) -> int:
    """The position of an unrated candidate, after skipping this many."""
    for position in range(n_candidates):
        if not is_met(state, candidates[position] if candidates.size > 0 else position):
            if passed_over == 0:
                return position
            passed_over -= 1
    return 0
