"""Alternating Linear Bandits, the algorithm of the paper."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Policy
from albatross.core.streams import Streams
from albatross.kernels.alternating.dividing import leave_rebuilding, refit_items
from albatross.kernels.alternating.steps import (
    Ellipsoid,
    add_rating,
    attribute_mean,
    describe_user,
    most_promising,
    move_user,
    no_ellipsoid,
    place_user,
    suppose_ratings,
    width_of,
)
from albatross.kernels.carrying import carry_alternating
from albatross.kernels.joining import Rows, join_alternating
from albatross.kernels.linear import Matrix, Vector, packed_size
from albatross.kernels.operations import (
    Belief,
    Items,
    Slate,
    attribute,
    believe,
    carry,
    divide,
    implements,
    join,
    refit,
    replace,
    select,
    suppose,
    update,
    width,
)
from albatross.kernels.pairs import Pairs, no_pairs
from albatross.kernels.replacing import exchange_alternating


@dataclass(frozen=True)
class ALB(Policy):
    """Each user is a linear bandit whose arms are the current item vectors, refitted by least squares after each rating.

    Model: a rating is ⟨A_u, B_j⟩ plus noise, both factors unknown. With V = λ₁I + Σ B_i B_iᵀ over the user's past ratings y_i and μ = V⁻¹
    Σ y_i B_i, the user's vector lies in the ellipsoid |q − μ|_V ≤ c, where c = σ √(2 log(det V^½ det(λ₁I)^−½ / δ)) + √λ₁ s. The item and
    the vector in that ellipsoid with the largest product are

        j = argmax ⟨μ, B_j⟩ + c |B_j|_V⁻¹        A_u = μ + c V⁻¹B_j / |B_j|_V⁻¹

    and after the rating B_j is the ridge regression (λ₂) of all ratings of item j on the current vectors of their users.

    Symbols: rank k, ridge λ = λ₁ = λ₂ (or `user_ridge` λ₁ and `item_ridge` λ₂), noise σ, confidence δ, norm_bound s,
    user_scale σ₁, item_scale σ₂.

    Cost: select O((|I_u| + |C|) k²), update O(|I_u| k² + k³), I_u the distinct items the user has rated and C the candidates. Neither
    grows with time or with the number of users who rated the item: the sums of each item are kept, and when A_u changes its terms in them
    are exchanged. In a large catalogue an exact search finds the best item without scoring most of it.

    Departures from the paper: A_u also enters the sums with the rating just observed (line 16 as printed leaves it out, which makes every
    item vector zero); s is 1 (the largest row norm of A, as the text has it, feeds back on itself); where B_j = 0 the direction is
    undefined and A_u = μ. Ties go to the first candidate. `update` computes A_u again, so a recommendation without a rating changes
    nothing.

    Reference: Dadkhahi and Negahban, Alternating Linear Bandits for Online Matrix-Factorization Recommendation, 2018.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(ALB(rank=2, ridge=0.01, noise=0.5), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    division: ClassVar[Division | None] = Division(
        own=("user_factors", "pairs"),
        sums=("item_grams", "item_moments"),
        derived=("item_factors",),
        population=("updates",),
        rows=("user_factors", "pairs"),
    )

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

    def scratch(self, n_users: int, n_items: int) -> Ellipsoid:
        return no_ellipsoid(self.rank, n_items)


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


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    place_user(state, settings, scratch, user)
    return most_promising(state, scratch, candidates, slate), 1.0


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    place_user(state, settings, scratch, user)
    move_user(state, scratch, user, item)
    add_rating(state, settings, scratch, user, item, reward)


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    exchange_alternating(state, settings, scratch, user, item, before, after)


@implements(join, State)
def join_users(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, other: int, room: Rows, random: np.random.Generator
) -> None:
    join_alternating(state, settings, scratch, user, other, room)


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    carry_alternating(state, settings, scratch, user, arriving, room)


@implements(suppose, State)
def choose_supposing(
    state: State,
    settings: Settings,
    scratch: Ellipsoid,
    user: int,
    candidates: Items,
    items: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    suppose_ratings(state, settings, scratch, user, items, rewards)
    return most_promising(state, scratch, candidates, slate), 1.0


@implements(believe, State)
def belief_about_user(state: State, settings: Settings, scratch: Ellipsoid, user: int, belief: Belief) -> int:
    return describe_user(state, settings, scratch, user, belief)


@implements(width, State)
def width_of_item(state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, more: int) -> float:
    return width_of(state, settings, scratch, user, item, more)


@implements(attribute, State)
def parts_of_mean(state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, items: Items, parts: Vector) -> int:
    return attribute_mean(state, settings, scratch, user, item, items, parts)


@implements(divide, State)
def leave_drift_control(state: State) -> None:
    leave_rebuilding(state)


@implements(refit, State)
def refit_to_all(state: State, settings: Settings, scratch: Ellipsoid, others: State, items: Items, random: np.random.Generator) -> bool:
    return refit_items(state, settings, scratch, others, items)
