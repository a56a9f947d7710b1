"""A large catalogue for a mean-field factorization: the items met, in blocks of neighbours, each block with bounds on what it holds.

What is known of an item are the numbers r = (f, 1, o, C): means of factors and offset, and their covariance, packed. A block has a center
and a reach per number, |r − center| ≤ reach for each of its items. When an item is refitted its block is widened to hold it; an item met
for the first time joins the last block. Beliefs are looked up in the state: nothing is copied here. `note_belief` only takes down whose
beliefs have changed, so that learning does not wait for memory; the next search widens the blocks (`bring_up_to_date`). When as much has
changed as there is, everything is arranged anew. All this is scratch: it is made from the state whenever it is missing.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from albatross.kernels.compiling import OPTIONS, kernel
from albatross.kernels.linear import Vector, packed_size
from albatross.kernels.mean_field.moments import row_start
from albatross.kernels.search.arranging import SAMPLE, cut
from albatross.kernels.search.catalogue import SmallCatalogue, is_worth_searching
from albatross.kernels.search.lanes import LANES

BLOCK = 32
"""Items per block."""

WIDTH_WEIGHT = 2.0
"""Weight of an item's standard deviation relative to its mean when items are cut into blocks: it adds about so much to a score."""

LEAST_CHANGES, CHANGED_SHARE = 4096, 8
"""Limit of recorded changes before everything is arranged again: so many, or one in so many items."""

UNMET = -1
"""Instead of a place: this item has no ratings."""

ARRANGED, CHANGED, WIDENED, STAMP = range(4)
"""Counters: places taken, changes recorded, changes that have widened a block since the last arrangement, and stamps given."""


class Shelves(NamedTuple):
    known: Vector
    """The sum of all item offsets as this arrangement knows it: any change of a belief changes it. Not a number if nothing is known."""
    counts: NDArray[np.int64]
    items: NDArray[np.int32]
    """The item at each place, block after block."""
    places: NDArray[np.int32]
    """The place of each item."""
    marks: NDArray[np.int32]
    """Per item, a stamp that marks ties."""
    changed: NDArray[np.int32]
    """Items whose belief has changed."""
    centers: NDArray[np.float64]
    reaches: NDArray[np.float64]
    """(n_blocks / LANES, numbers, LANES)"""
    sizes: NDArray[np.float64]
    """(n_blocks / LANES, LANES): per block the largest E[|z|²]."""
    bounds: Vector
    """Per block, an upper bound of the scores of its items."""
    numbers: Vector
    """Space for the numbers of one item."""
    keys: Vector
    """Sort keys of the items, while arranging."""
    ranges: NDArray[np.int64]
    """Ranges still to be cut, while arranging."""
    toward: Vector
    away: Vector
    """Of the user: what the mean is the inner product of (f, 1, o) with, and its absolute values."""
    stretches: Vector
    """Of the user: the norms of the whitener's columns."""
    spreading: Vector
    outspread: Vector
    """Of the user: what the variance is the inner product of C with, and its absolute values."""
    results: NDArray[np.float64]
    """Space for results of a group of blocks."""


def new_shelves(rank: int, n_items: int) -> Shelves | SmallCatalogue:
    """A catalogue that is not arranged yet; none for few items."""
    if not is_worth_searching(n_items):
        return SmallCatalogue()
    n_groups = -(-n_items // (BLOCK * LANES))
    spread = packed_size(rank + 1)
    numbers = rank + 2 + spread
    return Shelves(
        known=np.full(1, np.nan),
        counts=np.zeros(4, np.int64),
        items=np.zeros(n_groups * LANES * BLOCK, np.int32),
        places=np.full(n_items, UNMET, np.int32),
        marks=np.zeros(n_items, np.int32),
        changed=np.zeros(max(LEAST_CHANGES, n_items // CHANGED_SHARE), np.int32),
        centers=np.zeros((n_groups, numbers, LANES)),
        reaches=np.zeros((n_groups, numbers, LANES)),
        sizes=np.zeros((n_groups, LANES)),
        bounds=np.zeros(n_groups * LANES),
        numbers=np.zeros(numbers),
        keys=np.zeros(n_items),
        ranges=np.zeros(128, np.int64),
        toward=np.zeros(rank + 2),
        away=np.zeros(rank + 2),
        stretches=np.zeros(rank + 1),
        spreading=np.zeros(spread),
        outspread=np.zeros(spread),
        results=np.zeros((6, LANES)),
    )


def note_belief(shelves: Any, before: float, after: float, item: int) -> None:
    """Record that the belief about this item, and no other, has changed, and with it the sum of all offsets."""
    if isinstance(shelves, Shelves):
        take_down(shelves, before, after, item)


def note_sum(shelves: Any, before: float, after: float) -> None:
    """Record that offsets were summed again and no belief has changed."""
    if isinstance(shelves, Shelves) and shelves.known[0] == before:
        shelves.known[0] = after


@overload(note_belief, jit_options=OPTIONS, strict=False)
def _compiled_note_belief(shelves, before, after, item):  # type: ignore[no-untyped-def]
    def ignore(shelves, before, after, item):  # type: ignore[no-untyped-def]
        pass

    return take_down if shelves.instance_class is Shelves else ignore


@overload(note_sum, jit_options=OPTIONS, strict=False)
def _compiled_note_sum(shelves, before, after):  # type: ignore[no-untyped-def]
    def exchange(shelves, before, after):  # type: ignore[no-untyped-def]
        if shelves.known[0] == before:
            shelves.known[0] = after

    def ignore(shelves, before, after):  # type: ignore[no-untyped-def]
        pass

    return exchange if shelves.instance_class is Shelves else ignore


@kernel
def take_down(shelves: Shelves, before: float, after: float, item: int) -> None:
    """`note_belief` for a large catalogue."""
    n_changed = shelves.counts[CHANGED]
    if shelves.known[0] != before or n_changed == shelves.changed.size:
        shelves.known[0] = math.nan
        return
    shelves.changed[n_changed] = item
    shelves.counts[CHANGED] = n_changed + 1
    shelves.known[0] = after


@kernel
def bring_up_to_date(shelves: Shelves, state: Any) -> None:
    """Widen the blocks to contain the current beliefs."""
    counts = shelves.counts
    due = counts[WIDENED] + counts[CHANGED] > max(shelves.changed.size, counts[ARRANGED])
    if shelves.known[0] != state.figures[0].offsets or due:
        arrange(shelves, state)
        return
    for number in range(counts[CHANGED]):
        item = shelves.changed[number]
        if shelves.places[item] == UNMET:
            _append(shelves, item)
        number_item(state, item, shelves.numbers)
        _widen(shelves, shelves.places[item] // BLOCK)
    counts[WIDENED] += counts[CHANGED]
    counts[CHANGED] = 0


@kernel
def number_item(state: Any, item: int, numbers: Vector) -> None:
    """(f, 1, o, C) of an item."""
    moments = state.item_moments[item]
    size = state.item_variance.size
    rank = size - 1
    one, last = row_start(rank), row_start(size)
    for a in range(rank):
        numbers[a] = moments[one + a]
    numbers[rank] = 1.0
    numbers[rank + 1] = offset = moments[last + rank]
    place = rank + 2
    for a in range(rank):
        for b in range(a + 1):
            numbers[place] = moments[row_start(a) + b] - numbers[a] * numbers[b]
            place += 1
    for b in range(rank):
        numbers[place] = moments[last + b] - offset * numbers[b]
        place += 1
    numbers[place] = moments[last + size] - offset * offset


@kernel
def _append(shelves: Shelves, item: int) -> None:
    """Give an item the next place. A new block begins around its first item, which `_widen` then sets."""
    place = shelves.counts[ARRANGED]
    shelves.counts[ARRANGED] = place + 1
    shelves.items[place] = item
    shelves.places[item] = place
    if place % BLOCK == 0:
        block = place // BLOCK
        shelves.sizes[block // LANES, block % LANES] = -1.0


@kernel
def _widen(shelves: Shelves, block: int) -> None:
    """Widen a block to contain an item with these `shelves.numbers`."""
    numbers = shelves.numbers
    centers, reaches, sizes, lane = (
        shelves.centers[block // LANES],
        shelves.reaches[block // LANES],
        shelves.sizes[block // LANES],
        block % LANES,
    )
    first = sizes[lane] < 0.0
    square = 1.0
    for a in range(numbers.size):
        if first:
            centers[a, lane], reaches[a, lane] = numbers[a], 0.0
        reaches[a, lane] = max(reaches[a, lane], abs(numbers[a] - centers[a, lane]))
    size = shelves.toward.size
    for a in range(size):
        square += numbers[a] * numbers[a]
    place = size
    for a in range(size - 1):  # the variances are the diagonal of C
        square += numbers[place + a]
        place += a + 1
    sizes[lane] = max(sizes[lane], square)


@kernel
def arrange(shelves: Shelves, state: Any) -> None:
    """Put all rated items into blocks of similar items, and measure the blocks."""
    n_met = state.counts[0].items
    items, keys, ranges = shelves.items, shelves.keys, shelves.ranges
    shelves.places.fill(UNMET)
    for number in range(n_met):
        items[number] = state.items[number]
    n_ranges = 1
    ranges[0], ranges[1] = 0, n_met
    while n_ranges > 0:
        n_ranges -= 1
        start, stop = ranges[2 * n_ranges], ranges[2 * n_ranges + 1]
        if stop - start <= BLOCK:
            continue
        _take_widest(shelves, state, start, stop)
        middle = start + BLOCK * (-(-(stop - start) // BLOCK) // 2)
        cut(keys, items, start, stop, middle)
        ranges[2 * n_ranges], ranges[2 * n_ranges + 1] = start, middle
        ranges[2 * n_ranges + 2], ranges[2 * n_ranges + 3] = middle, stop
        n_ranges += 2
    for start in range(0, n_met, BLOCK):
        _measure_block(shelves, state, start, min(start + BLOCK, n_met))
    shelves.counts[ARRANGED], shelves.counts[CHANGED], shelves.counts[WIDENED] = n_met, 0, 0
    shelves.known[0] = state.figures[0].offsets


@kernel
def _take_widest(shelves: Shelves, state: Any, start: int, stop: int) -> None:
    """Set the keys of a range to the quantity with the largest spread: a coordinate, the offset, or the standard deviation."""
    widest, extent = 0, -1.0
    for a in range(state.item_variance.size + 1):
        low, high = math.inf, -math.inf
        for place in range(start, stop, max((stop - start) // SAMPLE, 1)):
            value = _coordinate(state, shelves.items[place], a)
            low, high = min(low, value), max(high, value)
        if high - low > extent:
            widest, extent = a, high - low
    for place in range(start, stop):
        shelves.keys[place] = _coordinate(state, shelves.items[place], widest)


@kernel
def _coordinate(state: Any, item: int, a: int) -> float:
    """The quantity for cutting, in units of the rating: a factor times a typical user's, the offset, or the standard deviation."""
    moments, size = state.item_moments[item], state.item_variance.size
    rank = size - 1
    one, last = row_start(rank), row_start(size)
    if a < rank:
        return moments[one + a] * math.sqrt(state.user_variance[a])  # type: ignore[no-any-return]
    offset = moments[last + rank]
    if a == rank:
        return offset  # type: ignore[no-any-return]
    square = moments[last + size] - offset * offset
    for b in range(rank):
        square += state.user_variance[b] * (moments[row_start(b) + b] - moments[one + b] * moments[one + b])
    return WIDTH_WEIGHT * math.sqrt(max(square, 0.0))


@kernel
def _measure_block(shelves: Shelves, state: Any, start: int, stop: int) -> None:
    """Center and reaches of the items at these places."""
    block, numbers = start // BLOCK, shelves.numbers
    centers, reaches, lane = shelves.centers[block // LANES], shelves.reaches[block // LANES], block % LANES
    for place in range(start, stop):
        shelves.places[shelves.items[place]] = place
        number_item(state, shelves.items[place], numbers)
        for a in range(numbers.size):  # the lowest and the highest for now
            centers[a, lane] = numbers[a] if place == start else min(centers[a, lane], numbers[a])
            reaches[a, lane] = numbers[a] if place == start else max(reaches[a, lane], numbers[a])
    for a in range(numbers.size):
        centers[a, lane] = 0.5 * (centers[a, lane] + reaches[a, lane])
        reaches[a, lane] = 0.0
    shelves.sizes[block // LANES, lane] = 0.0
    for place in range(start, stop):
        number_item(state, shelves.items[place], numbers)
        _widen(shelves, block)
