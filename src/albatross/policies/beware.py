"""BeWARE: confidence ellipsoids on an incrementally refitted matrix factorization. The closest predecessor of ALB."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.fitting.regressing import Side, Work, add_rating, new_side, new_work, next_turn, refit, regress
from albatross.kernels.linear import Matrix, Vector, invert_lower
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import optimistic_scores, scoring_block

OF_USER, OF_ITEM = range(2)
SIDES = {"user": OF_USER, "item": OF_ITEM}


@dataclass(frozen=True)
class BeWARE(Policy):
    """Fits users and items by alternating least squares, and adds a confidence bonus for the user or for the item.

    Model: a rating is ⟨A_u, B_j⟩ plus noise. The factors minimize Σ (y − ⟨A_u, B_j⟩)² + λ (Σ n_u |A_u|² + Σ n_j |B_j|²), n counting
    ratings. With V = Σ B_i B_iᵀ + λ n_u I over the items user u has rated, and W_j = Σ A_v A_vᵀ + λ n_j I over the users who have rated
    item j,

        user:  score_j = ⟨A_u, B_j⟩ + α |B_j|_V⁻¹        item:  score_j = ⟨A_u, B_j⟩ + α |A_u|_W⁻¹

    Symbols: rank k, ridge λ, exploration α, `uncertain` whose ellipsoid is taken. Ties are broken at random.

    Cost: select O(|I_u| k² + k³ + |C| k²), update O((|I| + |U|) k² + k³), I the distinct items a user has rated and U the users who have
    rated an item; memory O((n + m) k + distinct pairs), `item` m k² more.

    Departures from the paper: written from summaries of it and not held against its text, so the defaults are provisional; ridge and
    exploration were chosen on small synthetic worlds. The paper factorizes again before each recommendation. Here a rating refits its user
    and its item, and one more of each in turn. A user is always refitted to the current items before it is served. W is that of the item's
    last fit. Before any rating n counts as one and vectors are normal with variance 1/k; a regression that comes to exactly zero is not
    taken over, because alternating least squares never leaves zero.

    Reference: Mary, Gaudel and Preux, Bandits Warm-up Cold Recommender Systems, 2014; weighted-λ regularization as in Zhou, Wilkinson,
    Schreiber and Pan, Large-scale Parallel Collaborative Filtering for the Netflix Prize, 2008.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(BeWARE(rank=2), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    uncertain: str = parameter("user", "whose ellipsoid gives the bonus", choices=tuple(SIDES))
    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(0.02, "regularization per rating (λ)", above=0)
    exploration: float = parameter(1.0, "multiplier of the width (α)", at_least=0)

    def settings(self) -> "Settings":
        return Settings(SIDES[self.uncertain], self.ridge, self.exploration)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        scale = self.rank**-0.5
        prior = (np.eye(self.rank) * self.ridge**-0.5)[np.tril_indices(self.rank)]
        return State(
            new_side(streams("user factors").normal(0.0, scale, (n_users, self.rank))),
            new_side(streams("item factors").normal(0.0, scale, (n_items, self.rank))),
            np.tile(prior, (n_items if self.uncertain == "item" else 1, 1)),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(new_work(self.rank), np.zeros((self.rank, self.rank)), scoring_block(self.rank))


class Settings(NamedTuple):
    side: int
    ridge: float
    exploration: float


class State(NamedTuple):
    users: Side
    items: Side
    item_whiteners: Matrix
    """Per item the inverse of the Cholesky factor of W, packed; a single row if it is not needed."""


class Scratch(NamedTuple):
    work: Work
    whitener: Matrix
    block: Matrix


@kernel
def width_of_item(whitener: Vector, vector: Vector) -> float:
    """√(vectorᵀ W⁻¹ vector) from the packed inverse factor."""
    square, position = 0.0, 0
    for a in range(vector.size):
        projection = 0.0
        for b in range(a + 1):
            projection += whitener[position] * vector[b]
            position += 1
        square += projection * projection
    return float(np.sqrt(square))


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    work, items = scratch.work, state.items.factors
    regress(state.users, user, items, settings.ridge, work)
    invert_lower(work.factor, scratch.whitener)
    radius = settings.exploration if settings.side == OF_USER else 0.0
    optimistic_scores(items, candidates, work.solution, scratch.whitener, radius, scratch.block, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else items.shape[0]
    if settings.side == OF_ITEM:
        for position in range(n_candidates):
            whitener = state.item_whiteners[candidates[position] if candidates.size > 0 else position]
            slate.scores[position] = slate.means[position] + settings.exploration * width_of_item(whitener, work.solution)
    return any_best(slate.scores, n_candidates, random)


@kernel
def refit_item(state: State, settings: Settings, scratch: Scratch, item: int) -> None:
    """Refit an item, and store its ellipsoid if it is needed."""
    refit(state.items, item, state.users.factors, settings.ridge, scratch.work)
    if settings.side == OF_ITEM:
        invert_lower(scratch.work.factor, scratch.whitener)
        position = 0
        for a in range(scratch.whitener.shape[0]):
            for b in range(a + 1):
                state.item_whiteners[item, position] = scratch.whitener[a, b]
                position += 1


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    users, items = state.users, state.items
    add_rating(users, items, user, item, reward)
    refit(users, user, items.factors, settings.ridge, scratch.work)
    refit_item(state, settings, scratch, item)
    refit(users, next_turn(users), items.factors, settings.ridge, scratch.work)
    refit_item(state, settings, scratch, next_turn(items))
