"""The steps of Alternating Linear Bandits: place the user, move the user, refit the item.

They serve every policy whose state has these arrays: `user_factors` (n_users, rank); `item_factors` (n_items, rank) in Fortran order;
`item_grams`, per item Σ A_u A_uᵀ over its ratings, packed; `item_moments`, per item Σ y A_u; `pairs`; and `updates`, the number
of ratings learned from so far and at the last rebuild of the item sums.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.asking import ask_for
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import (
    Matrix,
    Vector,
    add_outer,
    dot,
    factorize,
    gram_of_columns,
    invert_lower,
    log_determinant,
    norm,
    packed_size,
    solve_lower,
    solve_upper,
    unpack,
)
from albatross.kernels.operations import Belief, Items, Slate
from albatross.kernels.pairs import NOTHING, remember
from albatross.kernels.search.arranging import Catalogue
from albatross.kernels.search.catalogue import SEARCHED_SHARE, SmallCatalogue, is_large, new_catalogue, note_change, search
from albatross.kernels.search.scoring import best_position, optimistic_scores, scoring_block

REBUILD_INTERVAL = 4096
"""Minimum number of updates between two rebuilds of the item sums: each exchange of terms adds a rounding error."""

RESCUE_INTERVAL = 256
"""The same if a sum is no longer positive definite. With extreme rewards even a new sum may not be; then not every update may rebuild."""

CACHED_SUMS = 2**20
"""Up to so many numbers, 8 MB, the item sums are likely to be in a cache."""


class Ellipsoid(NamedTuple):
    """The confidence ellipsoid of a user, and working space. Not learned: any content will do."""

    current: NDArray[np.int64]
    """The user and the number of updates for which `factor`, `center` and `radius` were computed."""
    gram: Matrix
    factor: Matrix
    """Cholesky factor of V."""
    whitener: Matrix
    """The inverse of the factor."""
    center: Vector
    """μ"""
    radius: Vector
    """c, an array of length 1."""
    vector: Vector
    change: Vector
    packed_change: Vector
    block: Matrix
    catalogue: Catalogue | SmallCatalogue


def no_ellipsoid(rank: int, n_items: int) -> Ellipsoid:
    return Ellipsoid(
        current=np.full(2, -1),
        gram=np.zeros((rank, rank)),
        factor=np.zeros((rank, rank)),
        whitener=np.zeros((rank, rank)),
        center=np.zeros(rank),
        radius=np.zeros(1),
        vector=np.zeros(rank),
        change=np.zeros(rank),
        packed_change=np.zeros(packed_size(rank)),
        block=scoring_block(rank),
        catalogue=new_catalogue(n_items, rank),
    )


@kernel
def place_user(state: Any, settings: Any, scratch: Ellipsoid, user: int) -> None:
    """The user's ellipsoid given the current item vectors: center μ, Cholesky factor of V, radius c."""
    if scratch.current[0] == user and scratch.current[1] == state.updates[0]:
        return
    gram, center, vector = scratch.gram, scratch.center, scratch.vector
    rank = center.size
    for a in range(rank):
        center[a] = 0.0
        for b in range(a):
            gram[a, b] = 0.0
        gram[a, a] = settings.user_ridge
    pairs = state.pairs
    entry = pairs.first[user]
    while entry != NOTHING:
        here = np.uint32(entry)  # unsigned: no check for negative indices
        item, plays, total = np.uint32(pairs.items[here]), float(pairs.plays[here]), pairs.totals[here]
        entry = pairs.following[here]
        for a in range(rank):
            value = state.item_factors[item, a]
            vector[a] = value
            center[a] += total * value
        add_outer(gram, vector, plays)
    factorize(gram, scratch.factor, settings.user_ridge)
    solve_lower(scratch.factor, center, center)
    solve_upper(scratch.factor, center, center)
    growth = max(log_determinant(scratch.factor) - rank * math.log(settings.user_ridge), 0.0)
    width = math.sqrt(growth - 2.0 * math.log(settings.confidence))
    scratch.radius[0] = settings.noise * width + math.sqrt(settings.user_ridge) * settings.norm_bound
    scratch.current[0] = user
    scratch.current[1] = state.updates[0]


@kernel
def attribute_mean(state: Any, settings: Any, scratch: Ellipsoid, user: int, item: int, items: Items, parts: Vector) -> int:
    """The contribution of each item the user has rated to ⟨μ, x⟩: with μ = V⁻¹ Σ y_j x_j, it is y_j ⟨x_j, V⁻¹ x⟩."""
    pairs = state.pairs
    scratch.current[0] = -1  # so that the factor is recomputed from V
    place_user(state, settings, scratch, user)
    solved = scratch.change
    for a in range(solved.size):
        solved[a] = state.item_factors[item, a]
    solve_lower(scratch.factor, solved, solved)
    solve_upper(scratch.factor, solved, solved)
    count, entry = 0, pairs.first[user]
    while entry != NOTHING:
        if count < parts.size:
            other, part = pairs.items[entry], 0.0
            for a in range(solved.size):
                part += solved[a] * state.item_factors[other, a]
            items[count], parts[count] = other, pairs.totals[entry] * part
        count += 1
        entry = pairs.following[entry]
    return count


@kernel
def suppose_ratings(state: Any, settings: Any, scratch: Ellipsoid, user: int, items: Items, rewards: Vector) -> None:
    """Compute the user's ellipsoid as if these ratings had been given too. NaN means a rating exactly as predicted. The radius stays.

    With r = Σ (y − ⟨μ, x⟩) x over the ratings that are not NaN, the center moves by V⁻¹ r. Without any, this is `place_user`.
    """
    if items.size == 0:
        place_user(state, settings, scratch, user)
        return
    scratch.current[0] = -1  # `gram` is needed here, and may have been overwritten
    place_user(state, settings, scratch, user)
    center, vector, change = scratch.center, scratch.vector, scratch.change
    change.fill(0.0)
    for position in range(items.size):
        for a in range(vector.size):
            vector[a] = state.item_factors[items[position], a]
        add_outer(scratch.gram, vector, 1.0)
        if not math.isnan(rewards[position]):
            surprise = rewards[position] - dot(center, vector)
            for a in range(vector.size):
                change[a] += surprise * vector[a]
    factorize(scratch.gram, scratch.factor, settings.user_ridge)
    solve_lower(scratch.factor, change, change)
    solve_upper(scratch.factor, change, change)
    for a in range(center.size):
        center[a] += change[a]
    scratch.current[0] = -1  # the next step recomputes the ellipsoid


@kernel
def describe_user(state: Any, settings: Any, scratch: Ellipsoid, user: int, belief: Belief) -> int:
    """The user's ellipsoid: V⁻¹ is the covariance."""
    place_user(state, settings, scratch, user)
    rank = scratch.center.size
    if belief.center.size >= rank:
        for a in range(rank):
            belief.center[a] = scratch.center[a]
        belief.radius[0] = scratch.radius[0]
        invert_lower(scratch.factor, scratch.whitener)
        gram_of_columns(scratch.whitener, 1.0, belief.covariance)
    return rank


@kernel
def width_of(state: Any, settings: Any, scratch: Ellipsoid, user: int, item: int, more: int) -> float:
    """The width c |x|_V⁻¹; V gains x xᵀ with each further rating, and c is taken as it is."""
    place_user(state, settings, scratch, user)
    vector = scratch.vector
    for a in range(vector.size):
        vector[a] = state.item_factors[item, a]
    solve_lower(scratch.factor, vector, vector)
    square = dot(vector, vector)
    return float(scratch.radius[0]) * math.sqrt(square / (1.0 + more * square))


@kernel
def most_promising(state: Any, scratch: Ellipsoid, candidates: Items, slate: Slate) -> int:
    """The position of the candidate with the largest optimistic score, for the user placed last."""
    items, center, whitener, radius = state.item_factors, scratch.center, scratch.whitener, scratch.radius[0]
    invert_lower(scratch.factor, whitener)
    if is_searched(state, scratch, candidates, slate):
        return search(scratch.catalogue, items, state.updates[0], center, whitener, radius, candidates, slate)
    optimistic_scores(items, candidates, center, whitener, radius, scratch.block, slate.scores, slate.means)
    return best_position(slate.scores, candidates.size if candidates.size > 0 else items.shape[0])


@kernel
def is_searched(state: Any, scratch: Ellipsoid, candidates: Items, slate: Slate) -> bool:
    """Whether a search pays: only the best of a large catalogue, or of a large part of it, are wanted."""
    offered = candidates.size == 0 or candidates.size >= SEARCHED_SHARE * state.item_factors.shape[0]
    return offered and not slate.whole and is_large(scratch.catalogue)


@kernel
def move_user(state: Any, scratch: Ellipsoid, user: int, item: int) -> None:
    """Set A_u to the most optimistic vector for this item, and exchange its terms in the sums of the items the user has rated."""
    factor, vector, change, packed_change = scratch.factor, scratch.vector, scratch.change, scratch.packed_change
    rank = vector.size
    for a in range(rank):
        vector[a] = state.item_factors[item, a]
    solve_lower(factor, vector, vector)
    width = norm(vector)
    solve_upper(factor, vector, vector)
    stretch = scratch.radius[0] / width if width > 0.0 else 0.0
    for a in range(rank):
        vector[a] = scratch.center[a] + stretch * vector[a]
    before = state.user_factors[user]
    position = 0
    for a in range(rank):
        change[a] = vector[a] - before[a]
        for b in range(a + 1):
            packed_change[position] = vector[a] * vector[b] - before[a] * before[b]
            position += 1
    for a in range(rank):
        before[a] = vector[a]
    pairs = state.pairs
    far = state.item_grams.size > CACHED_SUMS
    entry = pairs.first[user]
    while entry != NOTHING:
        here = np.uint32(entry)
        rated, plays, total = np.uint32(pairs.items[here]), float(pairs.plays[here]), pairs.totals[here]
        entry = pairs.following[here]
        if far and entry != NOTHING:
            # Finding the pages of the next item takes a fifth of the time. The processor reads on within a page by itself.
            following = int(pairs.items[np.uint32(entry)])
            ask_for(state.item_grams, following, 0)
            ask_for(state.item_grams, following, packed_change.size - 1)
            ask_for(state.item_moments, following, 0)
        gram, moment = state.item_grams[rated], state.item_moments[rated]
        for position in range(packed_change.size):
            gram[position] += plays * packed_change[position]
        for a in range(rank):
            moment[a] += total * change[a]


@kernel
def add_rating(state: Any, settings: Any, scratch: Ellipsoid, user: int, item: int, reward: float) -> None:
    """Store the rating, add it to the sums of the item with the user's current vector, and refit the item."""
    remember(state.pairs, user, item, reward)
    vector = state.user_factors[user]
    position = 0
    for a in range(vector.size):
        for b in range(a + 1):
            state.item_grams[item, position] += vector[a] * vector[b]
            position += 1
        state.item_moments[item, a] += reward * vector[a]
    state.updates[0] += 1
    age = state.updates[0] - state.updates[1]
    if age >= max(REBUILD_INTERVAL, state.pairs.used[0] + state.user_factors.shape[0] + state.item_factors.shape[0]):
        rebuild_items(state)
    if not refit_item(state, settings, scratch, item) and age >= RESCUE_INTERVAL:
        rebuild_items(state)
        refit_item(state, settings, scratch, item)
    note_change(scratch.catalogue, state.item_factors, state.updates[0], item)


@kernel
def refit_item(state: Any, settings: Any, scratch: Ellipsoid, item: int) -> bool:
    """Set B_j to the ridge regression of the item's ratings. False if rounding has damaged its sums."""
    unpack(state.item_grams[item], settings.item_ridge, scratch.gram)
    # This overwrites the factor of the user's ellipsoid. The update counter has moved on, so it will not be read again.
    sound = factorize(scratch.gram, scratch.factor, 0.5 * settings.item_ridge)
    vector = scratch.vector
    for a in range(vector.size):
        vector[a] = state.item_moments[item, a]
    solve_lower(scratch.factor, vector, vector)
    solve_upper(scratch.factor, vector, vector)
    for a in range(vector.size):
        state.item_factors[item, a] = vector[a]
    return sound


@kernel
def rebuild_items(state: Any) -> None:
    """Recompute the item sums from the ratings: one pass over all pairs, users and items."""
    state.updates[1] = state.updates[0]
    state.item_grams[:] = 0.0
    state.item_moments[:] = 0.0
    pairs = state.pairs
    for user in range(pairs.first.size):
        vector = state.user_factors[user]
        entry = pairs.first[user]
        while entry != NOTHING:
            gram = state.item_grams[pairs.items[entry]]
            moment = state.item_moments[pairs.items[entry]]
            plays = float(pairs.plays[entry])
            position = 0
            for a in range(vector.size):
                for b in range(a + 1):
                    gram[position] += plays * (vector[a] * vector[b])
                    position += 1
                moment[a] += pairs.totals[entry] * vector[a]
            entry = pairs.following[entry]
