"""Matrix factorization with biases, refitted on a schedule, without exploration: the offline reference."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.linear import Matrix, Vector, add_outer, factorize, packed_size, solve_lower, solve_upper, unpack
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember

SWEEPS = 3
"""Sweeps over users and items of a refit. It starts from the last fit, which is close."""
GROWTH = 20
"""A refit waits for one new rating per so many old ones: then all refits together cost a fixed number of passes per rating."""


@dataclass(frozen=True)
class ALS(Policy):
    """Always shows the best item of a matrix factorization with biases, as an offline recommender does: no exploration.

    Model: a rating is c + b_u + d_j + ⟨A_u, B_j⟩ plus noise, c the mean of all ratings. The parameters minimize

        Σ (y − c − b_u − d_j − ⟨A_u, B_j⟩)² + λ Σ_u n_u (b_u² + |A_u|²) + λ Σ_j n_j (d_j² + |B_j|²)

    over all ratings so far, n_u of them by the user and n_j of the item, by solving for all users and for all items in turn.

    Symbols: rank k, ridge λ. Scores are c + b_u + d_j + ⟨A_u, B_j⟩, with zero for a user or an item without ratings at the last fit. Ties
    are broken at random.

    Cost: select O(|C| k), update O(|I_u|). A refit costs O(3 (p k² + (n + m) k³)), p the distinct pairs, and comes after `refit_interval`
    ratings or a twentieth more ratings, whichever is later: amortized, at most 60 visits of a rated pair per new rating.

    Departures: Koren, Bell and Volinsky use the same ridge for all rows; here it is weighted by the number of ratings (Zhou et al.), so it
    need not be tuned to the size. Items start from small normal vectors at their first refit, in the order in which they were first rated
    by each user.

    Reference: Koren, Bell and Volinsky, Matrix Factorization Techniques for Recommender Systems, 2009; Zhou, Wilkinson, Schreiber
    and Pan, Large-scale Parallel Collaborative Filtering for the Netflix Prize, 2008.

    >>> from albatross import Agent
    >>> agent = Agent(ALS(rank=1, ridge=0.1, refit_interval=4), n_users=2, n_items=2)
    >>> agent.replay([0, 0, 1, 1], [0, 1, 0, 1], [5.0, 3.0, 4.0, 2.0])
    >>> agent.select(user=1).item
    0
    """

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(0.05, "regularization per rating (λ)", above=0)
    refit_interval: int = parameter(50, "ratings from one fit to the next, at least", at_least=1)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.refit_interval)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        size = self.rank + 1
        return State(
            user_factors=np.zeros((n_users, size)),
            item_coordinates=np.zeros((size, n_items)),
            pairs=no_pairs(n_users),
            overall=np.zeros(2),
            updates=np.zeros(2, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        size = self.rank + 1
        square, sums = (size, size), np.zeros((n_items, size + 1))
        return Scratch(np.zeros(square), np.zeros(square), np.zeros(size), np.zeros((n_items, packed_size(size))), sums)


class Settings(NamedTuple):
    ridge: float
    refit_interval: int


class State(NamedTuple):
    user_factors: Matrix
    """(A, b), one row per user."""
    item_coordinates: Matrix
    """(B, d), one column per item: scoring goes over items."""
    pairs: Pairs
    overall: Vector
    """Sum of all ratings, and c, their mean at the last fit."""
    updates: NDArray[np.int64]
    """How many ratings there are, and how many there were at the last fit."""


class Scratch(NamedTuple):
    gram: Matrix
    factor: Matrix
    vector: Vector
    item_grams: Matrix
    """Per item Σ x xᵀ over its ratings, x = (A_u, 1), packed."""
    item_moments: Matrix
    """Per item Σ (y − c − b_u) x, and behind it the number of ratings."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    coordinates, vector = state.item_coordinates, state.user_factors[user]
    last = vector.size - 1
    n_candidates = candidates.size if candidates.size > 0 else coordinates.shape[1]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        slate.means[position] = state.overall[1] + vector[last] + coordinates[last, item]
    for a in range(last):
        weight, row = vector[a], coordinates[a]
        for position in range(n_candidates):
            slate.means[position] += weight * row[candidates[position] if candidates.size > 0 else position]
    for position in range(n_candidates):
        slate.scores[position] = slate.means[position]
    return any_best(slate.scores, n_candidates, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.pairs, user, item, reward)
    state.updates[0] += 1
    state.overall[0] += reward
    if state.updates[0] - state.updates[1] >= max(settings.refit_interval, state.updates[1] // GROWTH):
        state.updates[1] = state.updates[0]
        state.overall[1] = state.overall[0] / state.updates[0]
        draw_new_items(state, random)
        for _ in range(SWEEPS):
            refit_users(state, settings, scratch)
            refit_items(state, settings, scratch)


@kernel
def draw_new_items(state: State, random: np.random.Generator) -> None:
    """Give each rated item whose vector is zero a small normal one: alternating least squares would keep it at zero."""
    rank = state.item_coordinates.shape[0] - 1
    for user in range(state.pairs.first.size):
        entry = state.pairs.first[user]
        while entry != NOTHING:
            item = state.pairs.items[entry]
            if state.item_coordinates[0, item] == 0.0:
                for a in range(rank):
                    state.item_coordinates[a, item] = 0.1 * random.standard_normal()
            entry = state.pairs.following[entry]


@kernel
def refit_users(state: State, settings: Settings, scratch: Scratch) -> None:
    """Set every (A_u, b_u) to the regression of the user's ratings on (B_j, 1), and add up the sums for the items."""
    pairs, gram, vector, coordinates = state.pairs, scratch.gram, scratch.vector, state.item_coordinates
    last = vector.size - 1
    scratch.item_grams.fill(0.0)
    scratch.item_moments.fill(0.0)
    for user in range(pairs.first.size):
        fitted, n_ratings = state.user_factors[user], 0.0
        if pairs.first[user] == NOTHING:
            continue
        fitted.fill(0.0)
        gram.fill(0.0)
        entry = pairs.first[user]
        while entry != NOTHING:
            item, plays = pairs.items[entry], float(pairs.plays[entry])
            total = pairs.totals[entry] - plays * (state.overall[1] + coordinates[last, item])
            for a in range(last):
                vector[a] = coordinates[a, item]
            vector[last] = 1.0
            for a in range(vector.size):
                fitted[a] += total * vector[a]
            add_outer(gram, vector, plays)
            n_ratings += plays
            entry = pairs.following[entry]
        for a in range(vector.size):
            gram[a, a] += settings.ridge * n_ratings
        solve(scratch, settings.ridge * n_ratings, fitted)
        add_to_items(state, scratch, user)


@kernel
def add_to_items(state: State, scratch: Scratch, user: int) -> None:
    """Add the user's ratings to the sums of the items."""
    pairs, vector, fitted = state.pairs, scratch.vector, state.user_factors[user]
    last = vector.size - 1
    for a in range(last):
        vector[a] = fitted[a]
    vector[last] = 1.0
    entry = pairs.first[user]
    while entry != NOTHING:
        item, plays = pairs.items[entry], float(pairs.plays[entry])
        gram, moment = scratch.item_grams[item], scratch.item_moments[item]
        total = pairs.totals[entry] - plays * (state.overall[1] + fitted[last])
        position = 0
        for a in range(vector.size):
            for b in range(a + 1):
                gram[position] += plays * vector[a] * vector[b]
                position += 1
            moment[a] += total * vector[a]
        moment[last + 1] += plays
        entry = pairs.following[entry]


@kernel
def refit_items(state: State, settings: Settings, scratch: Scratch) -> None:
    """Set every (B_j, d_j) that was rated to the regression of the item's ratings on (A_u, 1)."""
    size = scratch.vector.size
    for item in range(state.item_coordinates.shape[1]):
        n_ratings = scratch.item_moments[item, size]
        if n_ratings == 0.0:
            continue
        fitted = scratch.item_moments[item, :size]
        unpack(scratch.item_grams[item], settings.ridge * n_ratings, scratch.gram)
        solve(scratch, settings.ridge * n_ratings, fitted)
        for a in range(size):
            state.item_coordinates[a, item] = fitted[a]


@kernel
def solve(scratch: Scratch, ridge: float, vector: Vector) -> None:
    """Vector = gram⁻¹ vector"""
    factorize(scratch.gram, scratch.factor, ridge)
    solve_lower(scratch.factor, vector, vector)
    solve_upper(scratch.factor, vector, vector)
