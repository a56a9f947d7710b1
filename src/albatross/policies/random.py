"""Shows a random item: the baseline for a policy that learns nothing."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.policy import Division, Nothing, Policy
from albatross.core.streams import Streams
from albatross.kernels.operations import Items, Slate, implements, select, update


@dataclass(frozen=True)
class Random(Policy):
    """Every candidate is equally likely, whatever was rated before.

    Model: none. Cost: select O(|C|), update O(1).

    >>> from albatross import Agent
    >>> Agent(Random(), n_users=1, n_items=4).select(user=0).propensity
    0.25
    """

    learns: ClassVar[Literal["users", "crowd", "nothing"]] = "nothing"
    division: ClassVar[Division | None] = Division(own=("updates",))

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(np.zeros(1, np.int64))


class State(NamedTuple):
    updates: NDArray[np.int64]


@implements(select, State)
def choose_item(
    state: State, settings: Nothing, scratch: Nothing, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else slate.scores.size
    best = 0
    for position in range(n_candidates):
        slate.means[position] = 0.0
        slate.scores[position] = random.random()
        if slate.scores[position] > slate.scores[best]:
            best = position
    return best, 1.0 / n_candidates


@implements(update, State)
def learn_rating(
    state: State, settings: Nothing, scratch: Nothing, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    state.updates[0] += 1
