"""Alternating Linear Bandits on several shards. Items are refitted from the sums of all shards; drift control rebuilds only the own part.

These functions serve every policy whose state has the arrays described in `albatross.kernels.alternating.steps`.
"""

from typing import Any

from albatross.kernels.alternating.steps import REBUILD_INTERVAL, RESCUE_INTERVAL, Ellipsoid, rebuild_items, refit_item
from albatross.kernels.compiling import kernel
from albatross.kernels.operations import ELSEWHERE, Items
from albatross.kernels.search.catalogue import note_change


@kernel
def leave_rebuilding(state: Any) -> None:
    """Stop `update` from rebuilding sums: it does not know the sums of other shards."""
    state.updates[1] = ELSEWHERE


@kernel
def refit_items(state: Any, settings: Any, scratch: Ellipsoid, others: Any, items: Items) -> bool:
    """Set B_j of these items to the regression of all ratings. `others.updates[1]` is the time of the last rebuild.

    Returns whether sums were rebuilt.
    """
    age = state.updates[0] - others.updates[1]
    due = age >= max(REBUILD_INTERVAL, state.pairs.used[0] + state.user_factors.shape[0] + state.item_factors.shape[0])
    if due:
        rebuild_own_part(state, others)
    rescued = not refit_each(state, settings, scratch, items) and age >= RESCUE_INTERVAL
    if rescued:
        rebuild_own_part(state, others)
        refit_each(state, settings, scratch, items)
    return due or rescued


@kernel
def refit_each(state: Any, settings: Any, scratch: Ellipsoid, items: Items) -> bool:
    """Refit each item. Each counts as an update, so that results computed from older item vectors are not reused."""
    sound = True
    for position in range(items.size):
        item = items[position]
        state.updates[0] += 1
        sound = refit_item(state, settings, scratch, item) and sound
        note_change(scratch.catalogue, state.item_factors, state.updates[0], item)
    return sound


@kernel
def rebuild_own_part(state: Any, others: Any) -> None:
    """Recompute the own part from the own ratings, and add the sums of the others."""
    rebuild_items(state)
    others.updates[1] = state.updates[0]
    state.updates[1] = ELSEWHERE
    for item in range(state.item_grams.shape[0]):
        for position in range(state.item_grams.shape[1]):
            state.item_grams[item, position] += others.item_grams[item, position]
        for a in range(state.item_moments.shape[1]):
            state.item_moments[item, a] += others.item_moments[item, a]
