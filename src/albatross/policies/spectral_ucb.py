"""SpectralUCB: one linear bandit per user over the smooth functions on a graph of items."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.matrices import read_matrix
from albatross.core.parameters import parameter
from albatross.core.policy import Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.fitting.offline import fit_factors
from albatross.kernels.fitting.spectrum import spectrum
from albatross.kernels.linear import Matrix, Vector, dot
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import best_position, plain_scores, scoring_block

OFFLINE_RIDGE, SWEEPS = 0.1, 20
"""Of the factorization of other users' ratings that the graph is made from."""

MOST_NODES = 5000
"""Items in the graph, at most: its eigenvectors are found all at once, in O(m³)."""


@dataclass(frozen=True)
class SpectralUCB(Policy):
    """Each user is a linear bandit whose features are the smoothest functions on a graph of similar items.

    Model: ratings of a user are a smooth function on a graph with weights W. With its Laplacian D − W = Q diag(l) Qᵀ, x_j the row of Q
    for item j and Λ = diag(l) + λI, a rating is ⟨α, x_j⟩ plus noise, and |α|_Λ is small. Over the user's ratings V = Λ + Σ x xᵀ,
    α̂ = V⁻¹ Σ y x, and at the user's visit t

        c = 2R √(d log(1 + t/λ) + 2 log(1/δ)) + C        j = argmax ⟨α̂, x_j⟩ + c |x_j|_V⁻¹

    with d the largest number for which (d − 1) Λ_d ≤ T / log(1 + T/λ), the effective dimension.

    Symbols: ridge λ, confidence δ, noise R, norm_bound C, visits T (per user). Of the eigenvectors the `n_eigenvectors` smoothest are kept
    (J). `graph`: a file with a row of weights per item; none: item vectors of length `rank` are fitted to other users' ratings, and two
    items are linked if one is among the `neighbours` nearest of the other. Ties go to the first candidate.

    Cost: select O(|C| J), update O(m J + J²), because the width of every item is kept per user: memory O(n (J² + m)). Offline O(m³), and
    refused beyond 5,000 items.

    Departures: truncation to J eigenvectors. Items outside the graph have no features. Eigenvectors come from LAPACK: for equal
    eigenvalues another machine may return other vectors, so only this policy may give different bits on different machines.

    Reference: Valko, Munos, Kveton and Kocák, Spectral Bandits for Smooth Graph Functions, 2014.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(SpectralUCB(n_eigenvectors=20), Gaussian(n_users=5, n_items=40, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:20].mean())
    True
    """

    graph: str | None = parameter(None, "file (.npy) with a row of weights per item (W); none: from other users' ratings")
    n_eigenvectors: int = parameter(50, "eigenvectors of the graph that are kept (J)", at_least=1)
    neighbours: int = parameter(10, "nearest items that an item is linked to", at_least=1)
    rank: int = parameter(5, "length of the vectors in which items are near", at_least=1)
    ridge: float = parameter(0.01, "regularization (λ)", above=0)
    noise: float = parameter(0.01, "bound on the noise (R)", at_least=0)
    confidence: float = parameter(0.001, "probability that the ellipsoid misses the user (δ)", above=0, below=1)
    norm_bound: float = parameter(1.0, "bound on |α|_Λ (C)", at_least=0)
    visits: int = parameter(125, "visits of a user that the effective dimension is for (T)", at_least=1)

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """A graph from a file, or other users' ratings to build one."""
        return (Need.RATINGS,) if self.graph is None else (Need.GRAPH,)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.noise, self.confidence, self.norm_bound)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        weights = self._weights(n_items, streams, truth)
        values, vectors = spectrum(np.diag(weights.sum(axis=1)) - weights, self.n_eigenvectors)
        values = np.maximum(values, 0.0) + self.ridge
        kept, size = min(len(values), self.n_eigenvectors), min(len(values), n_items)
        coordinates = np.zeros((self.n_eigenvectors, n_items))
        coordinates[:kept, :size] = vectors[:, :size]
        prior = np.full(self.n_eigenvectors, 1.0 / self.ridge)
        prior[:kept] = 1.0 / values[:kept]
        widths = np.zeros(n_items)
        for a in range(self.n_eigenvectors):
            widths += prior[a] * coordinates[a] ** 2
        return State(
            item_coordinates=coordinates,
            dimension=np.array([effective_dimension(values, self.ridge, self.visits)]),
            inverses=np.tile(np.diag(prior), (n_users, 1, 1)),
            user_factors=np.zeros((n_users, self.n_eigenvectors)),
            squares=np.tile(widths, (n_users, 1)),
            user_visits=np.zeros(n_users, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        vectors = np.zeros((2, self.n_eigenvectors))
        return Scratch(vectors[0], vectors[1], np.zeros(n_items), scoring_block(self.n_eigenvectors), np.empty(0, np.int32))

    def _weights(self, n_items: int, streams: Streams, truth: Truth | None) -> Matrix:
        if self.graph is not None:
            weights = read_matrix("spectral-ucb", "graph", self.graph, "item", n_items)
            if weights.shape[0] != weights.shape[1] or (weights < 0).any() or not np.array_equal(weights, weights.T):
                raise InvalidInput(
                    f"spectral-ucb: graph is {self.graph!r}; accepted: a square, symmetric table of weights, none below zero"
                )
        elif truth is None or truth.ratings is None:
            return np.zeros((1, 1))
        else:
            ridges = (OFFLINE_RIDGE, OFFLINE_RIDGE)
            vectors = fit_factors(*truth.ratings, self.rank, ridges, SWEEPS, streams("spectral-ucb items")).item_factors
            weights = nearest_neighbours(vectors, self.neighbours)
        if len(weights) > MOST_NODES:
            raise InvalidInput(f"spectral-ucb: the graph has {len(weights):,} items; accepted: at most {MOST_NODES:,}")
        return weights


def nearest_neighbours(vectors: Matrix, neighbours: int) -> Matrix:
    """The graph that links items if one is among the nearest of the other."""
    lengths = (vectors**2).sum(axis=1)
    distances = lengths[:, np.newaxis] + lengths - 2.0 * np.einsum("ia,ja->ij", vectors, vectors)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1, kind="stable")[:, : min(neighbours, len(vectors) - 1)]
    linked = np.zeros(distances.shape, np.bool_)
    linked[np.arange(len(vectors))[:, np.newaxis], near] = True
    return (linked | linked.T).astype(np.float64)


def effective_dimension(values: Vector, ridge: float, visits: int) -> float:
    """The largest d with (d − 1) Λ_d ≤ T / log(1 + T/λ); the values are Λ in increasing order."""
    return float(np.flatnonzero(np.arange(len(values)) * values <= visits / math.log(1.0 + visits / ridge)).max() + 1)


class Settings(NamedTuple):
    ridge: float
    noise: float
    confidence: float
    norm_bound: float


class State(NamedTuple):
    item_coordinates: Matrix
    """X, one column per item: scoring goes over items. An item outside the graph is zero."""
    dimension: Vector
    """d, an array of length 1."""
    inverses: NDArray[np.float64]
    """Per user V⁻¹."""
    user_factors: Matrix
    """Per user α̂."""
    squares: Matrix
    """Per user and item xᵀ V⁻¹ x."""
    user_visits: NDArray[np.int64]

    @property
    def item_factors(self) -> Matrix:
        """One row per item."""
        return self.item_coordinates.T


class Scratch(NamedTuple):
    vector: Vector
    gain: Vector
    products: Vector
    block: Matrix
    everything: Items
    """Empty: the whole catalogue."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    spread = state.dimension[0] * math.log(1.0 + (state.user_visits[user] + 1.0) / settings.ridge) - 2.0 * math.log(settings.confidence)
    radius = 2.0 * settings.noise * math.sqrt(spread) + settings.norm_bound
    plain_scores(state.item_coordinates.T, candidates, state.user_factors[user], scratch.block, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.item_coordinates.shape[1]
    squares = state.squares[user]
    for position in range(n_candidates):
        square = squares[candidates[position] if candidates.size > 0 else position]
        slate.scores[position] = slate.means[position] + radius * math.sqrt(square)
    return best_position(slate.scores, n_candidates), 1.0


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    vector, gain, products, inverse = scratch.vector, scratch.gain, scratch.products, state.inverses[user]
    for a in range(vector.size):
        vector[a] = state.item_coordinates[a, item]
    for a in range(vector.size):
        gain[a] = dot(inverse[a], vector)
    growth = 1.0 + dot(vector, gain)
    step = (reward - dot(state.user_factors[user], vector)) / growth
    plain_scores(state.item_coordinates.T, scratch.everything, gain, scratch.block, products)
    for other in range(products.size):
        state.squares[user, other] = max(state.squares[user, other] - products[other] * products[other] / growth, 0.0)
    for a in range(vector.size):
        state.user_factors[user, a] += step * gain[a]
        scaled = gain[a] / growth
        for b in range(vector.size):
            inverse[a, b] -= scaled * gain[b]
    state.user_visits[user] += 1
