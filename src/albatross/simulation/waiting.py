"""Late ratings: a policy that can suppose ratings chooses as if the pending ones of the user had come as predicted, as in service.

Otherwise it would show an item again and again until its first rating arrives.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.building.keeping import parts_of
from albatross.kernels.compiling import kernel
from albatross.kernels.operations import Items, Slate, or_else, select, suppose


class Waiting(NamedTuple):
    """Room for the pending items of a user, and their supposed ratings: all NaN, which means as predicted."""

    items: Items
    rewards: NDArray[np.float64]


def room_for(delay: int) -> Waiting:
    return Waiting(np.zeros(delay, np.int32), np.full(delay, math.nan))


@kernel
def await_nothing(
    state: Any,
    settings: Any,
    scratch: Any,
    user: int,
    candidates: Items,
    items: Items,
    rewards: NDArray[np.float64],
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    """For a policy that cannot suppose ratings."""
    return select(state, settings, scratch, user, candidates, slate, random)


choose = or_else(suppose, await_nothing)


@kernel
def list_pending(users: NDArray[np.int32], items: Items, began: int, step: int, waiting: Waiting) -> int:
    """List the items shown to the user of this step since step `began`, each once; returns how many."""
    count = 0
    for before in range(began, step):
        if users[before] == users[step]:
            listed = False
            for place in range(count):
                listed = listed or waiting.items[place] == items[before]
            if not listed:
                waiting.items[count] = items[before]
                count += 1
    return count


def choose_waiting(
    mind: Any, drawing: Any, user: int, candidates: Items, items: Items, rewards: NDArray[np.float64], whole: bool, best: Items
) -> tuple[int, float]:
    """Choose as if these ratings had come, or without them if the policy would not use them now."""
    state, settings, scratch, slate = parts_of(mind)
    random, room = parts_of(drawing).random, Slate(slate.scores, slate.means, whole, best)
    position, propensity = choose(state, settings, scratch, user, candidates, items, rewards, room, random)
    if position < 0:
        position, propensity = select(state, settings, scratch, user, candidates, room, random)
    return position, propensity
