"""The item with the best mean rating so far: greedy popularity."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Nothing, Policy
from albatross.core.streams import Streams
from albatross.kernels.counting import Tally, any_best, count, item_mean, merge_tally, no_tally, report_tally, shrunk_mean
from albatross.kernels.joining import Rows
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, carry, implements, join, merge, replace, report, select, update
from albatross.kernels.replacing import recount


@dataclass(frozen=True)
class ItemMean(Policy):
    """Shows every user the item with the best mean rating so far, once each item has been tried.

    Model: every item has one mean for everybody, estimated by S_i / N_i, the sum and the number of its ratings; an item that nobody rated
    scores +∞. Shrunk, the estimate is (S_i + g) / (N_i + 1) with g the mean of all ratings: then not every item is tried. In a large
    catalogue this avoids most bad items, but it can lock in the first item that is above the mean.

    Symbols: `shrunk` chooses between the two. Ties are broken at random.

    Cost: select O(|C|), update O(1), memory O(m).

    Reference: none; the baseline for every policy that claims to personalize.

    >>> from albatross import Agent
    >>> agent = Agent(ItemMean(), n_users=1, n_items=3)
    >>> agent.replay([0, 0, 0, 0], [0, 1, 2, 1], [2.0, 4.0, 3.0, 3.0])
    >>> agent.select(user=0).mean
    3.5
    """

    learns: ClassVar[Literal["users", "crowd", "nothing"]] = "crowd"

    division: ClassVar[Division | None] = Division(sums=("tally.plays", "tally.totals"), population=("tally.ratings", "tally.overall"))

    shrunk: bool = parameter(False, "shrink each item's mean towards the mean of all ratings, as by one more rating")

    def settings(self) -> "Settings":
        return Settings(self.shrunk)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(no_tally(n_items))


class Settings(NamedTuple):
    shrunk: bool


class State(NamedTuple):
    tally: Tally


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Nothing, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    tally = state.tally
    n_candidates = candidates.size if candidates.size > 0 else tally.plays.size
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        mean = shrunk_mean(tally, item) if settings.shrunk else item_mean(tally, item)
        slate.means[position] = mean
        slate.scores[position] = mean if settings.shrunk or tally.plays[item] > 0 else math.inf
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
