"""Late ratings: a policy that can suppose ratings chooses as if the pending ones of the user had come as predicted, as in service.

Otherwise it would show an item again and again until its first rating arrives.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.building.keeping import parts_of
from albatross.kernels.compiling import kernel
from albatross.kernels.operations import Items, Slate, or_else, select, suppose, update
from albatross.simulation.public import answer, meet


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


def live_late(mind: Any, stage: Any, numbers: NDArray[np.int32], waiting: Waiting, began: int, draws: NDArray[np.float64]) -> None:
    """Like `live`, where ratings are late, for the users who have a number here. Arrivals of other users are skipped."""
    state, settings, scratch, slate = parts_of(mind)
    world, users, record, ruler, offering, exploring, learning = parts_of(stage)
    for step in range(began, began + draws.size):
        user = users[step]
        start, stop = meet(world, user, offering)
        heard = step - world.delay
        if numbers[user] >= 0:
            candidates = world.items[start:stop]
            count = list_pending(users, record.items, max(heard, 0), step, waiting)
            items, rewards = waiting.items[:count], waiting.rewards[:count]
            position, _ = choose(state, settings, scratch, numbers[user], candidates, items, rewards, slate, exploring)
            if position < 0:  # the policy would not use such ratings now
                position, _ = select(state, settings, scratch, numbers[user], candidates, slate, exploring)
            answer(world, user, candidates, position, slate, draws[step - began], ruler, record, step)
        if heard >= 0 and numbers[users[heard]] >= 0:
            update(state, settings, scratch, numbers[users[heard]], record.items[heard], record.rewards[heard], learning)
