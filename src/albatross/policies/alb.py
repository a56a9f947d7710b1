"""Alternating Linear Bandits, the algorithm of the paper."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import (
    Matrix,
    Vector,
    add_outer,
    factorize,
    invert_lower,
    log_determinant,
    norm,
    packed_size,
    solve_lower,
    solve_upper,
    unpack,
)
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.scoring import best_position, optimistic_scores, scoring_block

REBUILD_INTERVAL = 4096
"""Updates between two rebuilds of the item statistics, at least: exchanging terms leaves a rounding error behind each time."""


@dataclass(frozen=True)
class ALB(Policy):
    """Each user is a linear bandit whose arms are the current item vectors, refitted by least squares after each rating.

    Model: a rating is ⟨A_u, B_j⟩ plus noise, both factors unknown. With V = λ₁I + Σ B_i B_iᵀ over the user's past
    ratings y_i and μ = V⁻¹ Σ y_i B_i, the user's vector lies in the ellipsoid |q − μ|_V ≤ c, where
    c = σ √(2 log(det V^½ det(λ₁I)^−½ / δ)) + √λ₁ s. The item and the vector in that ellipsoid that promise most together are

        j = argmax ⟨μ, B_j⟩ + c |B_j|_V⁻¹        A_u = μ + c V⁻¹B_j / |B_j|_V⁻¹

    and after the rating B_j is the ridge regression (λ₂) of all ratings of item j on the current vectors of their users.

    Symbols: rank k, ridge λ = λ₁ = λ₂ (or `user_ridge` λ₁ and `item_ridge` λ₂), noise σ, confidence δ, norm_bound s,
    user_scale σ₁, item_scale σ₂.

    Cost: select O((|I_u| + |C|) k²), update O(|I_u| k² + k³), I_u the distinct items the user has rated and C the candidates.
    Neither grows with time or with the number of users who rated the item: the sums of each item are kept, and
    when A_u changes its terms in them are exchanged.

    Departures from the paper: A_u also enters the sums with the rating just observed (line 16 as printed leaves it out, which
    makes every item vector zero); s is 1 (the largest row norm of A, as the text has it, feeds back on itself);
    where B_j = 0 the direction is undefined and A_u = μ. Equal scores: the lowest item number wins.
    `update` computes A_u anew, so a recommendation without an answer changes nothing.

    Reference: Dadkhahi and Negahban, Alternating Linear Bandits for Online Matrix-Factorization Recommendation, 2018.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(ALB(rank=2, ridge=0.01, noise=0.5), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(1.0, "regularization of users and items (λ)", above=0)
    noise: float = parameter(0.4, "multiplier of the confidence width (σ)", at_least=0)
    confidence: float = parameter(0.01, "probability that the ellipsoid misses the user (δ)", above=0, below=1)
    norm_bound: float = parameter(1.0, "bound on the norm of a user vector (s)", at_least=0)
    user_ridge: float | None = parameter(None, "regularization of users alone (λ₁)", above=0)
    item_ridge: float | None = parameter(None, "regularization of items alone (λ₂)", above=0)
    user_scale: float = parameter(1.0, "standard deviation of the initial user vectors (σ₁)", at_least=0)
    item_scale: float = parameter(1.0, "standard deviation of the initial item vectors (σ₂)", above=0)

    def settings(self) -> "Settings":
        return Settings(
            user_ridge=self.ridge if self.user_ridge is None else self.user_ridge,
            item_ridge=self.ridge if self.item_ridge is None else self.item_ridge,
            noise=self.noise,
            confidence=self.confidence,
            norm_bound=self.norm_bound,
        )

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        items = streams("item factors").normal(0.0, self.item_scale, (n_items, self.rank))
        return State(
            user_factors=streams("user factors").normal(0.0, self.user_scale, (n_users, self.rank)),
            item_factors=np.asfortranarray(items),
            item_grams=np.zeros((n_items, packed_size(self.rank))),
            item_moments=np.zeros((n_items, self.rank)),
            pairs=no_pairs(n_users),
            updates=np.zeros(2, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        square = (self.rank, self.rank)
        return Scratch(
            np.full(2, -1), np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(self.rank), np.zeros(self.rank),
            np.zeros(self.rank), np.zeros(packed_size(self.rank)), np.zeros(1), scoring_block(self.rank),
        )  # fmt: skip


class Settings(NamedTuple):
    user_ridge: float
    item_ridge: float
    noise: float
    confidence: float
    norm_bound: float


class State(NamedTuple):
    user_factors: Matrix
    """A, one row per user."""
    item_factors: Matrix
    """B, one row per item, in Fortran order: scoring goes over items."""
    item_grams: Matrix
    """Per item Σ A_u A_uᵀ over its ratings, packed."""
    item_moments: Matrix
    """Per item Σ y A_u over its ratings."""
    pairs: Pairs
    updates: NDArray[np.int64]
    """Ratings learned from so far, and at the last rebuild of the item statistics."""


class Scratch(NamedTuple):
    current: NDArray[np.int64]
    """For which user and after how many updates the next four were computed."""
    gram: Matrix
    factor: Matrix
    whitener: Matrix
    center: Vector
    vector: Vector
    change: Vector
    packed_change: Vector
    radius: Vector
    block: Matrix


@kernel
def place_user(state: State, settings: Settings, scratch: Scratch, user: int) -> None:
    """The user's ellipsoid given the present item vectors: center μ, Cholesky factor of V, radius c."""
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
        item = pairs.items[entry]
        for a in range(rank):
            vector[a] = state.item_factors[item, a]
            center[a] += pairs.totals[entry] * vector[a]
        add_outer(gram, vector, float(pairs.plays[entry]))
        entry = pairs.following[entry]
    factorize(gram, scratch.factor, settings.user_ridge)
    solve_lower(scratch.factor, center, center)
    solve_upper(scratch.factor, center, center)
    growth = max(log_determinant(scratch.factor) - rank * math.log(settings.user_ridge), 0.0)
    width = math.sqrt(growth - 2.0 * math.log(settings.confidence))
    scratch.radius[0] = settings.noise * width + math.sqrt(settings.user_ridge) * settings.norm_bound
    scratch.current[0] = user
    scratch.current[1] = state.updates[0]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    place_user(state, settings, scratch, user)
    invert_lower(scratch.factor, scratch.whitener)
    radius = scratch.radius[0]
    optimistic_scores(state.item_factors, candidates, scratch.center, scratch.whitener, radius, scratch.block, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.item_factors.shape[0]
    return best_position(slate.scores, n_candidates), 1.0


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    place_user(state, settings, scratch, user)
    move_user(state, scratch, user, item)
    remember(state.pairs, user, item, reward)
    vector = state.user_factors[user]
    position = 0
    for a in range(vector.size):
        for b in range(a + 1):
            state.item_grams[item, position] += vector[a] * vector[b]
            position += 1
        state.item_moments[item, a] += reward * vector[a]
    state.updates[0] += 1
    if state.updates[0] - state.updates[1] >= max(REBUILD_INTERVAL, state.pairs.used[0]):
        rebuild_items(state)
    if not refit_item(state, settings, scratch, item):
        rebuild_items(state)
        refit_item(state, settings, scratch, item)


@kernel
def move_user(state: State, scratch: Scratch, user: int, item: int) -> None:
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
    entry = pairs.first[user]
    while entry != NOTHING:
        gram = state.item_grams[pairs.items[entry]]
        plays = float(pairs.plays[entry])
        for position in range(packed_change.size):
            gram[position] += plays * packed_change[position]
        moment = state.item_moments[pairs.items[entry]]
        for a in range(rank):
            moment[a] += pairs.totals[entry] * change[a]
        entry = pairs.following[entry]


@kernel
def refit_item(state: State, settings: Settings, scratch: Scratch, item: int) -> bool:
    """Set B_j to the ridge regression of the item's ratings; false if rounding has spoiled its sums."""
    unpack(state.item_grams[item], settings.item_ridge, scratch.gram)
    # The factor of the user's ellipsoid is overwritten here: the update counter has moved on, so nobody reads it again.
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
def rebuild_items(state: State) -> None:
    """Sum the item statistics afresh from the ratings: one pass over all pairs, at most once per as many updates as there are pairs."""
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
