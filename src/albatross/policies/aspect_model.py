"""Active collaborative filtering with an aspect model: first show the most informative items, then the best."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import OtherRatings, Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.search.scoring import best_position

STRENGTH = 1.0
"""Weight of a prior in ratings: of a user's types, and of an item's ratings per type."""
FOLD_IN = 5
"""Rounds of expectation and maximization over a user's own ratings after each of them, starting from the last result."""


@dataclass(frozen=True)
class AspectModel(Policy):
    """Shows a new user the items that tell most about their mixture of types, and after a few visits the best item.

    Model: a user is a mixture θ_u over Z types, and a type z rates item j with r with probability p(r|z,j), r one of a few levels. Both
    are fitted to other users' ratings by expectation maximization; online only θ_u is updated. At the first q visits

        j = argmax Σ_z θ_u(z) Σ_r p(r|z,j) log θ_u|j,r(z)        θ_u|j,r(z) ∝ θ_u(z) p(r|z,j)

    which is minus the expected entropy of the type after the rating; later j = argmax Σ_z θ_u(z) Σ_r r p(r|z,j).

    Symbols: n_types Z, queries q, levels (of ratings, by quantiles where there are more values), iterations of EM.

    Cost: select O(|C| Z) and O(|C| Z L) with L logarithms per candidate while it asks, update O(|I_u| Z), memory O(m Z L + n Z).
    Offline O(Z) per rating and iteration.

    Departures: every shown item is rated, so the probability that a user rates at all is left out. The published criterion takes the
    rating and the type from θ_u independently, and is then largest where all types agree; here the rating comes from the type. Counts are
    smoothed by one rating. An item without ratings by others has the same distribution for all types. Ties go to the first candidate.

    Reference: Harpale and Yang, Personalized Active Learning for Collaborative Filtering, 2008; model of Hofmann, 2004.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Uniform
    >>> recording = simulate(AspectModel(n_types=3), Uniform(n_users=20, n_items=20, rank=2), horizon=1000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.6 * recording.pseudo_regret[:100].mean())
    True
    """

    needs: ClassVar[tuple[Need, ...]] = (Need.RATINGS,)

    n_types: int = parameter(5, "types of users (Z)", at_least=1)
    queries: int = parameter(10, "first visits of a user, which show informative items (q)", at_least=0)
    levels: int = parameter(5, "values that a rating is rounded to", at_least=2)
    iterations: int = parameter(50, "rounds of expectation maximization over other users' ratings", at_least=1)

    def settings(self) -> "Settings":
        return Settings(self.queries)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        others = OtherRatings(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1))
        if truth is not None and truth.ratings is not None:
            others = truth.ratings
        edges, values, numbers = rounded(others.ratings, self.levels)
        fit = first_guess(others, numbers, self.n_types, self.levels, streams("aspect-model types"))
        for _ in range(self.iterations):
            fit = improved(fit, others, numbers)
        known = min(len(fit.likelihoods), n_items)
        likelihoods = np.tile(fit.shares, (n_items, self.n_types, 1))
        likelihoods[:known] = fit.likelihoods[:known]
        logarithms = np.log(np.where(likelihoods > 0.0, likelihoods, 1.0))
        prior = fit.mixtures.mean(axis=0)
        return State(
            edges=edges,
            likelihoods=likelihoods,
            expected=(likelihoods * values).sum(axis=2),
            informations=(likelihoods * logarithms).sum(axis=2),
            prior=prior,
            mixtures=np.tile(prior, (n_users, 1)),
            pairs=no_pairs(n_users),
            visits=np.zeros(n_users, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(np.zeros(self.n_types))


class Fit(NamedTuple):
    """An aspect model of other users."""

    mixtures: Matrix
    """θ, one row per user."""
    likelihoods: NDArray[np.float64]
    """p(r|z,j), by item, type and level."""
    shares: Vector
    """How often each level is given at all."""


def rounded(ratings: Vector, levels: int) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Upper ends of the levels, their values, and the level of each rating. Empty levels come last."""
    found = np.unique(ratings)
    if found.size > levels:
        bounds = np.unique(np.quantile(ratings, np.arange(1, levels) / levels))
    else:
        bounds = 0.5 * (found[1:] + found[:-1])
    edges = np.concatenate([bounds, np.full(levels - 1 - bounds.size, np.inf)])
    numbers = np.searchsorted(edges, ratings)
    counts = np.bincount(numbers, minlength=levels)
    values = np.bincount(numbers, ratings, levels) / np.maximum(counts, 1)
    return edges, values, numbers


def first_guess(others: OtherRatings, numbers: NDArray[np.int64], n_types: int, levels: int, random: np.random.Generator) -> Fit:
    """Mixtures that are nearly uniform, and types that differ at random."""
    shares = np.bincount(numbers, minlength=levels) / numbers.size
    tilted = shares * random.uniform(0.5, 1.5, (int(others.items.max()) + 1, n_types, levels))
    return Fit(np.full((int(others.users.max()) + 1, n_types), 1.0 / n_types), tilted / tilted.sum(axis=2, keepdims=True), shares)


def improved(fit: Fit, others: OtherRatings, numbers: NDArray[np.int64]) -> Fit:
    """One round of expectation and maximization."""
    n_users, n_types = fit.mixtures.shape
    n_items, _, levels = fit.likelihoods.shape
    joint = fit.mixtures[others.users] * fit.likelihoods[others.items, :, numbers]
    shares = joint / joint.sum(axis=1, keepdims=True)
    mixtures = np.column_stack([np.bincount(others.users, shares[:, z], n_users) for z in range(n_types)]) + STRENGTH / n_types
    places = others.items.astype(np.int64) * levels + numbers
    counts = [np.bincount(places, shares[:, z], n_items * levels).reshape(n_items, levels) for z in range(n_types)]
    likelihoods = np.stack(counts, axis=1) + STRENGTH * fit.shares
    return Fit(mixtures / mixtures.sum(axis=1, keepdims=True), likelihoods / likelihoods.sum(axis=2, keepdims=True), fit.shares)


class Settings(NamedTuple):
    queries: int


class State(NamedTuple):
    edges: Vector
    """Where levels of ratings end."""
    likelihoods: NDArray[np.float64]
    """p(r|z,j), by item, type and level."""
    expected: Matrix
    """Per item and type Σ_r r p(r|z,j)."""
    informations: Matrix
    """Per item and type Σ_r p log p."""
    prior: Vector
    mixtures: Matrix
    """θ, one row per user."""
    pairs: Pairs
    visits: NDArray[np.int64]


class Scratch(NamedTuple):
    vector: Vector


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    mixture, asking = state.mixtures[user], state.visits[user] < settings.queries
    n_candidates = candidates.size if candidates.size > 0 else state.expected.shape[0]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        mean = 0.0
        for z in range(mixture.size):
            mean += mixture[z] * state.expected[item, z]
        slate.means[position] = mean
        slate.scores[position] = certainty(state, mixture, item) if asking else mean
    return best_position(slate.scores, n_candidates), 1.0


@kernel
def certainty(state: State, mixture: Vector, item: int) -> float:
    """Minus the expected entropy of the type after a rating of this item."""
    total = 0.0
    for z in range(mixture.size):
        total += mixture[z] * (math.log(mixture[z]) + state.informations[item, z])
    for level in range(state.likelihoods.shape[2]):
        chance = 0.0
        for z in range(mixture.size):
            chance += mixture[z] * state.likelihoods[item, z, level]
        if chance > 0.0:
            total -= chance * math.log(chance)
    return total


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.pairs, user, item, reward)
    state.visits[user] += 1
    for _ in range(FOLD_IN):
        fold_in(state, scratch.vector, user)


@kernel
def fold_in(state: State, counts: Vector, user: int) -> None:
    """One round of expectation and maximization over the user's own ratings: each pair counts with its mean, as often as it was rated."""
    pairs, mixture = state.pairs, state.mixtures[user]
    n_types, n_ratings = mixture.size, STRENGTH
    for z in range(n_types):
        counts[z] = STRENGTH * state.prior[z]
    entry = pairs.first[user]
    while entry != NOTHING:
        plays, value, level = float(pairs.plays[entry]), pairs.totals[entry] / pairs.plays[entry], 0
        while level < state.edges.size and state.edges[level] < value:
            level += 1
        likelihoods, total = state.likelihoods[pairs.items[entry]], 0.0
        for z in range(n_types):
            total += mixture[z] * likelihoods[z, level]
        for z in range(n_types):
            counts[z] += plays * mixture[z] * likelihoods[z, level] / total
        n_ratings += plays
        entry = pairs.following[entry]
    for z in range(n_types):
        mixture[z] = counts[z] / n_ratings
