"""A mean-field factorization with users on several shards: the population and the items are learned from all of them.

These functions serve every policy whose state has the arrays described in `albatross.policies.mean_field`. All shards count ratings from
zero (`figures.origin`). What a shard receives from others equals what it would have learned from their ratings, except for the order.

In `others` and `since`, which have no users and no pairs, some fields have another meaning, for the exchange:

- `figures.share` and `figures.memory`: how many pairs have a second rating, and how many items have ratings, as reported;
- in `others` only, `counts.items`: items that another shard rated first; `counts.user_turn`: ratings used to learn the population;
  `counts.item_turn`: ratings without a turn of items so far; `counts.rebuilt`: all ratings at the last rebuild of the own part.
"""

from typing import Any

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.counting import added_since, joined_overall
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.learning import FADING, REBUILD_INTERVAL, Room, rebuild, refit_item
from albatross.kernels.mean_field.moments import row_start
from albatross.kernels.mean_field.population import (
    LONGEST_PAUSE,
    RECENT_NEWCOMERS,
    SWEEPS_PER_EFOLD,
    guess_population,
    learn_population,
    more_turns,
    overshoot,
)
from albatross.kernels.operations import ELSEWHERE, Items
from albatross.kernels.pairs import Pairs

(
    OF_ALL,  # number, mean and summed squared distances of all ratings: three places
    _,
    _,
    REPEATS,
    USERS,
    LARGEST,
    WITHIN,
    RESIDUAL,
    SECONDS,
    AGREEMENT,
    CONTRAST,
    NEWCOMERS,
    SURPRISE,
    RECENT,
    OF_COORDINATES,  # per coordinate squares, then spreads, of the users
) = range(15)
"""Position of each figure in a report."""

KEPT_OF_NEWCOMERS = 1.0 - 1.0 / RECENT_NEWCOMERS


@kernel
def rated_twice(pairs: Pairs) -> int:
    """How many pairs have a second rating. Reserved places have none."""
    count = 0
    for entry in range(pairs.used[1]):
        if pairs.plays[entry] > 1:
            count += 1
    return count


@kernel
def report_population(state: Any, others: Any, since: Any, report: Vector) -> int:
    """What own users have added. Decaying sums are reported as if they had started from zero."""
    size: int = state.user_squares.size
    if report.size < OF_COORDINATES + 2 * size:
        return OF_COORDINATES + 2 * size
    now, then, heard = state.figures[0], since.figures[0], others.figures[0]
    counts, counted = state.counts[0], since.counts[0]
    added_since(counts.ratings, now.average, now.squares, counted.ratings, then.average, then.squares, report)
    report[REPEATS] = counts.repeats - counted.repeats
    report[USERS] = counts.users - counted.users
    report[LARGEST] = now.largest if counts.ratings > 0 else -np.inf
    report[WITHIN] = now.within - then.within
    report[RESIDUAL] = now.residual - then.residual
    report[SECONDS] = rated_twice(state.pairs) - (then.share - heard.share)
    left = FADING ** report[SECONDS]
    report[AGREEMENT] = now.agreement - left * then.agreement
    report[CONTRAST] = now.contrast - left * then.contrast
    report[NEWCOMERS] = counts.items - others.counts[0].items - (then.memory - heard.memory)
    left = KEPT_OF_NEWCOMERS ** report[NEWCOMERS]
    report[SURPRISE] = now.surprise - left * then.surprise
    report[RECENT] = now.newcomers - left * then.newcomers
    for a in range(size):
        report[OF_COORDINATES + a] = state.user_squares[a] - since.user_squares[a]
        report[OF_COORDINATES + size + a] = state.user_spreads[a] - since.user_spreads[a]
    return OF_COORDINATES + 2 * size


@kernel
def merge_population(state: Any, report: Vector) -> None:
    """Add what a shard reports to a state, or to the state that stands for the others."""
    figures, counts, size = state.figures[0], state.counts[0], state.user_squares.size
    alike, n_added, n_users = figures.squares == 0.0, int(report[OF_ALL]), int(report[USERS])
    if counts.ratings == 0:
        figures.largest = report[LARGEST]
        figures.center = report[OF_ALL + 1]
    figures.largest = max(figures.largest, report[LARGEST])
    figures.average, figures.squares = joined_overall(counts.ratings, figures.average, figures.squares, report)
    counts.ratings += n_added
    counts.repeats += int(report[REPEATS])
    counts.users += n_users
    if counts.rebuilt >= ELSEWHERE:
        counts.rebuilt += n_users
    figures.within += report[WITHIN]
    figures.residual += report[RESIDUAL]
    left = FADING ** report[SECONDS]
    figures.agreement = left * figures.agreement + report[AGREEMENT]
    figures.contrast = left * figures.contrast + report[CONTRAST]
    left = KEPT_OF_NEWCOMERS ** report[NEWCOMERS]
    figures.surprise = left * figures.surprise + report[SURPRISE]
    figures.newcomers = left * figures.newcomers + report[RECENT]
    for a in range(size):
        state.user_squares[a] += report[OF_COORDINATES + a]
        state.user_spreads[a] += report[OF_COORDINATES + size + a]
    if state.pairs.first.size == 0:
        figures.share += report[SECONDS]
        figures.memory += report[NEWCOMERS]
    elif alike and n_added > 0:  # equal ratings do not show the scale
        guess_population(state)


@kernel
def refit_items(state: Any, limit: int, room: Room, others: Any, items: Items, random: np.random.Generator) -> bool:
    """Fit these items to the sums of all; then learn the population, and refit items in turn, once per rating of others.

    Returns whether sums were rebuilt.
    """
    counts, heard = state.counts[0], others.counts[0]
    if counts.ratings == 0:
        return False
    met = row_start(state.item_variance.size) - 1
    for position in range(items.size):
        item = items[position]
        if state.item_moments[item, met] == 0.0:
            for _ in range(state.item_variance.size - 1):
                random.standard_normal()  # as the shard that rated the item first: then the random streams stay equal
            state.items[counts.items] = item
            counts.items += 1
            heard.items += 1
        refit_item(state, room, item, 0.0)
    n_ratings = heard.ratings - heard.user_turn
    heard.user_turn = heard.ratings
    if n_ratings > 0:
        for _ in range(n_ratings):
            learn_population(state, limit, room.once)
        further = overshoot(state, limit)
        for _ in range(turns_of_items(state, others, n_ratings, limit)):
            counts.item_turn = (counts.item_turn + 1) % counts.items
            refit_item(state, room, state.items[counts.item_turn], further)
    due = counts.ratings - heard.rebuilt >= min(counts.ratings // 4, REBUILD_INTERVAL + counts.ratings - counts.repeats)
    if due:
        rebuild_own_part(state, others, room)
    return due  # type: ignore[no-any-return]


@kernel
def turns_of_items(state: Any, others: Any, n_ratings: int, limit: int) -> int:
    """How many items are refitted in turn after so many ratings of others: as `turns` for each of them."""
    counts, heard = state.counts[0], others.counts[0]
    pause = max(int(min(counts.ratings / (SWEEPS_PER_EFOLD * counts.items), LONGEST_PAUSE)), 1)
    each = min(max(int(SWEEPS_PER_EFOLD * counts.items / counts.ratings), 1), limit)
    heard.item_turn += n_ratings
    due = heard.item_turn // pause
    heard.item_turn -= due * pause
    return min(due * each + n_ratings * more_turns(state, limit), counts.items)  # type: ignore[no-any-return]


@kernel
def rebuild_own_part(state: Any, others: Any, room: Room) -> None:
    """Recompute the own part from own ratings, and add that of the others."""
    counts = state.counts[0]
    kept = counts.rebuilt
    rebuild(state, room)
    others.counts[0].rebuilt = counts.ratings
    counts.rebuilt = kept
    state.figures[0].residual += others.figures[0].residual
    for a in range(state.user_squares.size):
        state.user_squares[a] += others.user_squares[a]
        state.user_spreads[a] += others.user_spreads[a]
    for number in range(counts.items):
        item = state.items[number]
        for position in range(state.item_sums.shape[1]):
            state.item_sums[item, position] += others.item_sums[item, position]
        for a in range(state.item_rights.shape[1]):
            state.item_rights[item, a] += others.item_rights[item, a]
