"""FactorUCB: user and item vectors with a confidence bonus for each; item features and a user graph are optional."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.matrices import read_matrix
from albatross.core.parameters import parameter
from albatross.core.policy import Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.fitting.ridge import add_term, factorize_sums, pack_whitener, packed_width, solve_sums
from albatross.kernels.linear import Matrix, Vector, dot, factorize, invert_lower, packed_size
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import best_position, optimistic_scores, scoring_block

MOST_COUPLED = 5000
"""Users times coordinates under one graph, at most: a matrix of that size takes 200 MB, and a step some 50 ms."""


@dataclass(frozen=True)
class FactorUCB(Policy):
    """Learns user and item vectors together, each with its own confidence bonus; features and a user graph can be given.

    Model: an item is z_j = (x_j; v_j), x_j given (p numbers), v_j learned (l numbers). Users are coupled by a given W, whose columns add
    up to one: a rating is ⟨z_j, Θ W_u⟩ plus noise, Θ = (Θˣ; Θᵛ). With f = vec(z_j W_uᵀ), A = λI + Σ f fᵀ, vec Θ = A⁻¹ Σ y f,
    q = Θᵛ W_u, and per item C_j = λI + Σ q qᵀ, v_j = C_j⁻¹ Σ q (y − ⟨x_j, Θˣ W_u⟩):

        j = argmax ⟨z_j, Θ W_u⟩ + α_u √(fᵀ A⁻¹ f) + α_v √(qᵀ C_j⁻¹ q)

    The sums of each side use the vectors of the other side at the time of the rating.

    Symbols: rank l, ridge λ, user_exploration α_u, item_exploration α_v; `contexts` x, `graph` W. Without a graph W = I, and A has one
    block per user. Vectors without ratings are uniform in [0, 1). Ties go to the first candidate.

    Cost: select O(|C| (p + l)² + (p + l)³), update O((p + l)³). With a graph O((n (p + l))²) for either, because A⁻¹ is kept by rank-one
    updates; refused where n (p + l) is beyond 5,000. Memory O((n + m)(p + l)²), with a graph O((n (p + l))²).

    Departures: without a graph a user keeps the random vector until the first rating of their own; the authors' code sets all such users
    to zero at the first rating of anybody. Blocks are factorized again at each step where the authors update an inverse; both are exact.

    Reference: Wang, Wu and Wang, Factorization Bandits for Interactive Recommendation, 2017.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Uniform
    >>> policy = FactorUCB(rank=2, user_exploration=1.0, item_exploration=1.0)
    >>> recording = simulate(policy, Uniform(n_users=20, n_items=20, rank=2), horizon=3000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:50].mean())
    True
    """

    rank: int = parameter(5, "length of the learned item vectors (l)", at_least=1)
    ridge: float = parameter(0.1, "regularization of users and items (λ)", above=0)
    user_exploration: float = parameter(0.1, "multiplier of the confidence width of users (α_u)", at_least=0)
    item_exploration: float = parameter(0.1, "multiplier of the confidence width of items (α_v)", at_least=0)
    contexts: str | None = parameter(None, "file (.npy) with one row of features per item (x); none: no features")
    graph: str | None = parameter(None, "file (.npy) with the weights of the user graph, columns adding up to one (W); none: no graph")

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """What its files hold."""
        return tuple(need for need, file in ((Need.FEATURES, self.contexts), (Need.GRAPH, self.graph)) if file is not None)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.user_exploration, self.item_exploration)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        n_given = self._n_given()
        size = n_given + self.rank
        coordinates = np.zeros((size, n_items))
        if self.contexts is not None:
            coordinates[:n_given] = read_matrix("factor-ucb", "contexts", self.contexts, "item", n_items)[:n_items].T
        coordinates[n_given:] = streams("factor-ucb items").random((n_items, self.rank)).T
        weights = self._weights(n_users, size)
        coupled = len(weights) * size
        whitener = np.eye(self.rank)[np.tril_indices(self.rank)] / math.sqrt(self.ridge)
        return State(
            item_coordinates=coordinates,
            item_grams=np.zeros((n_items, packed_size(self.rank))),
            item_moments=np.zeros((n_items, self.rank)),
            item_whiteners=np.tile(whitener, (n_items, 1)),
            user_factors=streams("factor-ucb users").random((n_users, size)),
            user_grams=np.zeros((0 if coupled else n_users, packed_size(size))),
            user_moments=np.zeros((n_users, size)),
            weights=weights,
            inverse=np.eye(coupled) / self.ridge,
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        size = self._n_given() + self.rank
        n_coupled = 0 if self.graph is None else n_users * size
        squares, small = np.zeros((3, size, size)), np.zeros((2, self.rank, self.rank))
        vectors, coupled = np.zeros((2, size)), np.zeros((2, n_coupled))
        return Scratch(
            squares[0], squares[1], squares[2], small[0], small[1], vectors[0], vectors[1], np.zeros(self.rank), coupled[0], coupled[1],
            scoring_block(size),
        )  # fmt: skip

    def _n_given(self) -> int:
        return 0 if self.contexts is None else int(read_matrix("factor-ucb", "contexts", self.contexts, "item", 0).shape[1])

    def _weights(self, n_users: int, size: int) -> Matrix:
        if self.graph is None:
            return np.zeros((0, 0))
        weights = read_matrix("factor-ucb", "graph", self.graph, "user", n_users)
        if weights.shape != (n_users, n_users) or (weights < 0).any() or not np.allclose(weights.sum(axis=0), 1.0):
            raise InvalidInput(
                f"factor-ucb: graph is {self.graph!r}; accepted: a table of {n_users} × {n_users} weights, none below zero, "
                "each column with sum one"
            )
        if n_users * size > MOST_COUPLED:
            raise InvalidInput(
                f"factor-ucb: a graph of {n_users:,} users with {size} coordinates; accepted: a product of at most {MOST_COUPLED:,}"
            )
        return weights


class Settings(NamedTuple):
    ridge: float
    user_exploration: float
    item_exploration: float


class State(NamedTuple):
    item_coordinates: Matrix
    """z = (x; v), one column per item: scoring goes over items."""
    item_grams: Matrix
    """Per item C − λI, packed."""
    item_moments: Matrix
    item_whiteners: Matrix
    """Per item the inverse Cholesky factor of C, packed."""
    user_factors: Matrix
    """Θ, one row per user."""
    user_grams: Matrix
    """Per user the block of A − λI, packed; empty with a graph."""
    user_moments: Matrix
    weights: Matrix
    """W; empty without a graph."""
    inverse: Matrix
    """A⁻¹, users one behind the other; empty without a graph."""

    @property
    def item_factors(self) -> Matrix:
        """One row per item."""
        return self.item_coordinates.T


class Scratch(NamedTuple):
    gram: Matrix
    factor: Matrix
    whitener: Matrix
    small_gram: Matrix
    small_factor: Matrix
    coefficients: Vector
    """Θ W_u"""
    vector: Vector
    latent: Vector
    spread: Vector
    gain: Vector
    block: Matrix


@kernel
def place_user(state: State, settings: Settings, scratch: Scratch, user: int) -> None:
    """Set the coefficients to Θ W_u."""
    coefficients = scratch.coefficients
    for a in range(coefficients.size):
        coefficients[a] = 0.0 if state.weights.size > 0 else state.user_factors[user, a]
    for other in range(state.weights.shape[0]):
        weight = state.weights[other, user]
        for a in range(coefficients.size):
            coefficients[a] += weight * state.user_factors[other, a]


@kernel
def whiten_user(state: State, settings: Settings, scratch: Scratch, user: int) -> None:
    """Set the whitener so that |whitener · z|² = fᵀ A⁻¹ f."""
    gram, size = scratch.gram, scratch.coefficients.size
    if state.weights.size == 0:
        factorize_sums(state.user_grams[user], settings.ridge, gram, scratch.factor)
        invert_lower(scratch.factor, scratch.whitener)
        return
    # z ↦ fᵀ A⁻¹ f has the matrix M = Σ W_iu W_ju A⁻¹_ij. With the order of coordinates turned round, M = L Lᵀ gives M = Uᵀ U, U lower.
    gram.fill(0.0)
    for one in range(state.weights.shape[0]):
        for other in range(state.weights.shape[0]):
            weight = state.weights[one, user] * state.weights[other, user]
            if weight > 0.0:
                for a in range(size):
                    for b in range(a + 1):
                        gram[a, b] += weight * state.inverse[one * size + size - 1 - a, other * size + size - 1 - b]
    factorize(gram, scratch.factor, 0.0)
    for a in range(size):
        for b in range(a + 1):
            scratch.whitener[a, b] = scratch.factor[size - 1 - b, size - 1 - a]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    coordinates, coefficients = state.item_coordinates, scratch.coefficients
    rank = scratch.latent.size
    place_user(state, settings, scratch, user)
    whiten_user(state, settings, scratch, user)
    radius = settings.user_exploration
    optimistic_scores(coordinates.T, candidates, coefficients, scratch.whitener, radius, scratch.block, slate.scores, slate.means)
    latent = coefficients[coefficients.size - rank :]
    n_candidates = candidates.size if candidates.size > 0 else coordinates.shape[1]
    for position in range(n_candidates):
        whitener = state.item_whiteners[candidates[position] if candidates.size > 0 else position]
        slate.scores[position] += settings.item_exploration * packed_width(whitener, latent)
    return best_position(slate.scores, n_candidates), 1.0


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    vector = scratch.vector
    for a in range(vector.size):
        vector[a] = state.item_coordinates[a, item]
    if state.weights.size == 0:
        add_term(state.user_grams[user], state.user_moments[user], vector, reward)
        sums, moments = state.user_grams[user], state.user_moments[user]
        solve_sums(sums, moments, settings.ridge, scratch.gram, scratch.factor, state.user_factors[user])
    else:
        learn_coupled(state, scratch, user, reward)
    place_user(state, settings, scratch, user)
    learn_item(state, settings, scratch, item, reward)


@kernel
def learn_coupled(state: State, scratch: Scratch, user: int, reward: float) -> None:
    """Add f to A and y f to its moments, by a rank-one update of A⁻¹, and set Θ."""
    spread, gain, vector, inverse = scratch.spread, scratch.gain, scratch.vector, state.inverse
    size = vector.size
    for other in range(state.weights.shape[0]):
        for a in range(size):
            term = state.weights[other, user] * vector[a]
            spread[other * size + a] = term
            state.user_moments[other, a] += reward * term
    for row in range(spread.size):
        gain[row] = dot(inverse[row], spread)
    growth = 1.0 + dot(spread, gain)
    for row in range(spread.size):
        scaled = gain[row] / growth
        for column in range(spread.size):
            inverse[row, column] -= scaled * gain[column]
    for row in range(spread.size):
        total = 0.0
        for column in range(spread.size):
            total += inverse[row, column] * state.user_moments[column // size, column % size]
        state.user_factors[row // size, row % size] = total


@kernel
def learn_item(state: State, settings: Settings, scratch: Scratch, item: int, reward: float) -> None:
    """Set v_j and the whitener of the item to the regression on q of the part of the ratings that features do not explain."""
    coefficients, vector, latent = scratch.coefficients, scratch.vector, scratch.latent
    n_given, rank = vector.size - latent.size, latent.size
    rest = reward
    for a in range(n_given):
        rest -= coefficients[a] * vector[a]
    for a in range(rank):
        latent[a] = coefficients[n_given + a]
    add_term(state.item_grams[item], state.item_moments[item], latent, rest)
    sums, moments = state.item_grams[item], state.item_moments[item]
    solve_sums(sums, moments, settings.ridge, scratch.small_gram, scratch.small_factor, latent)
    pack_whitener(scratch.small_factor, scratch.small_gram, state.item_whiteners[item])
    for a in range(rank):
        state.item_coordinates[n_given + a, item] = latent[a]
