"""A skeleton to copy. Change it, then run `albatross check skeleton.py:Skeleton`."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.search.scoring import best_position


@dataclass(frozen=True)
class Skeleton(Policy):
    """Show the item this user has rated best so far, and sometimes a random item.

    Model: the score of item j for user u is the mean of u's ratings of j, or 0 without ratings;
    with probability ε a uniformly random candidate is shown instead.

    Symbols: exploration ε.

    Cost: select O(|C| + |I_u|), update O(|I_u|).

    Reference: none, this is an example.

    >>> Skeleton(exploration=0.2).exploration
    0.2
    """

    exploration: float = parameter(0.1, "probability of a random item (ε)", at_least=0, at_most=1)

    def settings(self) -> "Settings":
        return Settings(self.exploration)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        # Random starting values, if you need any: streams("a purpose of your own").normal(size=(n_items, …))
        return State(no_pairs(n_users))

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(np.zeros(n_items))


class Settings(NamedTuple):
    """The hyperparameters as numbers, for compiled code."""

    exploration: float


class State(NamedTuple):
    """Everything that is learned: arrays whose first axis is users or items, and tables of pairs. Agents save, replay and grow it."""

    pairs: Pairs


class Scratch(NamedTuple):
    """Working arrays. Never saved; their initial contents may be anything."""

    means: Vector


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    everything = candidates.size == 0  # the whole catalogue
    n_candidates = scratch.means.size if everything else candidates.size
    for position in range(n_candidates):
        scratch.means[position if everything else candidates[position]] = 0.0
    entry = state.pairs.first[user]
    while entry != NOTHING:
        scratch.means[state.pairs.items[entry]] = state.pairs.totals[entry] / state.pairs.plays[entry]
        entry = state.pairs.following[entry]
    for position in range(n_candidates):
        slate.means[position] = scratch.means[position if everything else candidates[position]]
        slate.scores[position] = slate.means[position]
    best = best_position(slate.scores, n_candidates)
    chosen = best
    if random.random() < settings.exploration:
        chosen = int(random.random() * n_candidates)
    propensity = settings.exploration / n_candidates
    return chosen, propensity + (1.0 - settings.exploration if chosen == best else 0.0)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.pairs, user, item, reward)
