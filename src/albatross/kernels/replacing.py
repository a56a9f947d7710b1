"""Replaces one rating of a pair by another: sums change as if only the new one had been given.

Vectors fitted in between stay, except those of the pair's user and item, which are refitted.
"""

from typing import Any

from albatross.kernels.alternating.steps import RESCUE_INTERVAL, Ellipsoid, rebuild_items, refit_item
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import Tally
from albatross.kernels.mean_field.learning import Room, refit_user
from albatross.kernels.mean_field.learning import refit_item as fit_item
from albatross.kernels.mean_field.moments import row_start
from albatross.kernels.mean_field.partners import pair_weight
from albatross.kernels.mean_field.population import guess_population
from albatross.kernels.pairs import NOTHING, Pairs, find_pair
from albatross.kernels.search.catalogue import note_again

ONE_RATING = 1.0 + 1e-9
"""The total weight of an item's ratings if there is only one, with a margin for rounding."""


@kernel
def exchanged(total: float, count: int, before: float, after: float) -> float:
    """A sum in which one of `count` values is replaced; for a single value, exactly the new one."""
    return after if count == 1 else total + (after - before)


@kernel
def exchanged_squares(squares: float, mean: float, count: int, before: float, after: float) -> float:
    """The summed squared distances from the mean after one of `count` values is replaced: S + (y' − y)(y' − m' + y − m)."""
    if count == 1:
        return 0.0
    changed = mean + (after - before) / count
    return max(squares + (after - before) * ((after - changed) + (before - mean)), 0.0)


@kernel
def exchange_pair(pairs: Pairs, user: int, item: int, before: float, after: float) -> int:
    """Replace one rating of a pair. Returns its entry, or `NOTHING` if there is none."""
    entry = find_pair(pairs, user, item)
    if entry != NOTHING:
        pairs.totals[entry] = exchanged(pairs.totals[entry], pairs.plays[entry], before, after)
    return entry


@kernel
def recount(tally: Tally, item: int, before: float, after: float) -> None:
    """Replace one rating of an item."""
    tally.totals[item] = exchanged(tally.totals[item], tally.plays[item], before, after)
    tally.overall[1] = exchanged_squares(tally.overall[1], tally.overall[0], tally.ratings[0], before, after)
    tally.overall[0] += (after - before) / tally.ratings[0]


@kernel
def exchange_alternating(state: Any, settings: Any, scratch: Ellipsoid, user: int, item: int, before: float, after: float) -> None:
    """For Alternating Linear Bandits: change the pair and the sums of the item, and refit the item to the user's current vector."""
    if exchange_pair(state.pairs, user, item, before, after) == NOTHING:
        return
    vector = state.user_factors[user]
    for a in range(vector.size):
        state.item_moments[item, a] += (after - before) * vector[a]
    refit_again(state, settings, scratch, item)
    scratch.current[0] = -1  # no rating was added, but the ellipsoid must be recomputed


@kernel
def refit_again(state: Any, settings: Any, scratch: Ellipsoid, item: int) -> None:
    """Refit an item of Alternating Linear Bandits whose sums have changed, though no rating was added."""
    if not refit_item(state, settings, scratch, item) and state.updates[0] - state.updates[1] >= RESCUE_INTERVAL:
        rebuild_items(state)
        refit_item(state, settings, scratch, item)
    note_again(scratch.catalogue, state.item_factors, state.updates[0], item)


@kernel
def exchange_mean_field(state: Any, room: Room, user: int, item: int, before: float, after: float) -> None:
    """For a mean-field factorization: change the overall sums and those of the pair and the item; refit user and item."""
    figures, counts, pairs = state.figures[0], state.counts[0], state.pairs
    entry = find_pair(pairs, user, item)
    if entry == NOTHING:
        return
    alike = figures.squares == 0.0
    figures.squares = exchanged_squares(figures.squares, figures.average, counts.ratings, before, after)
    figures.average += (after - before) / counts.ratings
    figures.largest = max(figures.largest, after)
    if alike:  # only now do ratings differ, which shows the scale
        guess_population(state)
    plays, total = pairs.plays[entry], pairs.totals[entry]
    pairs.totals[entry] = exchanged(total, plays, before, after)
    if plays > 1:
        mean, changed = total / plays, pairs.totals[entry] / plays
        figures.within = max(figures.within + (after - before) * ((after - changed) + (before - mean)), 0.0)
    weights = row_start(state.item_variance.size) - 1
    if plays == 1 and state.item_sums[item, weights] <= ONE_RATING:
        figures.surprise += after - before  # it was the only rating of the item so far
    moments, rights = state.user_moments[user], state.item_rights[item]
    value = pair_weight(figures.share, plays) * (after - before) / plays
    one = row_start(rights.size - 1)
    for a in range(rights.size):
        rights[a] += value * moments[one + a]
    refit_user(state, room, user, 0.0)
    fit_item(state, room, item, 0.0)
