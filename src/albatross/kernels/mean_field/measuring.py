"""Means and variances of a user's ratings of items, for many items at once.

These functions serve every policy whose state and scratch are those of `beliefs`.
"""

from typing import Any

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.moments import certain, partner_weights, row_start
from albatross.kernels.operations import Items
from albatross.kernels.search.lanes import LANES
from albatross.kernels.search.scoring import measure_lanes, neighbours, turn_lanes


@kernel
def weigh_partners(scratch: Any) -> None:
    """Compute the weights for second moments, for the user in `scratch.room`.

    The user's offset is left out: it has no part in variances, and `Scales.origin` has it.
    """
    work = scratch.room.work
    offset, work.mean[work.mean.size - 1] = work.mean[work.mean.size - 1], 0.0
    certain(work.mean, work.moments)
    work.mean[work.mean.size - 1] = offset
    partner_weights(work.moments, work.mean.size, scratch.room.weights)


@kernel
def measure_items(state: Any, scratch: Any, candidates: Items, means: Vector) -> None:
    """Means, squares and second moments of the candidates for the user in `scratch.room`.

    After this, `position_of` works too.
    """
    for position in range(candidates.size):
        scratch.positions[candidates[position]] = position
    weigh_partners(scratch)
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    measure_listed(state, scratch, candidates, n_candidates, means)


@kernel
def measure_listed(state: Any, scratch: Any, items: Items, n_items: int, means: Vector) -> None:
    """The same for the first `n_items` of these items, or for all if there are none."""
    work, weights, squares, seconds = scratch.room.work, scratch.room.weights, scratch.squares, scratch.seconds
    columns = state.item_columns.T
    if n_items < LANES:
        for lane in range(n_items):
            scratch.nearby[lane] = items[lane] if items.size > 0 else lane
        measure_nearby(state, scratch, n_items)
        block, packed = scratch.block, weights.size
        for lane in range(n_items):
            squares[lane], means[lane], seconds[lane] = block[packed, lane], block[packed + 1, lane], block[packed + 2, lane]
        return
    for start in range(0, n_items, LANES):
        group = min(start, n_items - LANES)  # the last group may begin early and measure some items again
        first = group if items.size == 0 else neighbours(items, group)
        if first >= 0:
            measure_lanes(columns, first, work.mean, work.whitener, weights, squares, means, seconds, group)
        else:
            turn_lanes(state.item_moments, items, group, scratch.block)
            measure_lanes(scratch.block, 0, work.mean, work.whitener, weights, squares, means, seconds, group)


@kernel
def measure_nearby(state: Any, scratch: Any, length: int) -> None:
    """Squares, means and second moments of the first items in `scratch.nearby`, into the last rows of the block."""
    work, weights, block, nearby = scratch.room.work, scratch.room.weights, scratch.block, scratch.nearby
    packed = weights.size
    for lane in range(length, LANES):
        nearby[lane] = 0  # any item: not read
    turn_lanes(state.item_moments, nearby, 0, block)
    measure_lanes(block, 0, work.mean, work.whitener, weights, block[packed], block[packed + 1], block[packed + 2], 0)


@kernel
def is_met(state: Any, item: int) -> bool:
    """Whether an item has ratings. Read from a column of all items, which is in the cache."""
    return state.item_columns[item, row_start(state.item_variance.size) - 1] > 0.0  # type: ignore[no-any-return]


@kernel
def position_of(scratch: Any, candidates: Items, item: int, n_candidates: int) -> int:
    """The position of an item among the candidates; −1 if it is not one."""
    if candidates.size == 0:
        return item
    position = scratch.positions[item]
    # The position of an item that is no candidate may have any value.
    return position if 0 <= position < n_candidates and candidates[position] == item else -1
