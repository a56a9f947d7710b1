"""OFUL: one linear bandit per user over item features that are given."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.matrices import read_matrix
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.joining import Rows
from albatross.kernels.linear import (
    Matrix,
    Vector,
    add_outer,
    dot,
    factorize,
    gram_of_columns,
    invert_lower,
    log_determinant,
    packed_size,
    solve_lower,
    solve_upper,
    unpack,
)
from albatross.kernels.operations import Belief, Items, Slate, believe, carry, implements, join, replace, select, suppose, update, width
from albatross.kernels.search.scoring import best_position, optimistic_scores, scoring_block

MOST_FEATURES = 128
"""Limit of features per item: working arrays are made before the features are known."""


@dataclass(frozen=True)
class OFUL(Policy):
    """Each user is a linear bandit over given item features: a lower bound for policies that must learn them.

    Model: a rating is ⟨θ_u, x_j⟩ plus noise, x_j known. With V = λI + Σ x_i x_iᵀ over the user's past ratings y_i and μ = V⁻¹ Σ y_i x_i,
    the user's vector lies in the ellipsoid |q − μ|_V ≤ c, and the item with the best upper bound is shown:

        c = σ √(log det V − k log λ − 2 log δ) + √λ s        j = argmax ⟨μ, x_j⟩ + c |x_j|_V⁻¹

    Symbols: features X, one row x_j per item (k columns), ridge λ, noise σ, confidence δ, norm_bound s. Without a file of features the
    true ones are taken, which only synthetic worlds have. Ties go to the first candidate.

    Cost: select O(|C| k² + k³), update O(k²), memory O((n k + m) k).

    Departures from the paper: none. V is factorized again at each selection, which is exact; its cost is small beside scoring.

    Reference: Abbasi-Yadkori, Pál and Szepesvári, Improved Algorithms for Linear Stochastic Bandits, 2011.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(OFUL(), Gaussian(n_users=5, n_items=20, rank=2), horizon=1000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.05)
    True
    """

    division: ClassVar[Division | None] = Division(own=("item_factors", "user_grams", "user_moments"), rows=("user_grams", "user_moments"))

    statistics: ClassVar[tuple[str, ...]] = ("user_grams", "user_moments")

    features: str | None = parameter(None, "file (.npy) with one row of numbers per item (X); none: the true item vectors of the world")
    ridge: float = parameter(1.0, "regularization of users (λ)", above=0)
    noise: float = parameter(0.5, "multiplier of the confidence width (σ)", at_least=0)
    confidence: float = parameter(0.01, "probability that the ellipsoid misses the user (δ)", above=0, below=1)
    norm_bound: float = parameter(1.0, "bound on the norm of a user vector (s)", at_least=0)

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """With features from a file it needs no truth, so it can be served."""
        return (Need.TRUTH,) if self.features is None else (Need.FEATURES,)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.noise, self.confidence, self.norm_bound)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        known = _true_features(truth) if self.features is None else read_matrix("oful", "features", self.features, "item", n_items)
        if not 1 <= known.shape[1] <= MOST_FEATURES:
            raise InvalidInput(f"oful: the features have {known.shape[1]} columns; accepted: 1 to {MOST_FEATURES}")
        item_factors = np.zeros((n_items, known.shape[1]), order="F")
        item_factors[: len(known)] = known[:n_items]
        return State(item_factors, np.zeros((n_users, packed_size(known.shape[1]))), np.zeros((n_users, known.shape[1])))

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        square = (MOST_FEATURES, MOST_FEATURES)
        rows = (np.zeros(MOST_FEATURES), np.zeros(MOST_FEATURES), np.zeros(MOST_FEATURES))
        return Scratch(np.zeros(square), np.zeros(square), np.zeros(square), *rows, scoring_block(MOST_FEATURES))


def _true_features(truth: Truth | None) -> Matrix:
    if truth is None or truth.item_factors is None:
        raise InvalidInput("oful: this world has no true item vectors; accepted: a synthetic world, or a file in features")
    return truth.item_factors


class Settings(NamedTuple):
    ridge: float
    noise: float
    confidence: float
    norm_bound: float


class State(NamedTuple):
    item_factors: Matrix
    """X, one row per item, in Fortran order: scoring goes over items. An item nobody described is zero."""
    user_grams: Matrix
    """Per user Σ x_i x_iᵀ over their ratings, packed."""
    user_moments: Matrix
    """Per user Σ y_i x_i over their ratings."""


class Scratch(NamedTuple):
    """Sized for the widest features; the first k rows are used."""

    gram: Matrix
    factor: Matrix
    whitener: Matrix
    center: Vector
    vector: Vector
    change: Vector
    block: Matrix


@kernel
def place_user(state: State, settings: Settings, scratch: Scratch, user: int) -> float:
    """The user's ellipsoid: V in `gram`, its factor, μ in `center`; returns the radius."""
    rank = state.user_moments.shape[1]
    gram, factor, center = scratch.gram[:rank], scratch.factor[:rank], scratch.center[:rank]
    unpack(state.user_grams[user], settings.ridge, gram)
    factorize(gram, factor, settings.ridge)
    solve_lower(factor, state.user_moments[user], center)
    solve_upper(factor, center, center)
    growth = max(log_determinant(factor) - rank * math.log(settings.ridge), 0.0)
    return settings.noise * math.sqrt(growth - 2.0 * math.log(settings.confidence)) + math.sqrt(settings.ridge) * settings.norm_bound


@kernel
def most_promising(state: State, scratch: Scratch, radius: float, candidates: Items, slate: Slate) -> int:
    rank = state.user_moments.shape[1]
    factor, whitener, center = scratch.factor[:rank], scratch.whitener[:rank], scratch.center[:rank]
    invert_lower(factor, whitener)
    optimistic_scores(state.item_factors, candidates, center, whitener, radius, scratch.block, slate.scores, slate.means)
    return best_position(slate.scores, candidates.size if candidates.size > 0 else state.item_factors.shape[0])


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    radius = place_user(state, settings, scratch, user)
    return most_promising(state, scratch, radius, candidates, slate), 1.0


@implements(suppose, State)
def choose_supposing(
    state: State,
    settings: Settings,
    scratch: Scratch,
    user: int,
    candidates: Items,
    items: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    """With r = Σ (y − ⟨μ, x⟩) x over the ratings that are not NaN, μ moves by V⁻¹ r; V includes all of them. The radius stays."""
    radius = place_user(state, settings, scratch, user)
    rank = state.user_moments.shape[1]
    gram, factor = scratch.gram[:rank], scratch.factor[:rank]
    center, vector, change = scratch.center[:rank], scratch.vector[:rank], scratch.change[:rank]
    change.fill(0.0)
    for position in range(items.size):
        for a in range(rank):
            vector[a] = state.item_factors[items[position], a]
        add_outer(gram, vector, 1.0)
        if not math.isnan(rewards[position]):
            surprise = rewards[position] - dot(center, vector)
            for a in range(rank):
                change[a] += surprise * vector[a]
    if items.size > 0:
        factorize(gram, factor, settings.ridge)
        solve_lower(factor, change, change)
        solve_upper(factor, change, change)
        for a in range(rank):
            center[a] += change[a]
    return most_promising(state, scratch, radius, candidates, slate), 1.0


@implements(believe, State)
def belief_about_user(state: State, settings: Settings, scratch: Scratch, user: int, belief: Belief) -> int:
    rank = state.user_moments.shape[1]
    if belief.center.size >= rank:
        belief.radius[0] = place_user(state, settings, scratch, user)
        for a in range(rank):
            belief.center[a] = scratch.center[a]
        invert_lower(scratch.factor[:rank], scratch.whitener[:rank])
        gram_of_columns(scratch.whitener[:rank], 1.0, belief.covariance)
    return int(rank)


@implements(width, State)
def width_of_item(state: State, settings: Settings, scratch: Scratch, user: int, item: int, more: int) -> float:
    radius = place_user(state, settings, scratch, user)
    rank = state.user_moments.shape[1]
    vector = scratch.vector[:rank]
    for a in range(rank):
        vector[a] = state.item_factors[item, a]
    solve_lower(scratch.factor[:rank], vector, vector)
    square = dot(vector, vector)
    return radius * math.sqrt(square / (1.0 + more * square))


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    gram, moment = state.user_grams[user], state.user_moments[user]
    position = 0
    for a in range(moment.size):
        feature = state.item_factors[item, a]
        for b in range(a + 1):
            gram[position] += feature * state.item_factors[item, b]
            position += 1
        moment[a] += reward * feature


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    for a in range(state.user_moments.shape[1]):
        state.user_moments[user, a] += (after - before) * state.item_factors[item, a]


@implements(join, State)
def join_users(state: State, settings: Settings, scratch: Scratch, user: int, other: int, room: Rows, random: np.random.Generator) -> None:
    for rows in (state.user_grams, state.user_moments):
        for a in range(rows.shape[1]):
            rows[user, a] += rows[other, a]
            rows[other, a] = 0.0


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Scratch, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    """Only rows of users depend on users: there is nothing to do."""
