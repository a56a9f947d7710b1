"""UCB1 over items, the same for all users."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Nothing, Policy
from albatross.core.streams import Streams
from albatross.kernels.counting import Tally, any_best, count, item_mean, merge_tally, no_tally, report_tally
from albatross.kernels.joining import Rows
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, carry, implements, join, merge, replace, report, select, update
from albatross.kernels.replacing import recount


@dataclass(frozen=True)
class ItemUCB(Policy):
    """Shows every user the item with the best upper bound on its mean rating: UCB1 with one arm per item.

    Model: every item has one mean for everybody. After t ratings, N_i of them of item i,

        score_i = mean_i + c √(2 log t / N_i)

    and an item that nobody rated scores +∞.

    Symbols: scale c, in units of the reward. Theory uses the range of the rewards; a fifth of it usually works better. Ties are broken at
    random.

    Cost: select O(|C|), update O(1), memory O(m).

    Departures: theory has rewards between 0 and 1; here c carries their range.

    Reference: Auer, Cesa-Bianchi and Fischer, Finite-time Analysis of the Multiarmed Bandit Problem, 2002.

    >>> from albatross import Agent
    >>> agent = Agent(ItemUCB(scale=0.5), n_users=1, n_items=2)
    >>> agent.replay([0, 0, 0], [0, 1, 1], [1.0, 1.0, 1.0])
    >>> round(agent.select(user=0).bonus, 4)  # 0.5 √(2 log 3)
    0.7412
    """

    learns: ClassVar[Literal["users", "crowd", "nothing"]] = "crowd"

    division: ClassVar[Division | None] = Division(sums=("tally.plays", "tally.totals"), population=("tally.ratings", "tally.overall"))

    scale: float = parameter(1.0, "multiplier of the confidence width, in units of the reward (c)", at_least=0)

    def settings(self) -> "Settings":
        return Settings(self.scale)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(no_tally(n_items))


class Settings(NamedTuple):
    scale: float


class State(NamedTuple):
    tally: Tally


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Nothing, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    tally = state.tally
    n_candidates = candidates.size if candidates.size > 0 else tally.plays.size
    spread = 2.0 * math.log(max(tally.ratings[0], 1))
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        plays = tally.plays[item]
        mean = item_mean(tally, item)
        slate.means[position] = mean
        slate.scores[position] = mean + settings.scale * math.sqrt(spread / plays) if plays > 0 else math.inf
    return any_best(slate.scores, n_candidates, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Nothing, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    count(state.tally, item, reward)


@implements(report, State)
def report_added(state: State, others: State, since: State, figures: Vector) -> int:
    return report_tally(state.tally, since.tally, figures)


@implements(merge, State)
def merge_added(state: State, figures: Vector) -> None:
    merge_tally(state.tally, figures)


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Nothing, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    recount(state.tally, item, before, after)


@implements(join, State)
def join_users(state: State, settings: Settings, scratch: Nothing, user: int, other: int, room: Rows, random: np.random.Generator) -> None:
    """Users are not stored, so there is nothing to do."""


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Nothing, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    """Sums of items do not depend on who has rated them: they stay."""
