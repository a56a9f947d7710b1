"""Rarely-switching Alternating Linear Bandits: the version the paper left for future work."""

import math
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
    describe_user,
    is_searched,
    most_promising,
    move_user,
    no_ellipsoid,
    place_user,
    suppose_ratings,
    width_of,
)
from albatross.kernels.carrying import carry_alternating
from albatross.kernels.compiling import kernel
from albatross.kernels.joining import Rows, join_alternating, swap_rows
from albatross.kernels.linear import Matrix, Vector, dot, packed_size, solve_lower, solve_upper
from albatross.kernels.operations import (
    Belief,
    Items,
    Slate,
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
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs
from albatross.kernels.replacing import exchange_alternating
from albatross.kernels.search.catalogue import search
from albatross.kernels.search.scoring import best_position, plain_scores

NEVER_SWITCHED = -1.0


@dataclass(frozen=True)
class ALBRS(Policy):
    """Alternating Linear Bandits that recomputes a user's vector only when enough has been learned since the last time.

    Model: as in ALB. At a *switch* the user's ellipsoid is built from the current item vectors and the optimistic vector A_u chosen with
    the item, as in ALB; then A_u stays, and items are shown by the largest ⟨A_u, B_j⟩ alone, until the determinant of
    V = (V at the switch) + Σ x xᵀ over the vectors x shown since has grown by the factor 1 + C:

        switch if det V > (1 + C) det V_switch        V⁻¹ ← V⁻¹ − (V⁻¹x)(V⁻¹x)ᵀ / (1 + g),  log det V ← log det V + log(1 + g),  g = xᵀV⁻¹x

    Item vectors are refitted after every rating. With C = 0 every visit switches, and the policy is ALB, bit for bit.

    Symbols: patience C; as in ALB rank k, ridge λ (or `user_ridge` λ₁ and `item_ridge` λ₂), noise σ, confidence δ, norm_bound s.

    Cost: at a switch as ALB; otherwise select O(|C| k) and update O(|I_u| + k³).

    Departures: the growth of V is measured on the vectors as they were when shown, because item vectors shrink with time and
    the determinant of a V rebuilt from them may fall. Item sums are exchanged at a switch rather than rebuilt when next needed.

    Reference: Abbasi-Yadkori, Pál and Szepesvári, Improved Algorithms for Linear Stochastic Bandits, 2011 (section 5.1), carried over to
    Dadkhahi and Negahban, Alternating Linear Bandits for Online Matrix-Factorization Recommendation, 2018 (future work).

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(ALBRS(rank=2, ridge=0.01, noise=0.5), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    counters: ClassVar[tuple[str, ...]] = ("switches",)

    division: ClassVar[Division | None] = Division(
        own=("user_factors", "pairs", "user_centers", "user_inverses", "user_growth", "switches"),
        sums=("item_grams", "item_moments"),
        derived=("item_factors",),
        population=("updates",),
        rows=("user_factors", "pairs", "user_centers", "user_inverses", "user_growth"),
    )

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(1.0, "regularization of users and items (λ)", above=0)
    noise: float = parameter(0.4, "multiplier of the confidence width (σ)", at_least=0)
    patience: float = parameter(0.1, "growth of det V before a user's vector is recomputed (C)", at_least=0)
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
            threshold=math.log1p(self.patience),
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
            user_centers=np.zeros((n_users, self.rank)),
            user_inverses=np.zeros((n_users, self.rank, self.rank)),
            user_growth=np.full(n_users, NEVER_SWITCHED),
            switches=np.zeros(1, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> Ellipsoid:
        return no_ellipsoid(self.rank, n_items)


class Settings(NamedTuple):
    user_ridge: float
    item_ridge: float
    noise: float
    confidence: float
    norm_bound: float
    threshold: float
    """log(1 + C)"""


class State(NamedTuple):
    user_factors: Matrix
    item_factors: Matrix
    item_grams: Matrix
    item_moments: Matrix
    pairs: Pairs
    updates: NDArray[np.int64]
    """All as in ALB."""
    user_centers: Matrix
    """Per user the center of the ellipsoid at the last switch."""
    user_inverses: Matrix
    """Per user V⁻¹, with the vectors shown since."""
    user_growth: Vector
    """Per user log det V − log det V_switch."""
    switches: NDArray[np.int64]
    """How many switches there were."""


@kernel
def is_due(state: State, settings: Settings, user: int) -> bool:
    growth = state.user_growth[user]
    return growth < 0.0 or growth > settings.threshold or settings.threshold == 0.0


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    if is_due(state, settings, user):
        place_user(state, settings, scratch, user)
        return most_promising(state, scratch, candidates, slate), 1.0
    return best_for_frozen(state, scratch, user, candidates, slate), 1.0


@kernel
def best_for_frozen(state: State, scratch: Ellipsoid, user: int, candidates: Items, slate: Slate) -> int:
    """The position of the candidate with the largest ⟨A_u, B_j⟩."""
    items, vector, center = state.item_factors, state.user_factors[user], state.user_centers[user]
    if is_searched(state, scratch, candidates, slate):
        scratch.whitener[:] = 0.0
        position = search(scratch.catalogue, items, state.updates[0], vector, scratch.whitener, 0.0, candidates, slate)
        for place in range(-1, slate.best.size):
            other = position if place < 0 else slate.best[place]
            if other >= 0:
                slate.means[other] = dot(center, items[candidates[other] if candidates.size > 0 else other])
        return position
    plain_scores(items, candidates, vector, scratch.block, slate.scores)
    plain_scores(items, candidates, center, scratch.block, slate.means)
    return best_position(slate.scores, candidates.size if candidates.size > 0 else items.shape[0])


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
    """Between two switches the decision does not depend on V: supposed ratings change it at the next switch at the earliest."""
    due = is_due(state, settings, user)
    if items.size > 0 and not due:
        return -1, 1.0
    if not due:
        return best_for_frozen(state, scratch, user, candidates, slate), 1.0
    suppose_ratings(state, settings, scratch, user, items, rewards)
    return most_promising(state, scratch, candidates, slate), 1.0


@implements(believe, State)
def belief_about_user(state: State, settings: Settings, scratch: Ellipsoid, user: int, belief: Belief) -> int:
    return describe_user(state, settings, scratch, user, belief)


@implements(width, State)
def width_of_item(state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, more: int) -> float:
    return width_of(state, settings, scratch, user, item, more)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    if is_due(state, settings, user):
        place_user(state, settings, scratch, user)
        switch(state, scratch, user)
        move_user(state, scratch, user, item)
    count_shown(state, scratch, user, item)
    add_rating(state, settings, scratch, user, item, reward)


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    """The user's vector stays as it is until the next switch; the item is refitted, as after any rating."""
    exchange_alternating(state, settings, scratch, user, item, before, after)


@implements(join, State)
def join_users(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, other: int, room: Rows, random: np.random.Generator
) -> None:
    """If both have ratings, the ellipsoid of the user is recomputed at the next visit."""
    if state.pairs.first[other] == NOTHING:
        return
    stranger, growth = state.pairs.first[user] == NOTHING, state.user_growth
    join_alternating(state, settings, scratch, user, other, room)
    growth[user], growth[other] = growth[other] if stranger else NEVER_SWITCHED, NEVER_SWITCHED
    if stranger:
        swap_rows(state.user_centers, user, other)
        for a in range(state.user_inverses.shape[1]):
            swap_rows(state.user_inverses[:, a], user, other)


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Ellipsoid, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    carry_alternating(state, settings, scratch, user, arriving, room)


@kernel
def switch(state: State, scratch: Ellipsoid, user: int) -> None:
    """Keep the ellipsoid just computed: its center and V⁻¹, column by column."""
    vector, inverse = scratch.vector, state.user_inverses[user]
    for column in range(vector.size):
        for a in range(vector.size):
            vector[a] = 1.0 if a == column else 0.0
        solve_lower(scratch.factor, vector, vector)
        solve_upper(scratch.factor, vector, vector)
        for a in range(vector.size):
            inverse[a, column] = vector[a]
        state.user_centers[user, column] = scratch.center[column]
    state.user_growth[user] = 0.0
    state.switches[0] += 1


@kernel
def count_shown(state: State, scratch: Ellipsoid, user: int, item: int) -> None:
    """Add the vector just shown to V: Sherman and Morrison's formula for the inverse, and the growth of the determinant."""
    image, inverse = scratch.change, state.user_inverses[user]
    gain = 0.0
    for a in range(image.size):
        image[a] = 0.0
        for b in range(image.size):
            image[a] += inverse[a, b] * state.item_factors[item, b]
        gain += state.item_factors[item, a] * image[a]
    gain = max(gain, 0.0)
    for a in range(image.size):
        for b in range(image.size):
            inverse[a, b] -= image[a] * image[b] / (1.0 + gain)
    state.user_growth[user] += math.log1p(gain)


@implements(divide, State)
def leave_drift_control(state: State) -> None:
    leave_rebuilding(state)


@implements(refit, State)
def refit_to_all(state: State, settings: Settings, scratch: Ellipsoid, others: State, items: Items, random: np.random.Generator) -> bool:
    return refit_items(state, settings, scratch, others, items)
