"""The public of one trial: arrivals, candidates, reactions, and the record.

Compiled and plain policies use the same functions, so at the same seed it is the same for both, bit for bit.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Environment, World
from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import Candidates
from albatross.core.memory import require_memory
from albatross.core.recording import Recording
from albatross.core.streams import stream
from albatross.environments.world import (
    arrivals,
    best_expected,
    draw_offer,
    expected_reward,
    offer,
    reaction,
    reaction_draws,
    retire_item,
    walk,
)
from albatross.kernels.compiling import kernel, program
from albatross.kernels.operations import Items, Slate
from albatross.metrics.ndcg import NDCG, NO_RULER, Ruler, discounted_gain

CHUNK = 8192
"""Random draws are made for so many steps at once."""

RECORDED_STEP = 64
"""Bytes per recorded step, including its curve."""


class Record(NamedTuple):
    """What is written at every step, and read again if ratings are delayed."""

    items: NDArray[np.int32]
    rewards: NDArray[np.float64]
    expected: NDArray[np.float64]
    best: NDArray[np.float64]
    ndcg: NDArray[np.float64]
    trivial: NDArray[np.bool_]


@kernel
def meet(world: World, user: int, offering: np.random.Generator) -> tuple[int, int]:
    """A user arrives. Returns start and stop of their candidates within `world.items`; equal for the whole catalogue."""
    walk(world, user, offering)
    draw_offer(world, user, offering)
    return offer(world, user)


@kernel
def answer(
    world: World, user: int, candidates: Items, position: int, slate: Slate, draw: float, ruler: Ruler, record: Record, step: int
) -> float:
    """Show the candidate at this position. Returns the reward, and records the step."""
    item = candidates[position] if candidates.size > 0 else position
    expected = expected_reward(world, user, position, item)
    reward = reaction(world, expected, draw)
    record.items[step] = item
    record.rewards[step] = reward
    record.expected[step] = expected
    record.best[step] = best_expected(world, user)
    if ruler.positions.size > 0:
        measure_ranking(world, user, candidates, slate, ruler, record, step)
    if not world.repeats:
        retire_item(world, user, position)
    return reward


@kernel
def measure_ranking(world: World, user: int, candidates: Items, slate: Slate, ruler: Ruler, record: Record, step: int) -> None:
    """NDCG of the scores that the decision used."""
    n_candidates = candidates.size if candidates.size > 0 else world.item_factors.shape[0]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        ruler.relevances[position] = expected_reward(world, user, position, item) + world.shift
    if math.isnan(world.ideal[user]):
        world.ideal[user] = discounted_gain(ruler.relevances, n_candidates, ruler)
    ideal = world.ideal[user]
    record.trivial[step] = n_candidates == 1 or ideal <= 0.0
    record.ndcg[step] = discounted_gain(slate.scores, n_candidates, ruler) / ideal if ideal > 0.0 else 1.0


class Public:
    """A new world of an environment, with everything its users will do in `horizon` steps."""

    def __init__(self, environment: Environment, horizon: int, seed: int, ndcg: NDCG | None = None) -> None:
        require_memory(RECORDED_STEP * horizon, f"a recording of {horizon:,} steps")
        self.world = environment.world(seed)
        if ndcg is not None and math.isnan(self.world.shift):
            raise InvalidInput(
                f"NDCG on {environment.name}: its mean rewards have no floor; accepted: worlds whose relevances cannot be negative"
            )
        self.users = arrivals(self.world, stream(seed, "arrivals"), horizon)
        self.offering = stream(seed, "offers")
        self._moods = stream(seed, "reactions")
        self.ruler = NO_RULER if ndcg is None else ndcg.ruler(environment.n_items)
        measured = 0 if ndcg is None else horizon
        steps = np.empty(horizon)
        self.record = Record(
            np.empty(horizon, np.int32), steps, steps.copy(), steps.copy(), np.empty(measured), np.empty(measured, np.bool_)
        )

    def draws(self, n_steps: int) -> NDArray[np.float64]:
        """The random draws of the next reactions."""
        return reaction_draws(self.world, self._moods, n_steps)


class Life(Protocol):
    """A trial in progress. The result is the same, bit for bit, however its steps are divided into calls."""

    public: Public
    done: int
    """Number of steps done: the record is filled up to here."""
    at_once: int
    """Number of steps after which progress should be reported."""

    def advance(self, n_steps: int) -> None:
        """Run so many further steps, but none beyond the horizon."""

    def recording(self) -> Recording:
        """The whole trial, once the horizon is reached."""


class Visits:
    """A public for plain Python: users arrive one by one. Call `arrive`, then `show` or `pass_by`, and repeat."""

    def __init__(self, public: Public, n_items: int) -> None:
        self.public = public
        self.n_items = n_items
        self.step = 0
        """Number of users answered."""
        self._meet, self._answer = program(meet), program(answer)
        self._slate = Slate(np.zeros(n_items), np.zeros(n_items))
        self._draws = np.empty(0)

    def arrive(self) -> tuple[int, Candidates]:
        """The next user, and the items they may be shown, as a new array."""
        public, user = self.public, int(self.public.users[self.step])
        if self.step % CHUNK == 0:
            self._draws = public.draws(min(CHUNK, public.users.size - self.step))
        start, stop = self._meet(public.world, user, public.offering)
        self._offered = public.world.items[start:stop]
        return user, self.candidates()

    def candidates(self) -> Candidates:
        """The candidates of this user, again as a new array."""
        return self._offered.astype(np.int64) if self._offered.size else np.arange(self.n_items)

    def position(self, item: int) -> int | None:
        """The position of this item among the candidates; None if it is not offered."""
        if self._offered.size == 0:
            return item if 0 <= item < self.n_items else None
        found = np.flatnonzero(self._offered == item)
        return int(found[0]) if found.size else None

    def show(self, position: int, scores: NDArray[np.float64] | None = None) -> float:
        """The reward for the candidate at this position. Scores are needed if rankings are measured."""
        if scores is not None:
            self._slate.scores[: scores.size] = scores
        public, step, draw = self.public, self.step, float(self._draws[self.step % CHUNK])
        user = int(public.users[step])
        self.step += 1
        reward = self._answer(public.world, user, self._offered, position, self._slate, draw, public.ruler, public.record, step)
        return float(reward)

    def pass_by(self) -> float:
        """Show nothing: the user leaves. Returns the mean of the best item that could have been shown."""
        best = best_expected(self.public.world, int(self.public.users[self.step]))
        self.step += 1
        return best
