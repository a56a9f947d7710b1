"""What `select` and `update` take, each by itself and step by step, in compiled code.

A clock read from Python would cost more than a step does. Here the loop itself reads it before and after. Short steps are read off the
clock on the wall: some twenty nanoseconds a reading, which are measured and taken off. What other processes take is in few of the
steps, and medians or minima of many are reported. Long steps are interrupted more often than not: they are counted in the thread's
processor time, which takes ten times as long to read.
"""

import functools
import time
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.environment import Environment, World
from albatross.core.policy import Policy
from albatross.core.state import reserve
from albatross.core.streams import stream
from albatross.environments.telling import told
from albatross.environments.world import arrivals, expected_reward, offer, reaction, reaction_draws
from albatross.kernels.compiling import kernel, program
from albatross.kernels.operations import Slate, select, update

LONG = 20_000
"""From so many items on, steps are long."""

clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))

ANY_ITEM = -1
"""Stands for the item that the policy chooses."""


@kernel
def now(reading: NDArray[np.int64]) -> int:
    """Nanoseconds on the clock that `new_reading` chose."""
    clock_gettime(reading[2], reading.ctypes.data)
    return reading[0] * 1_000_000_000 + reading[1]  # type: ignore[no-any-return]


def new_reading(n_items: int) -> NDArray[np.int64]:
    """Room for what the clock says, seconds and nanoseconds, and which clock is asked."""
    return np.array([0, 0, time.CLOCK_THREAD_CPUTIME_ID if n_items >= LONG else time.CLOCK_MONOTONIC])


class Readings(NamedTuple):
    """Nanoseconds at four moments of each step, and room to read the clock."""

    arrived: NDArray[np.int64]
    selected: NDArray[np.int64]
    reacted: NDArray[np.int64]
    updated: NDArray[np.int64]
    reading: NDArray[np.int64]


def watch(
    state: Any,
    settings: Any,
    scratch: Any,
    world: World,
    slate: Slate,
    users: NDArray[np.int32],
    draws: NDArray[np.float64],
    items: NDArray[np.int32],
    rewards: NDArray[np.float64],
    readings: Readings,
    exploring: np.random.Generator,
    learning: np.random.Generator,
) -> None:
    """Live so many steps, as in a trial. `items` holds what is to be shown, or ANY_ITEM, and then what was shown."""
    for step in range(users.size):
        user = users[step]
        start, stop = offer(world, user)
        candidates = world.items[start:stop]
        readings.arrived[step] = now(readings.reading)
        position, _ = select(state, settings, scratch, user, candidates, slate, exploring)
        readings.selected[step] = now(readings.reading)
        if items[step] == ANY_ITEM:
            items[step] = candidates[position] if candidates.size > 0 else position
        elif candidates.size == 0:
            position = items[step]
        rewards[step] = reaction(world, expected_reward(world, user, position, items[step]), draws[step])
        readings.reacted[step] = now(readings.reading)
        update(state, settings, scratch, user, items[step], rewards[step], learning)
        readings.updated[step] = now(readings.reading)


class Steps(NamedTuple):
    """Seconds of each step, and what happened in it."""

    select: NDArray[np.float64]
    update: NDArray[np.float64]
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    rewards: NDArray[np.float64]


class Watched:
    """An agent in a world whose steps are watched."""

    def __init__(self, policy: Policy, environment: Environment, seed: int = 0) -> None:
        self.world = environment.world(seed)
        self.agent = Agent(policy, environment.n_users, environment.n_items, seed, told(policy, environment, seed, self.world))
        self.moods = stream(seed, "reactions")
        self.arrivals = stream(seed, "arrivals")

    def rate(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float64]:
        """Learn what these users say of these items, unwatched, in a world without logged ratings; the ratings."""
        means = np.einsum("sk,sk->s", self.world.user_factors[users], self.world.item_factors[items])
        rewards = np.asarray(means + self.world.spread * self.moods.standard_normal(users.size))
        self.agent.replay(users, items, rewards)
        return rewards

    def live(
        self, n_steps: int, users: NDArray[np.int32] | None = None, items: NDArray[np.int32] | None = None, whole: bool = True
    ) -> Steps:
        """Watch so many steps: of these users, or whoever comes; with these items, or whatever is chosen.

        Without `whole`, the policy may leave the slate unfilled but for its choice, as in `Agent.select`.
        """
        agent = self.agent
        users = arrivals(self.world, self.arrivals, n_steps) if users is None else users
        items = np.full(n_steps, ANY_ITEM, np.int32) if items is None else items.copy()
        draws, rewards = reaction_draws(self.world, self.moods, n_steps), np.zeros(n_steps)
        agent.state = reserve(agent.state, n_steps)
        reading = new_reading(agent.n_items)
        arrived, selected, reacted, updated = np.zeros((4, n_steps), np.int64)
        readings = Readings(arrived, selected, reacted, updated, reading)
        before = (agent.state, agent.settings, agent.scratch, self.world, agent.slate._replace(whole=whole))
        program(watch, type(agent.state))(*before, users, draws, items, rewards, readings, agent.exploring, agent.learning)
        selecting, updating = readings.selected - readings.arrived, readings.updated - readings.reacted
        chosen_in, learned_in = (np.maximum(1e-9 * (part - reading_cost(int(reading[2]))), 0.0) for part in (selecting, updating))
        return Steps(chosen_in, learned_in, users, items, rewards)


def idle(moments: NDArray[np.int64], reading: NDArray[np.int64]) -> None:
    """Read the clock and do nothing else."""
    for step in range(moments.size):
        moments[step] = now(reading)


@functools.cache
def reading_cost(clock: int) -> int:
    """Nanoseconds from one reading of the clock to the next, which each watched part contains."""
    moments = np.zeros(10_000, np.int64)
    program(idle)(moments, np.array([0, 0, clock]))
    return int(np.diff(moments).min())
