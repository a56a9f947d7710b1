"""CLUB: linear bandits shared by clusters of users; clusters split when their users prove to differ."""

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
from albatross.kernels.compiling import kernel
from albatross.kernels.fitting.offline import fit_factors
from albatross.kernels.fitting.ridge import add_term, solve_sums
from albatross.kernels.linear import Matrix, Vector, invert_lower, packed_size
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import best_position, optimistic_scores, scoring_block

OFFLINE, CURRENT = "offline", "current"

OFFLINE_RIDGE, SWEEPS = 0.1, 20
"""Of the factorization of other users' ratings."""


@dataclass(frozen=True)
class CLUB(Policy):
    """All users of a cluster share one linear bandit over item features; clusters split as users prove to differ.

    Model: a rating is ⟨θ, x_j⟩ plus noise, x_j given, and θ is the same for all users of a cluster. Users are nodes of a graph that is
    complete at first; clusters are its connected components J. Each user has M_i = I + Σ x xᵀ, b_i = Σ y x, w_i = M_i⁻¹ b_i over T_i
    ratings; a component has M̄ = I + Σ (M_i − I) and w̄ = M̄⁻¹ Σ b_i over its members:

        j = argmax ⟨w̄, x_j⟩ + α √(x_jᵀ M̄⁻¹ x_j log(t + 1))

    After a rating by u, edges (u, l) are removed where |w_u − w_l| > CB_u + CB_l, CB_i = α₂ √((1 + log(1 + T_i)) / (1 + T_i)), with the
    values from before that rating. Components can only split.

    Symbols: exploration α, separation α₂, rank k. `features`: offline (fitted to other users' ratings), current (learned online by
    regression on the w̄ of the moment, from random vectors; told nothing), or a file with one row per item. Ties go to the first
    candidate.

    Cost: select O(|C| k² + k³), update O(n k + k³); when edges are removed, up to O(n²) for the components. Memory O(n² + (n + m) k²).

    Departures: rewards are not scaled to [−1, 1]; instead α and α₂ are in units of the rewards, which is the same (the default suits
    ratings of 1 to 5). Features are divided by the largest norm: then |x| ≤ 1 and the model stays linear. The graph starts complete; the
    sparse random graph of the paper's experiments cannot be extended to new users. A new user starts in the component of user 0.

    Reference: Gentile, Li and Zappella, Online Clustering of Bandits, 2014.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(CLUB(rank=2), Gaussian(n_users=10, n_items=20, rank=2), horizon=3000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.1 * recording.pseudo_regret[:20].mean())
    True
    """

    features: str = parameter(OFFLINE, "offline (from other users' ratings), current (learned online), or a .npy file with a row per item")
    rank: int = parameter(5, "length of the item vectors, unless a file has them (k)", at_least=1)
    exploration: float = parameter(2.0, "multiplier of the confidence width (α)", at_least=0)
    separation: float = parameter(1.0, "multiplier of the distance at which users are separated (α₂)", above=0)

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """Features come from other users or from a file, or are learned online."""
        return {OFFLINE: (Need.RATINGS,), CURRENT: ()}.get(self.features, (Need.FEATURES,))

    def settings(self) -> "Settings":
        return Settings(self.features == CURRENT, self.exploration, self.separation)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        known = self._known_features(n_items, streams, truth)
        rank = known.shape[1]
        coordinates = np.zeros((rank, n_items))
        coordinates[:, : len(known)] = known[:n_items].T / max(float(np.sqrt((known**2).sum(axis=1)).max(initial=0.0)), 1e-9)
        packed, n_learned = packed_size(rank), n_items if self.features == CURRENT else 0
        return State(
            item_coordinates=coordinates,
            item_grams=np.zeros((n_learned, packed)),
            item_moments=np.zeros((n_learned, rank)),
            user_grams=np.zeros((n_users, packed)),
            user_moments=np.zeros((n_users, rank)),
            user_factors=np.zeros((n_users, rank)),
            visits=np.zeros(n_users, np.int64),
            linked=np.ones((n_users, n_users), np.bool_),
            clusters=np.zeros(n_users, np.int64),
            cluster_grams=np.zeros((n_users, packed)),
            cluster_moments=np.zeros((n_users, rank)),
            updates=np.zeros(1, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        rank = self.rank if self.features in (OFFLINE, CURRENT) else read_matrix("club", "features", self.features, "item", 0).shape[1]
        square = (rank, rank)
        members = np.zeros((2, n_users), np.int64)
        center, vector = np.zeros((2, rank))
        return Scratch(np.zeros(square), np.zeros(square), np.zeros(square), center, vector, scoring_block(rank), members[0], members[1])

    def _known_features(self, n_items: int, streams: Streams, truth: Truth | None) -> Matrix:
        if self.features == CURRENT:
            return streams("club items").normal(size=(n_items, self.rank))
        if self.features != OFFLINE:
            known = read_matrix("club", "features", self.features, "item", n_items)
            if known.shape[1] == 0:
                raise InvalidInput(f"club: features is {self.features!r}, which has no columns; accepted: at least one")
            return known
        if truth is None or truth.ratings is None:
            return np.zeros((0, self.rank))
        return fit_factors(*truth.ratings, self.rank, (OFFLINE_RIDGE, OFFLINE_RIDGE), SWEEPS, streams("club items")).item_factors


class Settings(NamedTuple):
    learns_items: bool
    exploration: float
    separation: float


class State(NamedTuple):
    item_coordinates: Matrix
    """X, one column per item: scoring goes over items. An item nobody described is zero."""
    item_grams: Matrix
    item_moments: Matrix
    """Per item Σ w̄ w̄ᵀ, packed, and Σ y w̄ over its ratings, where items are learned; otherwise empty."""
    user_grams: Matrix
    """Per user M_i − I, packed."""
    user_moments: Matrix
    """Per user b_i."""
    user_factors: Matrix
    """Per user w_i."""
    visits: NDArray[np.int64]
    """Per user T_i."""
    linked: NDArray[np.bool_]
    """The graph on users."""
    clusters: NDArray[np.int64]
    """Per user the first member of the component."""
    cluster_grams: Matrix
    cluster_moments: Matrix
    """Per component, at its first member, the sums of its members."""
    updates: NDArray[np.int64]

    @property
    def item_factors(self) -> Matrix:
        """One row per item."""
        return self.item_coordinates.T


class Scratch(NamedTuple):
    gram: Matrix
    factor: Matrix
    whitener: Matrix
    center: Vector
    vector: Vector
    block: Matrix
    waiting: NDArray[np.int64]
    found: NDArray[np.int64]


@kernel
def regress(gram: Vector, moment: Vector, scratch: Scratch, solution: Vector) -> None:
    """Solution = (I + gram)⁻¹ moment; leaves the Cholesky factor in the scratch."""
    solve_sums(gram, moment, 1.0, scratch.gram, scratch.factor, solution)


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    cluster = state.clusters[user]
    regress(state.cluster_grams[cluster], state.cluster_moments[cluster], scratch, scratch.center)
    invert_lower(scratch.factor, scratch.whitener)
    radius = settings.exploration * math.sqrt(math.log(state.updates[0] + 2.0))
    coordinates = state.item_coordinates
    optimistic_scores(coordinates.T, candidates, scratch.center, scratch.whitener, radius, scratch.block, slate.scores, slate.means)
    return best_position(slate.scores, candidates.size if candidates.size > 0 else coordinates.shape[1]), 1.0


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    cluster, vector = state.clusters[user], scratch.vector
    cut = cut_edges(state, settings, user)
    if settings.learns_items:
        regress(state.cluster_grams[cluster], state.cluster_moments[cluster], scratch, scratch.center)
    for a in range(vector.size):
        vector[a] = state.item_coordinates[a, item]
    add_term(state.user_grams[user], state.user_moments[user], vector, reward)
    add_term(state.cluster_grams[cluster], state.cluster_moments[cluster], vector, reward)
    regress(state.user_grams[user], state.user_moments[user], scratch, state.user_factors[user])
    state.visits[user] += 1
    state.updates[0] += 1
    if cut:
        split_cluster(state, scratch, cluster)
    if settings.learns_items:
        learn_item(state, scratch, item, reward)


@kernel
def learn_item(state: State, scratch: Scratch, item: int, reward: float) -> None:
    """Where items are learned: set x_j to the ridge regression of its ratings on w̄. A first rating of zero is ignored."""
    center, vector = scratch.center, scratch.vector
    size = 0.0
    for a in range(center.size):
        size += abs(center[a])
    if size == 0.0:
        return
    add_term(state.item_grams[item], state.item_moments[item], center, reward)
    regress(state.item_grams[item], state.item_moments[item], scratch, vector)
    for a in range(vector.size):
        state.item_coordinates[a, item] = vector[a]


@kernel
def confidence(settings: Settings, visits: int) -> float:
    """CB_i"""
    return settings.separation * math.sqrt((1.0 + math.log(1.0 + visits)) / (1.0 + visits))


@kernel
def cut_edges(state: State, settings: Settings, user: int) -> bool:
    """Delete the edges from the user to members of their cluster who are too far away; true if there were any."""
    own, cluster, cut = confidence(settings, state.visits[user]), state.clusters[user], False
    for other in range(state.clusters.size):
        if state.clusters[other] != cluster or not state.linked[user, other] or other == user:
            continue
        square = 0.0
        for a in range(state.user_factors.shape[1]):
            distance = state.user_factors[user, a] - state.user_factors[other, a]
            square += distance * distance
        if math.sqrt(square) > own + confidence(settings, state.visits[other]):
            state.linked[user, other] = False
            state.linked[other, user] = False
            cut = True
    return cut


@kernel
def split_cluster(state: State, scratch: Scratch, cluster: int) -> None:
    """Make each connected component of a cluster its own cluster, with the sums of its members."""
    waiting, found = scratch.waiting, scratch.found
    n_waiting = 0
    for user in range(state.clusters.size):
        if state.clusters[user] == cluster:
            waiting[n_waiting] = user
            n_waiting += 1
    while n_waiting > 0:
        first = waiting[0]  # in increasing order: this is the first member of its component
        n_waiting, n_found = move_linked(waiting, n_waiting, state.linked[first], found, 0)
        n_searched = 0
        while n_searched < n_found:
            n_waiting, n_found = move_linked(waiting, n_waiting, state.linked[found[n_searched]], found, n_found)
            n_searched += 1
        sum_members(state, found[:n_found], first)


@kernel
def move_linked(
    waiting: NDArray[np.int64], n_waiting: int, linked: NDArray[np.bool_], found: NDArray[np.int64], n_found: int
) -> tuple[int, int]:
    """Move waiting users linked to a found one; returns how many still wait and how many are found. Each user is linked to itself."""
    kept = 0
    for place in range(n_waiting):
        other = waiting[place]
        if linked[other]:
            found[n_found] = other
            n_found += 1
        else:
            waiting[kept] = other
            kept += 1
    return kept, n_found


@kernel
def sum_members(state: State, members: NDArray[np.int64], cluster: int) -> None:
    gram, moment = state.cluster_grams[cluster], state.cluster_moments[cluster]
    gram.fill(0.0)
    moment.fill(0.0)
    for member in members:
        state.clusters[member] = cluster
        for position in range(gram.size):
            gram[position] += state.user_grams[member, position]
        for a in range(moment.size):
            moment[a] += state.user_moments[member, a]
