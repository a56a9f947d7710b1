"""Choices under supposed ratings: one, or many in one call of compiled code; and the best ranked of one choice."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.streams import Turner
from albatross.kernels.building.keeping import parts_of, write_words
from albatross.kernels.operations import ALL_ITEMS, Items, Slate, suppose
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
    whole: bool,
    positions: NDArray[np.int64],
    chosen: NDArray[np.float64],
    best: NDArray[np.int32],
    told: NDArray[np.float64],
) -> None:
    """One choice per user. Without streams the generator goes on from where it is, and nothing is left to chance."""
    state, settings, scratch, slate = parts_of(mind)
    random = parts_of(drawing).random
    apart = streams.shape[0] > 0
    end = 0
    for step in range(users.size):
        if apart:
            write_words(numbers, (streams[step, 0], streams[step, 1], streams[step, 2] | np.uint64(1), streams[step, 3]))
            write_words(spare, (np.uint64(0),))
        begin, end = end, end + lengths[step]
        positions[step] = NOT_CHOSEN
        if apart and chance_first and random.random() < floor:
            continue
        waiting = pending[begin:end]
        room = Slate(slate.scores, slate.means, whole, best[step])
        position, certainty = suppose(state, settings, scratch, users[step], candidates, waiting, expected[: waiting.size], room, random)
        if position >= 0 and (not apart or chance_first or not random.random() < floor):
            positions[step] = position
            chosen[0, step], chosen[1, step], chosen[2, step] = slate.scores[position], slate.means[position], certainty
            if told.shape[1] > 0:
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
    places = (np.array(users), candidates, waiting, np.array(lengths), expected, False)
    agent.run(choose_each, turner.random, *turner.addresses, names, floor, chance_first, *places, positions, numbers, best, told)
    scores, means, certainties = numbers.tolist()
    return Chosen(positions.tolist(), scores, means, certainties, told.tolist())


NO_STREAMS = np.frombuffer(b"", np.uint64).reshape(-1, 4)
"""Not to be written to, as other streams are: otherwise they would be of another type, and all would be compiled twice."""
NOTHING_TOLD = np.empty((1, 0, 3))


def choose_supposing(
    agent: Agent,
    random: np.random.Generator,
    user: int,
    candidates: Items,
    items: Items,
    rewards: NDArray[np.float64],
    whole: bool = True,
    best: Items = ALL_ITEMS,
) -> tuple[int, float]:
    """The policy's choice as if the user had given these ratings too (NaN: as predicted): its position and its probability.

    The position is `NOT_CHOSEN` if the policy ignores supposed ratings. Nothing is learned. Fills the agent's slate; unless `whole`,
    perhaps only the places of the choice and of the `best`. It runs the same machine code as `choose_together`.
    """
    positions, numbers = np.empty(1, np.int64), np.zeros((3, 1))
    places = (np.array([user]), candidates, items, np.array([items.size]), rewards, whole)
    agent.run(choose_each, random, 0, 0, NO_STREAMS, 0.0, True, *places, positions, numbers, best.reshape(1, -1), NOTHING_TOLD)
    return positions.item(), numbers.item(2, 0)


def tell(mind: Any, drawing: Any, candidates: Items, best: Items, told: NDArray[np.float64]) -> None:
    slate = parts_of(mind).slate
    tell_best(Slate(slate.scores, slate.means, True, best), candidates, told)


def best_of_slate(agent: Agent, random: np.random.Generator, candidates: Items, listed: Items) -> list[list[float]]:
    """Item, score and mean of the best candidates: as listed by the policy, or from the slate it has filled."""
    told = np.empty((listed.size, 3))
    agent.run(tell, random, candidates, listed, told)
    return told.tolist()
