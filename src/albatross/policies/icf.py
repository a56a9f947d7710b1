"""Interactive collaborative filtering: item vectors from other users' ratings, and a linear bandit per user over them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.parameters import parameter
from albatross.core.policy import Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.fitting.offline import fit_factors
from albatross.kernels.fitting.ridge import add_term, pack_whitener, packed_width, solve_sums
from albatross.kernels.linear import Matrix, Vector, invert_lower, packed_size, solve_upper
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import best_position, optimistic_scores, scoring_block

UCB, THOMPSON, GLM_UCB, EPSILON_GREEDY = range(4)
STRATEGIES = {"ucb": UCB, "ts": THOMPSON, "glm-ucb": GLM_UCB, "epsilon-greedy": EPSILON_GREEDY}

SWEEPS = 20
"""Of alternating least squares over the ratings of others, as in public code."""


@dataclass(frozen=True)
class ICF(Policy):
    """Fits item vectors to other users' ratings, and runs a linear bandit over them for each new user.

    Model: a rating is ⟨p_u, q_j⟩ plus noise, p_u ~ N(0, σ_p² I), q_j ~ N(0, σ_q² I). Other users' ratings give q_j a posterior with
    mean q̄_j and covariance Ψ_j. A user's own ratings y_i then give the posterior of a Bayesian regression on q̄:

        A = (σ²/σ_p²) I + Σ q̄_i q̄_iᵀ        μ = A⁻¹ Σ y_i q̄_i        Σ_u = σ² A⁻¹

        ucb             argmax ⟨μ, q̄_j⟩ + α |q̄_j|_Σ
        glm-ucb         argmax ρ(⟨μ, q̄_j⟩) + α √(log t) |q̄_j|_Σ, ρ the logistic function, t the user's visit
        ts              argmax ⟨p, q⟩, p ~ N(μ, Σ_u), q ~ N(q̄_j, Ψ_j)
        epsilon-greedy  any candidate with probability α, else argmax ⟨μ, q̄_j⟩

    Symbols: rank k, noise σ, user_scale σ_p, item_scale σ_q, exploration α. `items`: frozen (as published: never updated online), or
    online, which starts from random vectors without other users' ratings, and updates q_j by the same regression on the current μ.

    Cost: select O(|C| k² + k³), update O(k²), online O(k³), memory O((n + m) k²). Offline 20 sweeps of alternating least squares.

    Departures: defaults are for ratings of about 1 to 5; public code has σ² = 0.05 and σ_p² = σ_q² = 0.01. A Thompson draw is not kept
    until the rating arrives, so users are updated with q̄_j instead of the drawn q. Given p, ⟨p, q⟩ is normal and is drawn directly: one
    number per candidate. Ties go to the first candidate; with epsilon-greedy they are broken at random.

    Reference: Zhao, Zhang and Wang, Interactive Collaborative Filtering, 2013.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(ICF(rank=2), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.1 * recording.pseudo_regret[:20].mean())
    True
    """

    strategy: str = parameter("ucb", "how it explores", choices=tuple(STRATEGIES))
    items: str = parameter("frozen", "whether item vectors are fitted to other users' ratings or online", choices=("frozen", "online"))
    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    exploration: float = parameter(1.0, "multiplier of the width, or the probability to explore (α)", at_least=0)
    noise: float = parameter(0.5, "standard deviation of the noise (σ)", above=0)
    user_scale: float = parameter(1.0, "prior standard deviation of user vectors (σ_p)", above=0)
    item_scale: float = parameter(1.0, "prior standard deviation of item vectors (σ_q)", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strategy == "epsilon-greedy" and self.exploration > 1:
            raise InvalidInput(f"ICF: exploration is {self.exploration:g}, the probability to explore; accepted: at most 1")

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """Item vectors that are learned online do not need other users' ratings."""
        return (Need.RATINGS,) if self.items == "frozen" else ()

    def settings(self) -> "Settings":
        user_ridge, item_ridge = self._ridges()
        return Settings(STRATEGIES[self.strategy], self.items == "online", self.exploration, self.noise, user_ridge, item_ridge)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        packed, identity = packed_size(self.rank), np.eye(self.rank)[np.tril_indices(self.rank)]
        state = State(
            item_coordinates=np.zeros((self.rank, n_items)),
            item_whiteners=np.tile(identity / math.sqrt(self._ridges()[1]), (n_items, 1)),
            item_grams=np.zeros((n_items, packed)),
            item_moments=np.zeros((n_items, self.rank)),
            user_grams=np.zeros((n_users, packed)),
            user_moments=np.zeros((n_users, self.rank)),
            visits=np.zeros(n_users, np.int64),
        )
        if self.items == "online":
            state.item_coordinates[:] = self.item_scale * streams("icf items").normal(size=(n_items, self.rank)).T
        elif truth is not None and truth.ratings is not None:
            fit = fit_factors(*truth.ratings, self.rank, self._ridges(), SWEEPS, streams("icf items"))
            known = slice(0, min(len(fit.item_factors), n_items))
            state.item_grams[known], state.item_moments[known] = fit.item_grams[known], fit.item_moments[known]
            scratch = self.scratch(n_users, n_items)
            for item in np.flatnonzero(state.item_grams[:, 0]):
                refit_item(state, self.settings(), scratch, int(item))
        return state

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        square = (self.rank, self.rank)
        vectors = np.zeros((2, self.rank))
        return Scratch(np.zeros(square), np.zeros(square), np.zeros(square), vectors[0], vectors[1], scoring_block(self.rank))

    def _ridges(self) -> tuple[float, float]:
        return (self.noise / self.user_scale) ** 2, (self.noise / self.item_scale) ** 2


class Settings(NamedTuple):
    strategy: int
    learns_items: bool
    exploration: float
    noise: float
    user_ridge: float
    item_ridge: float


class State(NamedTuple):
    item_coordinates: Matrix
    """q̄, one column per item: scoring goes over items. Zero for an item without ratings by others."""
    item_whiteners: Matrix
    """Per item the inverse Cholesky factor of Σ p pᵀ + (σ²/σ_q²) I, packed: Ψ = σ² whitenerᵀ whitener."""
    item_grams: Matrix
    """Per item Σ p pᵀ over its ratings, packed."""
    item_moments: Matrix
    """Per item Σ y p over its ratings."""
    user_grams: Matrix
    """Per user Σ q̄ q̄ᵀ over their ratings, packed."""
    user_moments: Matrix
    """Per user Σ y q̄ over their ratings."""
    visits: NDArray[np.int64]

    @property
    def item_factors(self) -> Matrix:
        """One row per item."""
        return self.item_coordinates.T


class Scratch(NamedTuple):
    gram: Matrix
    factor: Matrix
    whitener: Matrix
    center: Vector
    draw: Vector
    block: Matrix


@kernel
def place_user(state: State, settings: Settings, scratch: Scratch, user: int) -> None:
    """The user's posterior: mean in `center`, Cholesky factor of A in `factor`."""
    solve_sums(state.user_grams[user], state.user_moments[user], settings.user_ridge, scratch.gram, scratch.factor, scratch.center)


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else state.item_coordinates.shape[1]
    means, scores = slate.means, slate.scores
    radius = settings.exploration * settings.noise
    if settings.strategy == GLM_UCB:
        radius *= math.sqrt(math.log(state.visits[user] + 1.0))
    elif settings.strategy != UCB:
        radius = 0.0
    place_user(state, settings, scratch, user)
    invert_lower(scratch.factor, scratch.whitener)
    optimistic_scores(state.item_coordinates.T, candidates, scratch.center, scratch.whitener, radius, scratch.block, scores, means)
    if settings.strategy == GLM_UCB:
        for position in range(n_candidates):
            scores[position] += logistic(means[position]) - means[position]
    elif settings.strategy == THOMPSON:
        draw_scores(state, settings, scratch, candidates, n_candidates, scores, random)
        return best_position(scores, n_candidates), math.nan
    elif settings.strategy == EPSILON_GREEDY:
        best, share = any_best(scores, n_candidates, random)
        chosen = int(random.random() * n_candidates) if random.random() < settings.exploration else best
        greedy = share if scores[chosen] == scores[best] else 0.0
        return chosen, settings.exploration / n_candidates + (1.0 - settings.exploration) * greedy
    return best_position(scores, n_candidates), 1.0


@kernel
def draw_scores(
    state: State, settings: Settings, scratch: Scratch, candidates: Items, n_candidates: int, scores: Vector, random: np.random.Generator
) -> None:
    """Draw p ~ N(μ, Σ_u), and for every candidate ⟨p, q⟩ ~ N(⟨p, q̄⟩, pᵀ Ψ p)."""
    draw, rank = scratch.draw, scratch.draw.size
    for a in range(rank):
        draw[a] = settings.noise * random.standard_normal()
    solve_upper(scratch.factor, draw, draw)
    for a in range(rank):
        draw[a] += scratch.center[a]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        mean = 0.0
        for a in range(rank):
            mean += draw[a] * state.item_coordinates[a, item]
        scores[position] = mean + settings.noise * packed_width(state.item_whiteners[item], draw) * random.standard_normal()


@kernel
def logistic(value: float) -> float:
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    power = math.exp(value)
    return power / (1.0 + power)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    for a in range(scratch.draw.size):
        scratch.draw[a] = state.item_coordinates[a, item]
    add_term(state.user_grams[user], state.user_moments[user], scratch.draw, reward)
    state.visits[user] += 1
    if settings.learns_items:
        place_user(state, settings, scratch, user)
        add_term(state.item_grams[item], state.item_moments[item], scratch.center, reward)
        refit_item(state, settings, scratch, item)


@kernel
def refit_item(state: State, settings: Settings, scratch: Scratch, item: int) -> None:
    """Set q̄ and the whitener of an item to the posterior given its sums."""
    vector = scratch.draw
    solve_sums(state.item_grams[item], state.item_moments[item], settings.item_ridge, scratch.gram, scratch.factor, vector)
    pack_whitener(scratch.factor, scratch.whitener, state.item_whiteners[item])
    for a in range(vector.size):
        state.item_coordinates[a, item] = vector[a]
