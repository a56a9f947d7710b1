"""The priors of users and items, and the noise of ratings, learned from sums over all of them.

These functions serve every policy whose state has the arrays described in `albatross.kernels.mean_field.beliefs`.
"""

import math
from typing import Any

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.moments import row_start
from albatross.kernels.operations import ELSEWHERE
from albatross.kernels.pairs import NOTHING

FIGURES = np.dtype(
    (
        np.record,
        [
            ("origin", np.float64),  # the first rating; all others are counted from it
            ("average", np.float64),  # the mean of all ratings (a record has a method `mean`)
            ("squares", np.float64),  # their summed squared distances from it
            ("largest", np.float64),  # the largest of them
            ("noise", np.float64),  # s²
            ("share", np.float64),  # ρ for fitting: the share of the noise that belongs to the pair
            ("memory", np.float64),  # ρ for memory
            ("center", np.float64),  # the mean item offset
            ("offsets", np.float64),  # the sum of the item offsets
            ("within", np.float64),  # the summed squared distances of repeated ratings from those before
            ("residual", np.float64),  # the summed squared distances of pairs from their predictions
            ("agreement", np.float64),  # over second ratings of a pair: agreement with the first rating, relative to the model
            ("contrast", np.float64),  # over second ratings of a pair: distance of the first rating from the model
            ("surprise", np.float64),  # over first ratings of an item: how much they exceeded the prediction for the mean item
            ("newcomers", np.float64),  # the number of these first ratings
        ],
    )
)
"""Numbers that exist once. One record of named fields: twenty arrays of length one would cost 2 µs more per call from Python."""

COUNTS = np.dtype(
    (
        np.record,
        [
            ("ratings", np.int64),  # all ratings
            ("repeats", np.int64),  # ratings of a pair that was rated before
            ("users", np.int64),  # users with ratings
            ("items", np.int64),  # items with ratings
            ("user_turn", np.int64),  # position, among users with ratings, of the user refitted last in turn
            ("item_turn", np.int64),  # the same among items with ratings
            ("rebuilt", np.int64),  # ratings at the last rebuild of the item sums; in one of several shards ELSEWHERE + users of others
        ],
    )
)

GUESSED_ROWS = 4.0
"""Weight of the first guess of a prior variance, in users and in items."""
GUESSED_NEWCOMERS, RECENT_NEWCOMERS = 10.0, 100.0
"""Weight of the guess that new items are like the others, in items; and the number of latest first ratings that count."""
GUESSED_PAIRS = 20.0
"""Weight of the first guess of the noise, in pairs."""
GUESSED_NOISE = 0.1
"""The first guess of the noise, as a fraction of the variance of all ratings: small, so that structure is tried before noise."""
GUESSED_USERS, GUESSED_ITEMS, GUESSED_VECTORS = 0.2, 0.5, 4.5
"""First guesses of the variance of user offsets, of item offsets and of ⟨vector, vector⟩, as fractions of the variance of all ratings
without noise. They are large: a value that is too large shrinks soon; with vectors that are too short, learning and exploring are slow."""
SWEEPS_PER_EFOLD = 8.0
"""Every user and item is refitted when the ratings have grown by an eighth, within the limit per rating."""
LONGEST_PAUSE = 4.0
"""Limit of ratings until the next refit in turn."""
MORE_TURNS = 44.0
"""How many more users, and items, a rating refits where vectors alone explain the ratings, and there are as many ratings as are needed to
find them: meanwhile, beliefs lag far behind what the same ratings would say if all rows were refitted until nothing changes. Earlier nobody
knows whether vectors explain anything; later there is little to catch up with."""
NEEDED, FEWEST_NEEDED, MOST_ROWS = 0.4, 800.0, 3200
"""How many ratings are needed: per number to be found, the rank times the users and items met; and at least, because early few of these
have been met. Only so many users and items count, so that the work is bounded."""
OVERSHOOT = 0.75
"""How much further than to its fit a refit in turn moves a mean, while more rows are refitted (over-relaxation): users and items that are
fitted to each other approach in small steps what both agree on. With less than 1 they converge to the same means."""
UNEXPLAINED = 0.4
"""No more are refitted where vectors explain at most this share of rating variance: noise fitted more closely misleads."""
CLICKS_DIFFER = 1e-9
"""The variance of ratings that are all 0 or 1 is a (1 − a), a their mean, up to rounding; of any others from 0 to 1 it is smaller."""
COUNTED_TWICE = 0.75
"""Which part of an item's covariance users are not fitted to, where no pair comes back and vectors alone make the ratings."""


@kernel
def count_belief(squares: Vector, spreads: Vector, before: Vector, after: Vector) -> None:
    """In sums over all users or all items, replace the old belief about one of them by the new one."""
    size = squares.size
    one, last = row_start(size - 1), row_start(size)
    for a in range(size):
        mean = one + a if a < size - 1 else last + size - 1
        second = row_start(a) + a if a < size - 1 else last + size
        square = after[mean] * after[mean] - before[mean] * before[mean]
        squares[a] += square
        spreads[a] += after[second] - before[second] - square


@kernel
def variance_of_vectors(state: Any) -> float:
    """The prior variance of ⟨a, b⟩."""
    said = 0.0
    for a in range(state.user_variance.size - 1):
        said += state.user_variance[a] * state.item_variance[a]
    return said


@kernel
def kept_covariance(state: Any, once: float) -> float:
    """κ: which part of an item's covariance its moments hold, for users to be fitted to; `once` is 1 where no pair comes back.

    There it counts as ridge. A product of normals counts what user and item do not know of each other on both sides: where vectors make
    the ratings, they are then found late. Where noise makes them, users need all of it; and where pairs come back, too: who is fitted
    too closely stays with what looked best.
    """
    said = variance_of_vectors(state)
    return 1.0 - once * COUNTED_TWICE * said / (said + state.figures[0].noise)  # type: ignore[no-any-return]


@kernel
def own_users(counts: Any) -> int:
    """How many users of this shard have ratings: all, if there are no other shards."""
    return counts.users - max(counts.rebuilt - ELSEWHERE, 0)  # type: ignore[no-any-return]


@kernel
def newcomer_offset(figures: Any) -> float:
    """The predicted offset of an unrated item. Items rated late are rarely offered, perhaps because few users like them."""
    return figures.center + figures.surprise / (figures.newcomers + GUESSED_NEWCOMERS)  # type: ignore[no-any-return]


@kernel
def spread_of(state: Any) -> float:
    """The variance of all ratings; while they are all equal, their square."""
    figures, mean = state.figures[0], state.figures[0].average
    spread = figures.squares / state.counts[0].ratings
    return spread if spread > 1e-12 * mean * mean else max(mean * mean, 1e-12)  # type: ignore[no-any-return]


@kernel
def variance_of_clicks(state: Any) -> float:
    """The variance of all ratings, if all are 0 or 1; else zero."""
    figures = state.figures[0]
    clicks = figures.average * (1.0 - figures.average)
    is_all = figures.largest == 1.0 and abs(figures.squares / state.counts[0].ratings - clicks) <= CLICKS_DIFFER
    return clicks if is_all else 0.0


@kernel
def guess_variance(coordinate: int, rank: int, signal: float, offsets: float) -> float:
    """The first guess of a prior variance, from the variance of all ratings without noise."""
    return math.sqrt(GUESSED_VECTORS * signal / rank) if coordinate < rank else offsets * signal


@kernel
def guess_population(state: Any) -> None:
    """The first guess of the priors of users and items, and of the noise."""
    rank = state.user_variance.size - 1
    spread = spread_of(state)
    signal = (1.0 - GUESSED_NOISE) * spread
    for a in range(rank + 1):
        state.user_variance[a] = guess_variance(a, rank, signal, GUESSED_USERS)
        state.item_variance[a] = guess_variance(a, rank, signal, GUESSED_ITEMS)
    state.figures[0].noise = GUESSED_NOISE * spread


@kernel
def settled(variance: float, square: float, spread: float, rows: float, guess: float) -> float:
    """The new prior variance of a coordinate: its squared means, divided by the number of rows that ratings have determined."""
    determined = max(rows - spread / variance, 0.0)
    return max((square + GUESSED_ROWS * guess) / (determined + GUESSED_ROWS), 1e-6 * guess)


@kernel
def more_turns(state: Any, limit: int) -> int:
    """How many rows a rating refits in turn beyond `limit`: over all ratings of a model at most 110,000 times rank and `limit`."""
    counts = state.counts[0]
    ratings, rows = float(counts.ratings), min(counts.users + counts.items, MOST_ROWS)
    needed = max(NEEDED * (state.user_variance.size - 1) * rows, FEWEST_NEEDED)
    near = min(ratings / needed, needed / ratings)
    most = MORE_TURNS * near * near
    if most < 1.0:
        return 0
    said = variance_of_vectors(state)
    explained = said / (said + state.figures[0].noise)
    return limit * int(most * max(explained - UNEXPLAINED, 0.0) / (1.0 - UNEXPLAINED))


@kernel
def overshoot(state: Any, limit: int) -> float:
    """How much further than to its fit a refit in turn moves a mean."""
    return OVERSHOOT if more_turns(state, limit) > 0 else 0.0


@kernel
def turns(state: Any, rows: int, limit: int) -> int:
    """How many of these rows a rating refits in turn: `limit` while ratings are few, later now and then, more while vectors are found."""
    ratings, more = state.counts[0].ratings, more_turns(state, limit)
    pause = int(min(ratings / (SWEEPS_PER_EFOLD * rows), LONGEST_PAUSE))
    if pause > 1 and ratings % pause > 0:
        return min(more, rows)
    return min(min(max(int(SWEEPS_PER_EFOLD * rows / ratings), 1), limit) + more, rows)


@kernel
def learn_population(state: Any, limit: int, once: float) -> None:
    """Prior variances, mean item offset and noise, from sums over all users, items and ratings."""
    figures, counts = state.figures[0], state.counts[0]
    rank = state.user_variance.size - 1
    spread = spread_of(state)
    users, items = float(counts.users), float(counts.items)
    repeats, share, center = float(counts.repeats), figures.share, figures.center
    within = (figures.within + 2.0 * GUESSED_NOISE * spread) / (repeats + 2.0)
    signal = max(spread - within, GUESSED_NOISE * spread)
    # No faster than rows are refitted, because their means and variances still depend on the former values.
    kept = kept_covariance(state, once)
    users_pace = min((1 + turns(state, counts.users, limit)) / users, 1.0)
    items_pace = min((1 + turns(state, counts.items, limit)) / items, 1.0)
    of_vectors = guess_variance(0, rank, signal, 0.0)
    for a in range(rank + 1):
        guess, present = of_vectors if a < rank else guess_variance(a, rank, signal, GUESSED_USERS), state.user_variance[a]
        state.user_variance[a] += users_pace * (settled(present, state.user_squares[a], state.user_spreads[a], users, guess) - present)
        square = state.item_squares[a]
        if a == rank:
            square = max(square + center * (items * center - 2.0 * figures.offsets), 0.0)  # about their mean
        guess, present = of_vectors if a < rank else guess_variance(a, rank, signal, GUESSED_ITEMS), state.item_variance[a]
        state.item_variance[a] += items_pace * (settled(present, square, state.item_spreads[a] / kept, items, guess) - present)
    figures.center = (figures.offsets + figures.average - figures.origin) / (items + 1.0)
    # Repeats separate noise from structure at once; the residual of the model does so late, but alone if repeats are exact.
    trust = max(share, 1.0 / (1.0 + repeats))
    # Clicks are repeated where nearly all click, with little noise. What is tried has more: by their mean, a (1 − a).
    of_repeats = (1.0 - share) * repeats * spread if variance_of_clicks(state) > 0.0 else figures.within
    total = of_repeats + trust * figures.residual + GUESSED_PAIRS * GUESSED_NOISE * spread
    figures.noise = max(total / ((1.0 - share) * repeats + trust * (counts.ratings - counts.repeats) + GUESSED_PAIRS), 1e-6 * spread)


@kernel
def count_rating(state: Any, user: int, reward: float) -> None:
    figures, counts = state.figures[0], state.counts[0]
    if counts.ratings == 0:
        figures.largest = reward
        if counts.rebuilt < ELSEWHERE:  # several shards must use the same origin: zero
            figures.origin = reward
        figures.center = reward - figures.origin
    figures.largest = max(figures.largest, reward)
    alike = figures.squares == 0.0
    counts.ratings += 1
    distance = reward - figures.average
    figures.average += distance / counts.ratings
    figures.squares += distance * (reward - figures.average)
    if alike:  # ratings that are all the same tell nothing of the scale
        guess_population(state)
    if state.pairs.first[user] == NOTHING:
        state.users[own_users(counts)] = user
        counts.users += 1
