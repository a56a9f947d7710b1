"""ε-greedy over a matrix factorization by alternating least squares."""

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

FIRST_SWEEPS = 50
"""Sweeps over users and items of a fit that starts from random vectors: enough to settle."""
SWEEPS = 3
"""Sweeps of a fit that starts from the last one: a few more ratings change it little."""
VANISHED = 1e-6
"""Item vectors smaller than this in every coordinate cannot be a start: alternating least squares never leaves zero."""


@dataclass(frozen=True)
class EpsilonALS(Policy):
    """Shows the best item of a matrix factorization, and with a probability that falls as 1/t a random item.

    Model: a rating is ⟨A_u, B_j⟩ plus noise. The factors minimize Σ (y − ⟨A_u, B_j⟩)² + λ (|A|² + |B|²) over all ratings so far,
    approached by solving for all users, then for all items, in turn. At step t

        ε_t = min(1, a / t)        j uniform over the candidates with probability ε_t, else argmax ⟨A_u, B_j⟩

    Symbols: rank k, ridge λ, exploration a. Scores are ⟨A_u, B_j⟩ in steps that explore too. Ties, as for a user without ratings at the
    last fit, are broken at random.

    Cost: select O(|C| k), update O(|I_u|) and once per `refit_interval` O(3 (p k² + (n + m) k³)), p the distinct pairs and I_u the
    distinct items the user has rated: so its cost grows with the number of ratings.

    Departures: the first fit takes 50 sweeps from normal item vectors, later ones 3 from the last fit. If rewards are so small that the
    fit became zero, it starts from normal vectors again.

    Reference: ε as in Auer, Cesa-Bianchi and Fischer, Finite-time Analysis of the Multiarmed Bandit Problem, 2002;
    fit as in Zhou, Wilkinson, Schreiber and Pan, Large-scale Parallel Collaborative Filtering for the Netflix Prize, 2008.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(EpsilonALS(rank=2), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(0.1, "regularization of users and items (λ)", above=0)
    exploration: float = parameter(200.0, "steps that only explore; later ones do with probability a / t (a)", at_least=0)
    refit_interval: int = parameter(50, "ratings from one fit to the next", at_least=1)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.exploration, self.refit_interval)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(
            user_factors=np.zeros((n_users, self.rank)),
            item_factors=np.zeros((n_items, self.rank), order="F"),
            pairs=no_pairs(n_users),
            updates=np.zeros(1, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        square = (self.rank, self.rank)
        return Scratch(
            np.zeros(square), np.zeros(square), np.zeros(self.rank),
            np.zeros((n_items, packed_size(self.rank))), np.zeros((n_items, self.rank)),
        )  # fmt: skip


class Settings(NamedTuple):
    ridge: float
    exploration: float
    refit_interval: int


class State(NamedTuple):
    user_factors: Matrix
    """A, one row per user."""
    item_factors: Matrix
    """B, one row per item, in Fortran order: scoring goes over items."""
    pairs: Pairs
    updates: NDArray[np.int64]


class Scratch(NamedTuple):
    gram: Matrix
    factor: Matrix
    vector: Vector
    item_grams: Matrix
    """Per item Σ A_u A_uᵀ over its ratings, packed."""
    item_moments: Matrix
    """Per item Σ y A_u over its ratings."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else state.item_factors.shape[0]
    means, scores = slate.means, slate.scores
    for position in range(n_candidates):
        means[position] = 0.0
    for a in range(state.user_factors.shape[1]):
        weight = state.user_factors[user, a]
        coordinates = state.item_factors[:, a]
        for position in range(n_candidates):
            means[position] += weight * coordinates[candidates[position] if candidates.size > 0 else position]
    for position in range(n_candidates):
        scores[position] = means[position]
    best, share = any_best(scores, n_candidates, random)
    exploring = min(1.0, settings.exploration / (state.updates[0] + 1))
    position = best
    if random.random() < exploring:
        position = int(random.random() * n_candidates)
    greedy = share if scores[position] == scores[best] else 0.0
    return position, exploring / n_candidates + (1.0 - exploring) * greedy


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.pairs, user, item, reward)
    state.updates[0] += 1
    if state.updates[0] % settings.refit_interval == 0:
        vanished = has_vanished(state.item_factors)
        if vanished:
            draw_items(state, random)
        for _ in range(FIRST_SWEEPS if vanished else SWEEPS):
            refit_users(state, settings, scratch)
            refit_items(state, settings, scratch)


@kernel
def has_vanished(factors: Matrix) -> bool:
    for a in range(factors.shape[1]):
        for row in range(factors.shape[0]):
            if abs(factors[row, a]) >= VANISHED:
                return False
    return True


@kernel
def draw_items(state: State, random: np.random.Generator) -> None:
    """Give each rated item a normal vector, in the order of the ratings, so that the room for other items does not matter."""
    state.item_factors.fill(0.0)
    for entry in range(state.pairs.used[0]):
        item = state.pairs.items[entry]
        if state.item_factors[item, 0] == 0.0:
            for a in range(state.item_factors.shape[1]):
                state.item_factors[item, a] = random.standard_normal()


@kernel
def refit_users(state: State, settings: Settings, scratch: Scratch) -> None:
    """Set every A_u to the ridge regression of the user's ratings on the item vectors, and add up the sums for the items."""
    pairs, gram, vector = state.pairs, scratch.gram, scratch.vector
    rank = vector.size
    scratch.item_grams.fill(0.0)
    scratch.item_moments.fill(0.0)
    for user in range(pairs.first.size):
        if pairs.first[user] == NOTHING:
            continue
        fitted = state.user_factors[user]
        fitted.fill(0.0)
        for a in range(rank):
            for b in range(a):
                gram[a, b] = 0.0
            gram[a, a] = settings.ridge
        entry = pairs.first[user]
        while entry != NOTHING:
            for a in range(rank):
                vector[a] = state.item_factors[pairs.items[entry], a]
                fitted[a] += pairs.totals[entry] * vector[a]
            add_outer(gram, vector, float(pairs.plays[entry]))
            entry = pairs.following[entry]
        solve(settings, scratch, fitted)
        entry = pairs.first[user]
        while entry != NOTHING:
            item_gram, item_moment = scratch.item_grams[pairs.items[entry]], scratch.item_moments[pairs.items[entry]]
            position = 0
            for a in range(rank):
                scaled = pairs.plays[entry] * fitted[a]
                for b in range(a + 1):
                    item_gram[position] += scaled * fitted[b]
                    position += 1
                item_moment[a] += pairs.totals[entry] * fitted[a]
            entry = pairs.following[entry]


@kernel
def refit_items(state: State, settings: Settings, scratch: Scratch) -> None:
    """Set every B_j to the ridge regression of the item's ratings on the user vectors; that of an item without ratings is zero."""
    for item in range(state.item_factors.shape[0]):
        unpack(scratch.item_grams[item], settings.ridge, scratch.gram)
        solve(settings, scratch, scratch.item_moments[item])
        for a in range(scratch.vector.size):
            state.item_factors[item, a] = scratch.item_moments[item, a]


@kernel
def solve(settings: Settings, scratch: Scratch, vector: Vector) -> None:
    """Vector = gram⁻¹ vector"""
    factorize(scratch.gram, scratch.factor, settings.ridge)
    solve_lower(scratch.factor, vector, vector)
    solve_upper(scratch.factor, vector, vector)
