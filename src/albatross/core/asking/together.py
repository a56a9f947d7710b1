"""Many choices in one call of compiled code, each with its own random stream; and the best ranked of one choice."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.streams import Turner
from albatross.kernels.building.keeping import parts_of, write_words
from albatross.kernels.operations import Items, Slate, suppose
from albatross.kernels.search.listing import tell_best

NOT_CHOSEN = -1


class Chosen(NamedTuple):
    """Per choice. If it is to be random, or the policy ignores pending ratings, the position is `NOT_CHOSEN` and the rest is zero."""

    positions: list[int]
    scores: list[float]
    means: list[float]
    certainties: list[float]
    best: list[list[list[float]]]
    """The best candidates, as many as requested: item, score and mean."""


def choose_each(
    mind: Any,
    drawing: Any,
    numbers: int,
    spare: int,
    streams: NDArray[np.uint64],
    floor: float,
    chance_first: bool,
    users: NDArray[np.int64],
    candidates: Items,
    pending: Items,
    lengths: NDArray[np.int64],
    expected: NDArray[np.float64],
    positions: NDArray[np.int64],
    chosen: NDArray[np.float64],
    best: NDArray[np.int32],
    told: NDArray[np.float64],
) -> None:
    state, settings, scratch, slate = parts_of(mind)
    random = parts_of(drawing).random
    end = 0
    for step in range(users.size):
        write_words(numbers, (streams[step, 0], streams[step, 1], streams[step, 2] | np.uint64(1), streams[step, 3]))
        write_words(spare, (np.uint64(0),))
        begin, end = end, end + lengths[step]
        positions[step] = NOT_CHOSEN
        if chance_first and random.random() < floor:
            continue
        waiting = pending[begin:end]
        room = Slate(slate.scores, slate.means, False, best[step])
        position, certainty = suppose(state, settings, scratch, users[step], candidates, waiting, expected[: waiting.size], room, random)
        if position >= 0 and (chance_first or not random.random() < floor):
            positions[step] = position
            chosen[0, step], chosen[1, step], chosen[2, step] = slate.scores[position], slate.means[position], certainty
            tell_best(room, candidates, told[step])


def choose_together(
    agent: Agent,
    turner: Turner,
    streams: Sequence[bytes],
    floor: float,
    chance_first: bool,
    users: Sequence[int],
    candidates: Items,
    pending: Sequence[Sequence[int]],
    n_best: int = 0,
) -> Chosen:
    """One item for each user among the same candidates, as if the pending ratings had come exactly as predicted.

    Each is chosen with the stream of its name. With probability `floor`, by a number drawn before or after the policy's choice, the choice
    is to be random: then nothing is chosen here.
    """
    assert turner.addresses is not None
    names = np.frombuffer(b"".join(streams), np.uint64).reshape(-1, 4)
    lengths = [len(items) for items in pending]
    waiting = np.fromiter(chain.from_iterable(pending), np.int32, sum(lengths))
    expected = np.full(max(lengths), math.nan)
    positions, numbers = np.empty(len(users), np.int64), np.zeros((3, len(users)))
    best, told = np.full((len(users), n_best), -1, np.int32), np.zeros((len(users), n_best, 3))
    places = (np.array(users), candidates, waiting, np.array(lengths), expected)
    agent.run(choose_each, turner.random, *turner.addresses, names, floor, chance_first, *places, positions, numbers, best, told)
    scores, means, certainties = numbers.tolist()
    return Chosen(positions.tolist(), scores, means, certainties, told.tolist())


def tell(mind: Any, drawing: Any, candidates: Items, best: Items, told: NDArray[np.float64]) -> None:
    slate = parts_of(mind).slate
    tell_best(Slate(slate.scores, slate.means, True, best), candidates, told)


def best_of_slate(agent: Agent, random: np.random.Generator, candidates: Items, listed: Items) -> list[list[float]]:
    """Item, score and mean of the best candidates: as listed by the policy, or from the slate it has filled."""
    told = np.empty((listed.size, 3))
    agent.run(tell, random, candidates, listed, told)
    return told.tolist()
