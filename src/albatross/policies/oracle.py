"""Knows the true means: no policy can do better."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.policy import Need, Nothing, Policy
from albatross.core.streams import Streams
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import best_position


@dataclass(frozen=True)
class Oracle(Policy):
    """Shows the candidate with the largest true mean; its pseudo-regret is zero.

    Model: none, it is told the mean Y[u, j] of every pair. Cost: select O(|C|), update O(1), memory O(n m).

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> float(simulate(Oracle(), Gaussian(n_users=5, n_items=5, rank=2), horizon=50, seed=0).pseudo_regret.sum())
    0.0
    """

    needs: ClassVar[tuple[Need, ...]] = (Need.TRUTH,)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        means = np.zeros((n_users, n_items))
        if truth is not None:
            known = truth.means[:n_users, :n_items]
            means[: known.shape[0], : known.shape[1]] = known
        return State(means, np.zeros(1, np.int64))


class State(NamedTuple):
    means: NDArray[np.float64]
    updates: NDArray[np.int64]


@implements(select, State)
def choose_item(
    state: State, settings: Nothing, scratch: Nothing, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    means = state.means[user]
    n_candidates = candidates.size if candidates.size > 0 else means.size
    for position in range(n_candidates):
        mean = means[candidates[position] if candidates.size > 0 else position]
        slate.means[position] = mean
        slate.scores[position] = mean
    return best_position(slate.scores, n_candidates), 1.0


@implements(update, State)
def learn_rating(
    state: State, settings: Nothing, scratch: Nothing, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    state.updates[0] += 1
