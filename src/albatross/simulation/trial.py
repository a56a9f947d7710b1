"""A trial: a user arrives, is shown an item, reacts, and the policy learns, thousands of times in compiled code."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.environment import Environment, World
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.core.state import reserve
from albatross.core.streams import stream
from albatross.environments.world import best_expected, expected_reward, offered, reaction, reaction_draws, truth_of
from albatross.kernels.compiling import program
from albatross.kernels.operations import Slate, select, update

CHUNK = 8192
"""Steps per call of compiled code: an interrupt or a progress bar waits no longer than this."""


class Record(NamedTuple):
    """Where the loop writes; arrays of one chunk."""

    items: NDArray[np.int32]
    rewards: NDArray[np.float64]
    expected: NDArray[np.float64]
    best: NDArray[np.float64]

    def part(self, start: int, stop: int) -> "Record":
        return Record(self.items[start:stop], self.rewards[start:stop], self.expected[start:stop], self.best[start:stop])


def live(
    state: Any,
    settings: Any,
    scratch: Any,
    world: World,
    slate: Slate,
    users: NDArray[np.int32],
    draws: NDArray[np.float64],
    record: Record,
    exploring: np.random.Generator,
    learning: np.random.Generator,
) -> None:
    """Select, react, record, learn, once per arriving user."""
    for step in range(users.size):
        user = users[step]
        candidates = offered(world, user)
        position, _ = select(state, settings, scratch, user, candidates, slate, exploring)
        item = candidates[position] if candidates.size > 0 else position
        expected = expected_reward(world, user, position, item)
        reward = reaction(world, expected, draws[step])
        record.items[step] = item
        record.rewards[step] = reward
        record.expected[step] = expected
        record.best[step] = best_expected(world, user)
        update(state, settings, scratch, user, item, reward, learning)


def simulate(
    policy: Policy,
    environment: Environment,
    horizon: int = 25_000,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Recording:
    """Let a policy live in a fresh world of this environment for so many steps.

    The same seed gives every policy the same world, the same arrivals and the same moods.
    `progress` is called with the number of steps done since the last call.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.random import Random
    >>> simulate(Random(), Gaussian(n_users=5, n_items=5, rank=2), horizon=100, seed=1).regret.shape
    (100,)
    """
    if horizon < 1:
        raise InvalidInput(f"horizon is {horizon}; accepted: a whole number, at least 1")
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; accepted: a whole number, at least 0")
    world = environment.world(seed)
    agent = Agent(policy, environment.n_users, environment.n_items, seed, truth_of(world) if policy.privileged else None)
    arrivals, moods = stream(seed, "arrivals"), stream(seed, "reactions")
    users = np.empty(horizon, np.int32)
    whole = Record(np.empty(horizon, np.int32), np.empty(horizon), np.empty(horizon), np.empty(horizon))
    entry = program(live, type(agent.state))
    seconds = 0.0
    for start in range(0, horizon, CHUNK):
        stop = min(start + CHUNK, horizon)
        users[start:stop] = arrivals.integers(environment.n_users, size=stop - start, dtype=np.int32)
        draws = reaction_draws(world, moods, stop - start)
        agent.state = reserve(agent.state, stop - start)
        fixed = (agent.state, agent.settings, agent.scratch, world, agent.slate)
        streams = (agent.exploring, agent.learning)
        if start == 0:  # no steps: nothing happens but that the code is compiled or loaded, which is not the policy's time
            entry(*fixed, users[:0], draws[:0], whole.part(0, 0), *streams)
        began = time.perf_counter()
        entry(*fixed, users[start:stop], draws, whole.part(start, stop), *streams)
        seconds += time.perf_counter() - began
        if progress is not None:
            progress(stop - start)
    return Recording(policy, environment.name, seed, users, *whole, seconds, agent.state_id)
