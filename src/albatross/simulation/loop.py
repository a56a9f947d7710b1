"""The loop of a trial: a user arrives, is shown an item and reacts, and the policy learns.

The policy's part, choosing and learning, is called by its address. So the loop is compiled once for all policies, and a policy runs the
same machine code in a trial as in an `Agent`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent, Drawing, Mind, choose, learn
from albatross.kernels.building.calling import Callee, call
from albatross.kernels.building.keeping import Kept, parts_of
from albatross.kernels.compiling import program
from albatross.kernels.operations import ALL_ITEMS, Slate
from albatross.simulation.public import Public, Record, answer, meet
from albatross.simulation.waiting import Waiting, choose_waiting, list_pending, room_for


class RatingRoom(NamedTuple):
    """Room for one rating, as `learn` takes it."""

    user: NDArray[np.int64]
    item: NDArray[np.int64]
    reward: NDArray[np.float64]


class Stage(NamedTuple):
    """What surrounds the policy in a trial. The object is the same in every call; only the contents of its arrays change."""

    world: Any
    users: NDArray[np.int32]
    """Who arrives, step by step."""
    numbers: NDArray[np.int32]
    """Per user: the number of their row; negative for a user of another shard, whose arrivals are skipped."""
    record: Record
    ruler: Any
    offering: np.random.Generator
    slate: Slate
    rating: RatingRoom
    waiting: Waiting


def live(chooser: Any, learner: Any, stage: Any, began: int, draws: NDArray[np.float64]) -> None:
    """Select, react, record, learn, once per arriving user: one step per draw, starting at step `began`."""
    world, users, numbers, record, ruler, offering, slate, rating, _ = parts_of(stage)
    for step in range(began, began + draws.size):
        user = users[step]
        start, stop = meet(world, user, offering)
        if numbers[user] >= 0:
            candidates = world.items[start:stop]
            position, _ = call(chooser, (numbers[user], candidates, slate.whole, slate.best))
            answer(world, user, candidates, position, slate, draws[step - began], ruler, record, step)
            rating.user[0], rating.item[0], rating.reward[0] = numbers[user], record.items[step], record.rewards[step]
            call(learner, (rating.user, rating.item, rating.reward))


def live_late(chooser: Any, learner: Any, stage: Any, began: int, draws: NDArray[np.float64]) -> None:
    """The same where ratings are late."""
    world, users, numbers, record, ruler, offering, slate, rating, waiting = parts_of(stage)
    for step in range(began, began + draws.size):
        user = users[step]
        start, stop = meet(world, user, offering)
        heard = step - world.delay
        if numbers[user] >= 0:
            candidates = world.items[start:stop]
            count = list_pending(users, record.items, max(heard, 0), step, waiting)
            supposed = waiting.items[:count], waiting.rewards[:count]
            position, _ = call(chooser, (numbers[user], candidates, *supposed, slate.whole, slate.best))
            answer(world, user, candidates, position, slate, draws[step - began], ruler, record, step)
        if heard >= 0 and numbers[users[heard]] >= 0:
            rating.user[0], rating.item[0], rating.reward[0] = numbers[users[heard]], record.items[heard], record.rewards[heard]
            call(learner, (rating.user, rating.item, rating.reward))


def learn_nothing(mind: Any, drawing: Any, user: NDArray[np.int64], item: NDArray[np.int64], reward: NDArray[np.float64]) -> None:
    """In place of `learn`: the loop can be compiled with it, and is then the same for `learn`."""


class Loop:
    """The steps of an agent's users among a public."""

    def __init__(
        self, agent: Agent, public: Public, numbers: NDArray[np.int32], ranked: bool, learner: Callable[..., None] = learn
    ) -> None:
        """`ranked`: whether rankings are measured, so that all candidates need a score."""
        self._agent, self._learning = agent, learner
        self._late = public.world.delay > 0
        self._slate = agent.slate._replace(whole=ranked)
        self._rating = RatingRoom(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1))
        self._waiting = room_for(public.world.delay)
        room = (self._slate, self._rating, self._waiting)
        self._stage = Kept(Stage(public.world, public.users, numbers, public.record, public.ruler, public.offering, *room))
        self._mind: Kept | None = None
        self.run(0, np.empty(0))  # no steps: this only compiles or loads the code

    def run(self, began: int, draws: NDArray[np.float64]) -> None:
        agent = self._agent
        if self._mind is None or self._mind.parts.state is not agent.state:
            self._prepare()
        program(live_late if self._late else live)(self._chooser, self._learner, self._stage, began, draws)

    def _prepare(self) -> None:
        agent = self._agent
        kind, nothing = type(agent.state), ALL_ITEMS
        mind = self._mind = Kept(Mind(agent.state, agent.settings, agent.scratch, self._slate))
        exploring, learning = Kept(Drawing(agent.exploring)), Kept(Drawing(agent.learning))
        offered: tuple[NDArray[Any], ...] = (nothing, *self._waiting) if self._late else (nothing,)
        self._chooser = Callee(choose_waiting if self._late else choose, kind, (mind, exploring), (0, *offered, True, nothing))
        self._learner = Callee(self._learning, kind, (mind, learning), self._rating)
