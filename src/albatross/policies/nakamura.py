"""A UCB-like strategy on a matrix factorization: the bonus depends on how often the item was rated."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.counting import any_best
from albatross.kernels.fitting.regressing import Side, Work, add_rating, new_side, new_work, next_turn, refit, regress
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.search.scoring import plain_scores, scoring_block


@dataclass(frozen=True)
class Nakamura(Policy):
    """Predicts with a matrix factorization, and adds a bonus that falls with the number of ratings of the item and of the user.

    Model: a rating is ⟨A_u, B_j⟩ plus noise, fitted by ridge regressions. At step t, after n_u ratings by the user and n_j of the item,

        score_uj = ⟨A_u, B_j⟩ + c (√(log t / n_u) + √(log t / n_j))

    Symbols: rank k, ridge λ, exploration c in units of the rating. A count of zero counts as one half. Ties are broken at random.

    Cost: select O(|I_u| k² + k³ + |C| k), update O((|I| + |U|) k² + k³), I the distinct items a user has rated and U the users who have
    rated an item; memory O((n + m) k + distinct pairs).

    Departures from the paper: a surrogate, written from its abstract and not held against its text, so the formula of the bonus and the
    defaults are provisional. The abstract names two methods with a UCB-like strategy, and not their formulas. The paper selects pairs of a
    user and an item each day, each pair at most once; here users arrive at random, so the user's bonus is the same for all items and
    changes no choice. A rating refits its user and its item, and one more of each in turn.

    Reference: Nakamura, A UCB-Like Strategy of Collaborative Filtering, 2014.

    >>> from albatross import Agent
    >>> agent = Agent(Nakamura(exploration=2.0), n_users=1, n_items=1)
    >>> agent.replay([0, 0, 0], [0, 0, 0], [1.0, 1.0, 1.0])
    >>> round(agent.select(user=0).bonus, 4)  # 2 · 2 √(log 4 / 3)
    2.7191
    """

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    ridge: float = parameter(0.02, "regularization per rating (λ)", above=0)
    exploration: float = parameter(1.0, "multiplier of the bonus, in units of the rating (c)", at_least=0)

    def settings(self) -> "Settings":
        return Settings(self.ridge, self.exploration)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        scale = self.rank**-0.5
        return State(
            new_side(streams("user factors").normal(0.0, scale, (n_users, self.rank))),
            new_side(streams("item factors").normal(0.0, scale, (n_items, self.rank))),
            np.zeros(n_items, np.int64),
            np.zeros(1, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(new_work(self.rank), scoring_block(self.rank))


class Settings(NamedTuple):
    ridge: float
    exploration: float


class State(NamedTuple):
    users: Side
    items: Side
    plays: NDArray[np.int64]
    """n_j"""
    updates: NDArray[np.int64]
    """t − 1"""


class Scratch(NamedTuple):
    work: Work
    block: NDArray[np.float64]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    items = state.items.factors
    visits = regress(state.users, user, items, settings.ridge, scratch.work)
    plain_scores(items, candidates, scratch.work.solution, scratch.block, slate.means)
    logarithm = math.log(1.0 + state.updates[0])
    of_user = math.sqrt(logarithm / max(visits, 0.5))
    n_candidates = candidates.size if candidates.size > 0 else items.shape[0]
    for position in range(n_candidates):
        plays = state.plays[candidates[position] if candidates.size > 0 else position]
        bonus = settings.exploration * (of_user + math.sqrt(logarithm / max(plays, 0.5)))
        slate.scores[position] = slate.means[position] + bonus
    return any_best(slate.scores, n_candidates, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    users, items, work = state.users, state.items, scratch.work
    add_rating(users, items, user, item, reward)
    state.plays[item] += 1
    state.updates[0] += 1
    refit(users, user, items.factors, settings.ridge, work)
    refit(items, item, users.factors, settings.ridge, work)
    refit(users, next_turn(users), items.factors, settings.ridge, work)
    refit(items, next_turn(items), users.factors, settings.ridge, work)
