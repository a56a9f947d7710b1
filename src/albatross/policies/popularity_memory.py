"""Popularity with memory: trivial, and strong on logged ratings."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Policy
from albatross.core.streams import Streams
from albatross.kernels.counting import Tally, any_best, count, deviation, find_entries, merge_tally, no_tally, report_tally, shrunk_mean
from albatross.kernels.joining import Rows
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, carry, implements, join, merge, replace, report, select, update
from albatross.kernels.pairs import NOTHING, Pairs, join_pairs, no_pairs, remember
from albatross.kernels.replacing import exchange_pair, recount

ROUNDING = 1e-12
"""By what share a mean of equal ratings may fall short of them."""


@dataclass(frozen=True)
class PopularityMemory(Policy):
    """Shows well-liked items until the user gives one the top rating, then that one again.

    Model: an item has one mean for everybody until a user has rated it; from then on it has that user's own mean. With
    S_i and N_i the sum and the number of the ratings of item i, S_ui and N_ui those by user u, g the mean of all ratings
    and d their standard deviation,

        score_ui = S_ui / N_ui                                               if the user has rated the item
        score_ui = min((S_i + g) / (N_i + 1) + d / √(1 + N_i), top)          if not

    Symbols: `top` is the top of the scale; if it is not given, the largest rating seen so far, once two have differed. Ties are broken at
    random, but an item the user gave the top goes before all others.

    Cost: select O(|I_u| + |C|), update O(|I_u|), I_u the distinct items the user has rated; memory O(n + m + distinct pairs).

    Reference: none; a baseline for logged ratings, where a second rating of a pair repeats the first.

    >>> from albatross import Agent
    >>> agent = Agent(PopularityMemory(top=5), n_users=2, n_items=3)
    >>> agent.replay([0, 1, 1], [2, 0, 1], [5.0, 3.0, 4.0])
    >>> agent.select(user=0).item
    2
    """

    division: ClassVar[Division | None] = Division(
        own=("pairs",),
        sums=("tally.plays", "tally.totals"),
        population=("tally.ratings", "tally.overall", "largest"),
        rows=("pairs",),
    )

    top: float | None = parameter(None, "top of the rating scale; none: the largest rating seen so far")

    def settings(self) -> "Settings":
        return Settings(math.inf if self.top is None else self.top)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(no_pairs(n_users), no_tally(n_items), np.full(1, -np.inf))

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(np.zeros(n_items, np.int32))


class Settings(NamedTuple):
    top: float
    """Infinite if it is not known."""


class State(NamedTuple):
    pairs: Pairs
    tally: Tally
    largest: NDArray[np.float64]
    """The largest rating seen so far."""


class Scratch(NamedTuple):
    entries: NDArray[np.int32]
    """Per item: where among the pairs the visiting user's ratings of it are."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    pairs, tally, entries = state.pairs, state.tally, scratch.entries
    find_entries(pairs, user, candidates, entries)
    spread = deviation(tally)
    top = settings.top
    if math.isinf(top) and spread > 0.0:  # one rating, or many equal ones, say nothing of the scale
        top = state.largest[0]
    best_known, favourite = -math.inf, 0
    n_candidates = candidates.size if candidates.size > 0 else entries.size
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        entry = entries[item]
        if entry == NOTHING:
            mean = shrunk_mean(tally, item)
            score = min(mean + spread / math.sqrt(1.0 + tally.plays[item]), top)
        else:
            mean = pairs.totals[entry] / pairs.plays[entry]
            score = mean
            if score > best_known:
                best_known, favourite = score, position
        slate.means[position] = mean
        slate.scores[position] = score
    if best_known >= top - ROUNDING * abs(top):
        return favourite, 1.0
    return any_best(slate.scores, n_candidates, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.pairs, user, item, reward)
    count(state.tally, item, reward)
    state.largest[0] = max(state.largest[0], reward)


@implements(report, State)
def report_added(state: State, others: State, since: State, figures: Vector) -> int:
    needed = report_tally(state.tally, since.tally, figures)
    if figures.size > needed:
        figures[needed] = state.largest[0]
    return needed + 1


@implements(merge, State)
def merge_added(state: State, figures: Vector) -> None:
    merge_tally(state.tally, figures)
    state.largest[0] = max(state.largest[0], figures[3])


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    """The largest rating seen stays the largest, even if that rating is replaced."""
    exchange_pair(state.pairs, user, item, before, after)
    recount(state.tally, item, before, after)
    state.largest[0] = max(state.largest[0], after)


@implements(join, State)
def join_users(state: State, settings: Settings, scratch: Scratch, user: int, other: int, room: Rows, random: np.random.Generator) -> None:
    join_pairs(state.pairs, user, other, room[0])


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Scratch, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    """Sums of items do not depend on who has rated them: they stay."""
