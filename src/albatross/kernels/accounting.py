"""Everything a policy can report about a user and the items shown, in one call."""

import math
import sys
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from albatross.kernels.compiling import OPTIONS, kernel
from albatross.kernels.linear import Matrix, Vector, diagonalize
from albatross.kernels.operations import Belief, Items, attribute, believe, or_else, width
from albatross.kernels.pairs import NOTHING, Pairs, find_pair

TINY = sys.float_info.min
UNKNOWN = -1
"""In place of a count: the policy does not provide it."""
WORTH_NAMING = 0.1
"""A rating is named if its contribution is at least this share of all listed contributions."""


class Brief(NamedTuple):
    """The columns of a row of numbers that gives the reasons for an item. Ratings to name follow: item, rating and contribution of each."""

    rated: int = 0
    """How many items the user has rated; `UNKNOWN` if the policy cannot decompose its mean."""
    total: int = 1
    """The sum of the contributions of these ratings to the mean."""
    own: int = 2
    """How often the user has rated the item itself; `UNKNOWN` if the policy does not remember."""


BRIEF = Brief()
NAMED, NAMED_COLUMNS = len(BRIEF), 3
"""Column of the first named rating, and number of columns of each. Its item is `NOTHING` if there is none."""
MOST_NAMED = 2
"""Number of the user's ratings that are named as the reason."""


class Account(NamedTuple):
    """Arrays for the report. If the policy does not provide a value, `sizes` has `UNKNOWN`, and numbers are NaN."""

    sizes: NDArray[np.int64]
    """Length of the belief, number of items that the user has rated, and number of them that are listed."""
    center: Vector
    covariance: Matrix
    radius: Vector
    inverse: Vector
    """Eigenvalues of the inverse covariance, smallest first …"""
    axes: Matrix
    """… and their eigenvectors, one per row."""
    widths: Matrix
    """Per item shown: how uncertain its mean is, now and after one more rating."""
    brief: Matrix
    """Per item shown, what its reasons need: `Brief`."""
    largest: NDArray[np.int32]
    """Per item shown: the rated items with the largest contributions, largest first …"""
    ratings: Matrix
    """… the user's mean rating of them …"""
    largest_parts: Matrix
    """… and their contributions."""
    rated: Items
    parts: Vector
    """The contribution of each rated item to the current item."""


@kernel
def _no_belief(state: Any, settings: Any, scratch: Any, user: int, belief: Belief) -> int:
    return UNKNOWN


@kernel
def _no_width(state: Any, settings: Any, scratch: Any, user: int, item: int, more: int) -> float:
    return math.nan


@kernel
def _no_parts(state: Any, settings: Any, scratch: Any, user: int, item: int, items: Items, parts: Vector) -> int:
    return UNKNOWN


_believe = or_else(believe, _no_belief)
_width = or_else(width, _no_width)
_attribute = or_else(attribute, _no_parts)


def _rated(state: Any, user: int, item: int) -> tuple[int, float]:
    """How often a user has rated an item, and the sum of these ratings; `UNKNOWN` if the policy does not store pairs."""
    pairs = getattr(state, "pairs", None)
    return (_in_pairs_of if isinstance(pairs, Pairs) else _not_remembered)(state, user, item)


@overload(_rated, jit_options=OPTIONS, strict=False)
def _compiled_rated(state, user, item):  # type: ignore[no-untyped-def]
    kept = state[state.fields.index("pairs")] if "pairs" in state.fields else None
    return _in_pairs_of if getattr(kept, "instance_class", None) is Pairs else _not_remembered


def _in_pairs_of(state: Any, user: int, item: int) -> tuple[int, float]:
    return _in_pairs(state.pairs, user, item)


def _not_remembered(state: Any, user: int, item: int) -> tuple[int, float]:
    return UNKNOWN, math.nan


@kernel
def _in_pairs(pairs: Pairs, user: int, item: int) -> tuple[int, float]:
    entry = find_pair(pairs, user, item)
    return (0, 0.0) if entry == NOTHING else (int(pairs.plays[entry]), float(pairs.totals[entry]))


@kernel
def describe(state: Any, settings: Any, scratch: Any, user: int, account: Account) -> None:
    """The belief about the user, with the axes of the region."""
    length = account.sizes[0] = _believe(state, settings, scratch, user, Belief(account.center, account.covariance, account.radius))
    if length == account.center.size:
        diagonalize(account.covariance, account.inverse, account.axes)
        for a in range(length):
            account.inverse[a] = 1.0 / max(account.inverse[a], TINY)


@kernel
def account_for(
    state: Any, settings: Any, scratch: Any, user: int, known: bool, place: int, item: int, average: float, whole: bool, account: Account
) -> None:
    """The item at this place of a slate: the contribution of the user's ratings to its mean, the largest of them, and those to name.

    `average`: the mean of all ratings. `whole`: also how uncertain its mean is.
    """
    if whole:
        for more in range(2):
            account.widths[place, more] = _width(state, settings, scratch, user, item, more)
    brief = account.brief[place]
    count = _attribute(state, settings, scratch, user, item, account.rated, account.parts) if known else 0
    account.sizes[1] = brief[BRIEF.rated] = count
    if count > account.rated.size:
        return
    largest, told = account.largest[place], account.largest_parts[place]
    brief[BRIEF.total] = 0.0
    met = known and count == UNKNOWN
    for position in range(count):
        part = account.parts[position]
        met = met or account.rated[position] == item
        brief[BRIEF.total] += part
        behind = min(position, told.size)
        while behind > 0 and abs(told[behind - 1]) < abs(part):
            behind -= 1
            if behind + 1 < told.size:
                largest[behind + 1], told[behind + 1] = largest[behind], told[behind]
        if behind < told.size:
            largest[behind], told[behind] = account.rated[position], part
    brief[BRIEF.own] = _rated(state, user, item)[0] if met else 0
    account.sizes[2] = max(min(count, told.size), 0)
    all_parts = 0.0
    for position in range(account.sizes[2]):
        all_parts += abs(told[position])
    least = WORTH_NAMING * all_parts
    liked, ratings = 0, account.ratings[place]
    for position in range(account.sizes[2]):
        speaks = told[position] > 0.0 and told[position] >= least
        plays, total = 0, 0.0
        if whole or (speaks and liked < MOST_NAMED):  # looking it up takes a walk
            plays, total = _rated(state, user, largest[position])
        ratings[position] = total / plays if plays > 0 else math.nan
        liked += speaks and ratings[position] >= average
    _name(largest, ratings, told, account.sizes[2], least, average, brief)


@kernel
def _name(items: Items, ratings: Vector, parts: Vector, count: int, least: float, average: float, brief: Vector) -> None:
    """Name the ratings that speak most for the item: those not below the average or, if none of them does, the others."""
    column = NAMED
    for liked in (True, False):
        for position in range(count):
            rating, part = ratings[position], parts[position]
            speaks = part > 0.0 and part >= least and not math.isnan(rating)
            if speaks and (rating >= average) == liked and column < brief.size:
                brief[column], brief[column + 1], brief[column + 2] = items[position], rating, part
                column += NAMED_COLUMNS
        if column > NAMED:
            break
    while column < brief.size:
        brief[column] = NOTHING
        column += NAMED_COLUMNS
