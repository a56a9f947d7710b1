"""UCB1 for each user alone."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Policy
from albatross.core.streams import Streams
from albatross.kernels.counting import any_best, find_entries
from albatross.kernels.joining import Rows
from albatross.kernels.operations import Items, Slate, carry, implements, join, replace, select, update
from albatross.kernels.pairs import NOTHING, Pairs, join_pairs, no_pairs, remember
from albatross.kernels.replacing import exchange_pair


@dataclass(frozen=True)
class UserUCB(Policy):
    """One independent UCB1 bandit per user, with one arm per item: no user learns from another.

    Model: every pair has a mean of its own. After t_u ratings of user u, N_ui of them of item i,

        score_ui = mean_ui + c √(2 log t_u / N_ui)

    and an item the user has not rated scores +∞: until a user has tried every candidate, this is random exploration.

    Symbols: scale c, in units of the reward. Ties are broken at random. The mean of an item that the user has not rated is the user's mean
    rating.

    Cost: select O(|I_u| + |C|), update O(|I_u|), I_u the distinct items the user has rated; memory O(n + distinct pairs).

    Departures: theory has rewards between 0 and 1; here c carries their range.

    Reference: Auer, Cesa-Bianchi and Fischer, Finite-time Analysis of the Multiarmed Bandit Problem, 2002; per user, it is the
    UCB-on-B of Maillard and Mannor, Latent Bandits, 2014.

    >>> from albatross import Agent
    >>> agent = Agent(UserUCB(scale=0.5), n_users=2, n_items=2)
    >>> agent.replay([0, 0, 0, 1], [0, 1, 1, 0], [1.0, 1.0, 1.0, 5.0])
    >>> round(agent.select(user=0).bonus, 4)  # 0.5 √(2 log 3)
    0.7412
    """

    division: ClassVar[Division | None] = Division(own=("pairs",), rows=("pairs",))

    scale: float = parameter(1.0, "multiplier of the confidence width, in units of the reward (c)", at_least=0)

    def settings(self) -> "Settings":
        return Settings(self.scale)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(no_pairs(n_users))

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(np.zeros(n_items, np.int32))


class Settings(NamedTuple):
    scale: float


class State(NamedTuple):
    pairs: Pairs


class Scratch(NamedTuple):
    entries: NDArray[np.int32]
    """Per item: where among the pairs the visiting user's ratings of it are."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    pairs, entries = state.pairs, scratch.entries
    visits, total = find_entries(pairs, user, candidates, entries)
    spread = 2.0 * math.log(max(visits, 1))
    n_candidates = candidates.size if candidates.size > 0 else entries.size
    for position in range(n_candidates):
        entry = entries[candidates[position] if candidates.size > 0 else position]
        if entry == NOTHING:
            slate.means[position] = total / max(visits, 1)
            slate.scores[position] = math.inf
        else:
            mean = pairs.totals[entry] / pairs.plays[entry]
            slate.means[position] = mean
            slate.scores[position] = mean + settings.scale * math.sqrt(spread / pairs.plays[entry])
    return any_best(slate.scores, n_candidates, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.pairs, user, item, reward)


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    exchange_pair(state.pairs, user, item, before, after)


@implements(join, State)
def join_users(state: State, settings: Settings, scratch: Scratch, user: int, other: int, room: Rows, random: np.random.Generator) -> None:
    join_pairs(state.pairs, user, other, room[0])


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Scratch, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    """Only pairs depend on users: there is nothing to do."""
