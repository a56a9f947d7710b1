"""The best items of a large catalogue by mean-field's score, exactly, without looking at most of them.

Items without ratings all have the same score: they are one tie. Items that this user has rated are few, and are scored. The others are
in blocks (`shelving`), and a block whose bound is below the best score so far is skipped. `bounding` proves that none of the best can be
in it.
"""

import math
from typing import Any

import numpy as np
from numba.extending import overload

from albatross.kernels.compiling import OPTIONS, kernel
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.bounding import bound_blocks
from albatross.kernels.mean_field.measuring import measure_nearby, position_of, weigh_partners
from albatross.kernels.mean_field.shelving import ARRANGED, BLOCK, STAMP, UNMET, Shelves, bring_up_to_date
from albatross.kernels.mean_field.supposing import adjust_supposed
from albatross.kernels.mean_field.valuing import Scales, part_that_returns, remember_ratings, scales_of, value_items, value_stranger
from albatross.kernels.operations import Items, Slate
from albatross.kernels.pairs import NOTHING
from albatross.kernels.search.catalogue import SEARCHED_SHARE
from albatross.kernels.search.lanes import LANES
from albatross.kernels.search.listing import enlist, least_listed

FIRST_LOOKS = 4
"""So many blocks are scored first, in the order of their bounds: they set the threshold for the others. Sorting all would take longer."""

LAST_STAMP = 2**31 - 2
"""Marks are numbers of 32 bits."""


def is_searched(shelves: Any, candidates: Items, slate: Slate) -> bool:
    """Whether only the best of a large catalogue, or of a large part of it, are wanted."""
    return isinstance(shelves, Shelves) and worth_searching(shelves, candidates, slate)


def search(
    state: Any,
    settings: Any,
    scratch: Any,
    user: int,
    candidates: Items,
    supposed: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    """`search_shelves` for a large catalogue."""
    return search_shelves(state, settings, scratch, user, candidates, supposed, rewards, slate, random)


@overload(is_searched, jit_options=OPTIONS, strict=False)
def _compiled_is_searched(shelves, candidates, slate):  # type: ignore[no-untyped-def]
    def never(shelves, candidates, slate):  # type: ignore[no-untyped-def]
        return False

    return worth_searching if shelves.instance_class is Shelves else never


@overload(search, jit_options=OPTIONS, strict=False)
def _compiled_search(state, settings, scratch, user, candidates, supposed, rewards, slate, random):  # type: ignore[no-untyped-def]
    def nobody(state, settings, scratch, user, candidates, supposed, rewards, slate, random):  # type: ignore[no-untyped-def]
        return -1, 0.0

    room = scratch[scratch.fields.index("room")]
    return search_shelves if room[room.fields.index("shelves")].instance_class is Shelves else nobody


@kernel
def worth_searching(shelves: Shelves, candidates: Items, slate: Slate) -> bool:
    if slate.whole:
        return False
    return candidates.size == 0 or candidates.size >= SEARCHED_SHARE * shelves.places.size


@kernel
def search_shelves(
    state: Any,
    settings: Any,
    scratch: Any,
    user: int,
    candidates: Items,
    supposed: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    """What `rank_items` and `any_best` would choose for the user who was placed in `scratch.room`, and with what probability.

    Of the slate only the choice is filled, and what `slate.best` has room for. With `supposed` ratings, as `choose_supposing` has it.
    """
    shelves = scratch.room.shelves
    bring_up_to_date(shelves, state)
    n_candidates, n_strangers = _take_candidates(shelves, state, scratch, candidates)
    weigh_partners(scratch)
    returns, offered = part_that_returns(state, settings, scratch, user, candidates, n_candidates)
    scales = scales_of(state, settings, scratch, returns, offered, float(n_strangers))
    _begin(shelves, slate, n_candidates)
    strange_score = value_stranger(scratch, scales)
    _look_at_own(state, settings, scratch, scales, user, candidates, supposed, rewards, slate)
    ties, best, n_own_strangers = _judge_own(state, scratch, user, candidates, supposed, slate)
    n_strangers -= n_own_strangers
    strangers_tie = n_strangers > 0 and strange_score >= best
    if strangers_tie and strange_score > best:
        shelves.counts[STAMP] += 1
        ties, best = 0, strange_score
    ties, score = _look_at_blocks(state, scratch, scales, candidates, slate, n_strangers, strange_score, ties, best)
    strangers_tie = strangers_tie and score == best
    ties += n_strangers if strangers_tie else 0
    if slate.best.size > 0:
        _list_strangers(shelves, scales, candidates, n_candidates, slate, strange_score)
    passed_over = int(random.random() * ties) if ties > 1 else 0
    position = _tied(shelves, candidates, n_candidates, strangers_tie, passed_over)
    item = candidates[position] if candidates.size > 0 else position
    if shelves.places[item] == UNMET:
        slate.scores[position], slate.means[position] = strange_score, scales.strange_mean + scales.origin
    _show_own(shelves, state, user, supposed)
    return position, 1.0 / ties


@kernel
def _take_candidates(shelves: Shelves, state: Any, scratch: Any, candidates: Items) -> tuple[int, int]:
    """The number of candidates, and of those without ratings; after this, `position_of` works."""
    if candidates.size == 0:
        return shelves.places.size, shelves.places.size - state.counts[0].items
    n_strangers = 0
    for position in range(candidates.size):
        scratch.positions[candidates[position]] = position
        n_strangers += shelves.places[candidates[position]] == UNMET
    return candidates.size, n_strangers


@kernel
def _look_at_own(
    state: Any, settings: Any, scratch: Any, scales: Scales, user: int, candidates: Items, supposed: Items, rewards: Vector, slate: Slate
) -> None:
    """Fill the slate where the user's own items are, rated or supposed to be."""
    pairs, nearby = state.pairs, scratch.nearby
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    length, number = 0, 0
    entry = pairs.first[user]
    while entry != NOTHING or number < supposed.size:
        if entry != NOTHING:
            item = pairs.items[entry]
            entry = pairs.following[entry]
        else:
            item = supposed[number]
            number += 1
        if position_of(scratch, candidates, item, n_candidates) >= 0:
            nearby[length] = item
            length += 1
        if length == LANES or (entry == NOTHING and number == supposed.size):
            _value_nearby(state, scratch, scales, length)
            block, packed = scratch.block, scratch.room.weights.size
            for lane in range(length):
                position = position_of(scratch, candidates, nearby[lane], n_candidates)
                scratch.squares[position] = block[packed, lane]
                slate.means[position], slate.scores[position] = block[packed + 1, lane], block[packed + 3, lane]
            length = 0
    remember_ratings(state, settings, scratch, user, candidates, n_candidates, slate)
    adjust_supposed(state, settings, scratch, user, candidates, n_candidates, supposed, rewards, slate)


@kernel
def _value_nearby(state: Any, scratch: Any, scales: Scales, length: int) -> None:
    """Means, e² and scores of the first items in `nearby`, as if the user had rated none of them, into the last rows of the block."""
    block, packed = scratch.block, scratch.room.weights.size
    measure_nearby(state, scratch, length)
    value_items(scales, block[packed], block[packed + 2], block[packed + 1], block[packed + 3], length)


@kernel
def hidden(place: int) -> int:
    """A place that says: this item was looked at. Of that, again the place."""
    return UNMET - 2 - place


@kernel
def _begin(shelves: Shelves, slate: Slate, n_candidates: int) -> None:
    """Nothing is marked, and nothing listed."""
    if shelves.counts[STAMP] > LAST_STAMP - n_candidates:
        shelves.marks.fill(0)
        shelves.counts[STAMP] = 0
    shelves.counts[STAMP] += 1
    slate.best.fill(NOTHING)


@kernel
def _judge(shelves: Shelves, item: int, score: float, ties: int, best: float) -> tuple[int, float]:
    """How many items have the best score, and which that is, with this item among them. They are marked."""
    if score > best:
        shelves.counts[STAMP] += 1
        ties, best = 0, score
    if score == best:
        shelves.marks[item] = shelves.counts[STAMP]
        ties += 1
    return ties, best


@kernel
def _judge_own(state: Any, scratch: Any, user: int, candidates: Items, supposed: Items, slate: Slate) -> tuple[int, float, int]:
    """Score the user's own items, and hide them: their blocks score them as unrated by this user. Counts those without ratings."""
    pairs, shelves = state.pairs, scratch.room.shelves
    n_candidates = candidates.size if candidates.size > 0 else shelves.places.size
    ties, best, n_strangers, number = 0, -math.inf, 0, 0
    entry = pairs.first[user]
    while entry != NOTHING or number < supposed.size:
        if entry != NOTHING:
            item = pairs.items[entry]
            entry = pairs.following[entry]
        else:
            item = supposed[number]
            number += 1
        place = shelves.places[item]
        if place >= UNMET:  # not hidden yet
            shelves.places[item] = hidden(place)
            position = position_of(scratch, candidates, item, n_candidates)
            if position >= 0:
                n_strangers += place == UNMET
                ties, best = _judge(shelves, item, slate.scores[position], ties, best)
                if slate.best.size > 0:
                    enlist(slate, position)
    return ties, best, n_strangers


@kernel
def _show_own(shelves: Shelves, state: Any, user: int, supposed: Items) -> None:
    """Unhide the user's own items."""
    pairs, places = state.pairs, shelves.places
    entry = pairs.first[user]
    while entry != NOTHING:
        places[pairs.items[entry]] = hidden(places[pairs.items[entry]])
        entry = pairs.following[entry]
    for number in range(supposed.size):
        if places[supposed[number]] < UNMET:
            places[supposed[number]] = hidden(places[supposed[number]])


@kernel
def _look_at_blocks(
    state: Any,
    scratch: Any,
    scales: Scales,
    candidates: Items,
    slate: Slate,
    n_strangers: int,
    strange_score: float,
    ties: int,
    best: float,
) -> tuple[int, float]:
    """Judge the items of all blocks that may hold one of the best; the most promising first, as it tells what the others must reach."""
    shelves = scratch.room.shelves
    bound_blocks(state, scratch, scales)
    bounds, n_blocks = shelves.bounds, -(-shelves.counts[ARRANGED] // BLOCK)
    least = strange_score if n_strangers >= slate.best.size else -math.inf
    for turn in range(FIRST_LOOKS + n_blocks):
        block = turn - FIRST_LOOKS
        if turn < FIRST_LOOKS:
            block = 0
            for other in range(1, n_blocks):
                if bounds[other] > bounds[block]:
                    block = other
        threshold = best if slate.best.size == 0 else max(least, least_listed(slate))
        if n_blocks > 0 and not bounds[block] < threshold:
            ties, best = _look_at_block(state, scratch, scales, candidates, slate, block, threshold, ties, best)
            bounds[block] = -math.inf  # done
        elif turn < FIRST_LOOKS:
            break
    return ties, best


@kernel
def _look_at_block(
    state: Any, scratch: Any, scales: Scales, candidates: Items, slate: Slate, block: int, threshold: float, ties: int, best: float
) -> tuple[int, float]:
    shelves, values, packed = scratch.room.shelves, scratch.block, scratch.room.weights.size
    n_candidates = candidates.size if candidates.size > 0 else shelves.places.size
    stop = min((block + 1) * BLOCK, shelves.counts[ARRANGED])
    for start in range(block * BLOCK, stop, LANES):
        length = min(LANES, stop - start)
        for lane in range(length):
            scratch.nearby[lane] = shelves.items[start + lane]
        _value_nearby(state, scratch, scales, length)
        for lane in range(length):
            item, score = scratch.nearby[lane], values[packed + 3, lane]
            if score >= threshold and shelves.places[item] >= 0:
                position = position_of(scratch, candidates, item, n_candidates)
                if position >= 0:
                    slate.scores[position], slate.means[position] = score, values[packed + 1, lane]
                    ties, best = _judge(shelves, item, score, ties, best)
                    if slate.best.size > 0:
                        enlist(slate, position)
    return ties, best


@kernel
def _list_strangers(shelves: Shelves, scales: Scales, candidates: Items, n_candidates: int, slate: Slate, score: float) -> None:
    """Put the first unrated items on the list of the best, as far as they belong there."""
    position, room = 0, score >= least_listed(slate)
    while room and position < n_candidates:
        if shelves.places[candidates[position] if candidates.size > 0 else position] == UNMET:
            slate.scores[position], slate.means[position] = score, scales.strange_mean + scales.origin
            room = enlist(slate, position)
        position += 1


@kernel
def _tied(shelves: Shelves, candidates: Items, n_candidates: int, strangers_tie: bool, passed_over: int) -> int:
    """The position of one of the best, so many in the order of the candidates being passed over."""
    stamp = shelves.counts[STAMP]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        if shelves.marks[item] == stamp or (strangers_tie and shelves.places[item] == UNMET):
            if passed_over == 0:
                return position
            passed_over -= 1
    return 0
