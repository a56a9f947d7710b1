"""SmoothExplore: the best direction plus a small random rotation."""

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
from albatross.kernels.linear import Matrix, Vector, dot, factorize, norm, packed_size, solve_lower, solve_upper, unpack
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import best_position, plain_scores, scoring_block

TRUE_FEATURES = "true"
SWEEPS, OFFLINE_RIDGE = 20, 0.1
"""Of alternating least squares over what other users said."""
MOST_FEATURES = 128
"""Features per item, at most: room to work in is made before the features are known."""
LARGEST_SHARE = 2.0 / 3.0
"""β² never exceeds this: most of the direction is what is known."""


@dataclass(frozen=True)
class SmoothExplore(Policy):
    """Rotates the estimated user vector by a random angle, which shrinks with each visit, and shows the best item for it.

    Model: a rating is ⟨θ_u, x_j⟩ plus noise, x_j known. With θ̂ the ridge regression of the user's ratings on the features, at visit t

        d = √(1 − β²) θ̂ / |θ̂| + β e,    e a random unit vector at right angles to θ̂,    β² = min(b / t, ⅔)

    and the candidate with the largest ⟨d, x_j⟩ is shown.

    Symbols: features X, one row x_j per item (k columns), ridge λ, exploration b. Without a file, the features are a factorization of
    other users' ratings of rank k; `true` takes the true ones, which only synthetic worlds have. Scores are |θ̂| ⟨d, x_j⟩ and means ⟨θ̂,
    x_j⟩; where θ̂ is zero, d is any direction. Ties go to the first candidate.

    Cost: select O(|C| k + k³), update O(k²), memory O((n k + m) k).

    Departures from the paper: there, items fill the whole space and d itself is recommended; here it is the item with the largest product
    with d. The schedule is that of the regime with many ratings per user.

    Reference: Deshpande and Montanari, Linear Bandits in High Dimension and Recommendation Systems, 2012.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(SmoothExplore(rank=2), Gaussian(n_users=5, n_items=20, rank=2), horizon=1000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.2 * recording.pseudo_regret[:50].mean())
    True
    """

    features: str | None = parameter(
        None, "file (.npy) with one row of numbers per item (X); true: the true vectors; none: fitted to other users' ratings"
    )
    rank: int = parameter(5, "number of features that are fitted (k)", at_least=1, at_most=MOST_FEATURES)
    ridge: float = parameter(1.0, "regularization of users (λ)", above=0)
    exploration: float = parameter(3.0, "share of the direction that is random, times the number of visits (b)", at_least=0)

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """With features from a file it needs nothing from the world, so it can be served."""
        if self.features is None:
            return (Need.RATINGS,)
        return (Need.TRUTH,) if self.features == TRUE_FEATURES else (Need.FEATURES,)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.exploration)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        known = self._known(n_items, streams, truth)
        if not 1 <= known.shape[1] <= MOST_FEATURES:
            raise InvalidInput(f"smooth-explore: the features have {known.shape[1]} columns; accepted: 1 to {MOST_FEATURES}")
        rank = known.shape[1]
        item_factors = np.zeros((n_items, rank), order="F")
        item_factors[: len(known)] = known[:n_items]
        return State(item_factors, np.zeros((n_users, packed_size(rank))), np.zeros((n_users, rank)), np.zeros(n_users, np.int64))

    def _known(self, n_items: int, streams: Streams, truth: Truth | None) -> Matrix:
        """The features of the items that have any."""
        if self.features is None:
            if truth is None or truth.ratings is None:
                raise InvalidInput("smooth-explore: no ratings of others were given; accepted: other users' ratings, or a file in features")
            return fit_factors(*truth.ratings, self.rank, (OFFLINE_RIDGE, OFFLINE_RIDGE), SWEEPS, streams("item features")).item_factors
        if self.features != TRUE_FEATURES:
            return read_matrix("smooth-explore", "features", self.features, "item", n_items)
        if truth is None or truth.item_factors is None:
            raise InvalidInput("smooth-explore: this world has no true item vectors; accepted: a synthetic world, or a file in features")
        return truth.item_factors

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        square, row = np.zeros((MOST_FEATURES, MOST_FEATURES)), np.zeros(MOST_FEATURES)
        return Scratch(square, square.copy(), row, row.copy(), scoring_block(MOST_FEATURES))


class Settings(NamedTuple):
    ridge: float
    exploration: float


class State(NamedTuple):
    item_factors: Matrix
    """X, one row per item, in Fortran order: scoring goes over items. An item nobody described is zero."""
    user_grams: Matrix
    """Per user Σ x_i x_iᵀ over their ratings, packed."""
    user_moments: Matrix
    """Per user Σ y_i x_i over their ratings."""
    visits: NDArray[np.int64]
    """Per user t − 1."""


class Scratch(NamedTuple):
    """Sized for the widest features; the first k rows are used."""

    gram: Matrix
    factor: Matrix
    center: Vector
    """θ̂"""
    direction: Vector
    """|θ̂| d"""
    block: Matrix


@kernel
def turn(center: Vector, direction: Vector, share: float, random: np.random.Generator) -> None:
    """A vector as long as `center`, turned by a random angle whose squared sine is `share`; any direction of length one from zero."""
    length = norm(center)
    for a in range(direction.size):
        direction[a] = random.standard_normal()
    along = dot(center, direction) / (length * length) if length > 0.0 else 0.0
    for a in range(direction.size):
        direction[a] -= along * center[a]
    across = norm(direction)
    # In one dimension nothing is at right angles; what rounding leaves is no direction.
    stretch = 1.0 / across if across > 1e-9 else 0.0
    if length > 0.0:
        stretch *= math.sqrt(share) * length
    for a in range(direction.size):
        direction[a] = stretch * direction[a] + math.sqrt(1.0 - share) * center[a]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    rank = state.user_moments.shape[1]
    gram, factor, center, direction = scratch.gram[:rank], scratch.factor[:rank], scratch.center[:rank], scratch.direction[:rank]
    unpack(state.user_grams[user], settings.ridge, gram)
    factorize(gram, factor, settings.ridge)
    solve_lower(factor, state.user_moments[user], center)
    solve_upper(factor, center, center)
    turn(center, direction, min(settings.exploration / (1.0 + state.visits[user]), LARGEST_SHARE), random)
    plain_scores(state.item_factors, candidates, center, scratch.block, slate.means)
    plain_scores(state.item_factors, candidates, direction, scratch.block, slate.scores)
    return best_position(slate.scores, candidates.size if candidates.size > 0 else state.item_factors.shape[0]), math.nan


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
    state.visits[user] += 1
