"""Explore, then commit: random items first, one matrix completion, then always its best item."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.fitting.regressing import Side, Work, add_rating, new_side, new_work, refit
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import plain_scores, scoring_block

SWEEPS = 50
"""Sweeps over users and items of the one fit: enough to settle."""


@dataclass(frozen=True)
class ETCCompletion(Policy):
    """Shows random items for a fixed number of steps, completes the matrix once, and then always shows its best item.

    Model: the matrix of mean ratings has rank k. Through the first T₀ ratings items are drawn uniformly; then

        minimize Σ (y − ⟨A_u, B_j⟩)² + λ (Σ n_u |A_u|² + Σ n_j |B_j|²)        j = argmax ⟨A_u, B_j⟩ from then on

    Theory has T₀ = n (T / n)^⅔ for T steps with n users, and a regret that grows with T^⅔: 8,400 of 25,000 steps with 943 users.

    Symbols: rank k, ridge λ, exploration T₀. Ratings after T₀ are ignored. A user or an item without ratings by then has a zero vector.
    Ties are broken at random; while exploring, all are zero.

    Cost: select O(|C| k), update O(|I_u| + |U_i|) while exploring and then O(1); once O(50 (p k² + (n + m) k³)), p the distinct pairs.
    Memory O((n + m) k + distinct pairs of the exploration).

    Departures from the paper: it minimizes the nuclear norm; this is the same penalty on the factors, by alternating least squares from
    normal vectors.

    Reference: Jain and Pal, Online Low Rank Matrix Completion, 2022 (the explore-then-commit algorithm).

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(ETCCompletion(rank=2, exploration=300), Gaussian(n_users=20, n_items=20, rank=2), horizon=1000, seed=0)
    >>> bool(recording.pseudo_regret[300:].mean() < 0.5 * recording.pseudo_regret[:300].mean())
    True
    """

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(0.05, "regularization per rating (λ)", above=0)
    exploration: int = parameter(8400, "ratings before the matrix is completed (T₀)", at_least=1)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.exploration)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        users, items = np.zeros((n_users, self.rank)), streams("item factors").normal(size=(n_items, self.rank))
        return State(new_side(users), new_side(items), np.zeros(1, np.int64))

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(new_work(self.rank), np.zeros(self.rank), scoring_block(self.rank))


class Settings(NamedTuple):
    ridge: float
    exploration: int


class State(NamedTuple):
    users: Side
    items: Side
    updates: NDArray[np.int64]
    """Ratings seen, up to T₀."""


class Scratch(NamedTuple):
    work: Work
    center: Vector
    block: NDArray[np.float64]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else state.items.factors.shape[0]
    committed = state.updates[0] >= settings.exploration
    for a in range(scratch.center.size):
        scratch.center[a] = state.users.factors[user, a] if committed else 0.0
    plain_scores(state.items.factors, candidates, scratch.center, scratch.block, slate.means)
    for position in range(n_candidates):
        slate.scores[position] = slate.means[position]
    return any_best(slate.scores, n_candidates, random)


@kernel
def complete(state: State, settings: Settings, work: Work) -> None:
    """Alternate between all users and all items that have ratings."""
    users, items = state.users, state.items
    for _ in range(SWEEPS):
        for place in range(users.counts[0]):
            refit(users, users.met[place], items.factors, settings.ridge, work)
        for place in range(items.counts[0]):
            refit(items, items.met[place], users.factors, settings.ridge, work)
    for item in range(items.factors.shape[0]):
        if items.ratings.first[item] < 0:
            for a in range(items.factors.shape[1]):
                items.factors[item, a] = 0.0


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    if state.updates[0] < settings.exploration:
        add_rating(state.users, state.items, user, item, reward)
        state.updates[0] += 1
        if state.updates[0] == settings.exploration:
            complete(state, settings, scratch.work)
