"""A trial: a user arrives, is shown an item, reacts, and the policy learns, thousands of times in compiled code."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.environment import Environment, World
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.memory import check_sizes, require_memory
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.core.state import reserve
from albatross.core.streams import stream
from albatross.environments.telling import told
from albatross.environments.world import (
    arrivals,
    best_expected,
    draw_offer,
    expected_reward,
    offer,
    reaction,
    reaction_draws,
    retire_item,
)
from albatross.kernels.compiling import kernel, program
from albatross.kernels.operations import Items, Slate, select, update
from albatross.metrics.ndcg import NDCG, NO_RULER, Ruler, discounted_gain

CHUNK = 8192
"""Steps per call of compiled code: an interrupt or a progress bar waits no longer than this."""

RECORDED_STEP = 64
"""Bytes a recorded step takes, with a curve made of it."""


class Record(NamedTuple):
    """Where the loop writes; arrays of one chunk."""

    items: NDArray[np.int32]
    rewards: NDArray[np.float64]
    expected: NDArray[np.float64]
    best: NDArray[np.float64]
    ndcg: NDArray[np.float64]
    trivial: NDArray[np.bool_]

    def part(self, start: int, stop: int) -> "Record":
        items, rewards, expected, best, ndcg, trivial = self
        steps = slice(start, stop)
        return Record(items[steps], rewards[steps], expected[steps], best[steps], ndcg[steps], trivial[steps])


@kernel
def measure_ranking(world: World, user: int, candidates: Items, slate: Slate, ruler: Ruler, record: Record, step: int) -> None:
    """NDCG of the scores the decision was made by."""
    n_candidates = candidates.size if candidates.size > 0 else world.item_factors.shape[0]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        ruler.relevances[position] = expected_reward(world, user, position, item) + world.shift
    if math.isnan(world.ideal[user]):
        world.ideal[user] = discounted_gain(ruler.relevances, n_candidates, ruler)
    ideal = world.ideal[user]
    record.trivial[step] = n_candidates == 1 or ideal <= 0.0
    record.ndcg[step] = discounted_gain(slate.scores, n_candidates, ruler) / ideal if ideal > 0.0 else 1.0


def live(
    state: Any,
    settings: Any,
    scratch: Any,
    world: World,
    slate: Slate,
    users: NDArray[np.int32],
    draws: NDArray[np.float64],
    record: Record,
    ruler: Ruler,
    offering: np.random.Generator,
    exploring: np.random.Generator,
    learning: np.random.Generator,
) -> None:
    """Select, react, record, learn, once per arriving user."""
    for step in range(users.size):
        user = users[step]
        draw_offer(world, user, offering)
        start, stop = offer(world, user)
        candidates = world.items[start:stop]
        position, _ = select(state, settings, scratch, user, candidates, slate, exploring)
        item = candidates[position] if candidates.size > 0 else position
        expected = expected_reward(world, user, position, item)
        reward = reaction(world, expected, draws[step])
        record.items[step] = item
        record.rewards[step] = reward
        record.expected[step] = expected
        record.best[step] = best_expected(world, user)
        if ruler.positions.size > 0:
            measure_ranking(world, user, candidates, slate, ruler, record, step)
        if not world.repeats:
            retire_item(world, user, position)
        update(state, settings, scratch, user, item, reward, learning)


def simulate(
    policy: Policy,
    environment: Environment,
    horizon: int = 25_000,
    seed: int = 0,
    ndcg: NDCG | None = None,
    progress: Callable[[int], None] | None = None,
) -> Recording:
    """Let a policy live in a fresh world of this environment for so many steps.

    The same seed gives every policy the same world, the same arrivals and the same moods.
    `ndcg` also measures how good each ranking was, where relevances have a floor.
    `progress` is called with the number of steps done since the last call.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.random import Random
    >>> simulate(Random(), Gaussian(n_users=5, n_items=5, rank=2), horizon=100, seed=1).regret.shape
    (100,)
    """
    check_whole("horizon", horizon, 1)
    check_whole("seed", seed, 0)
    check_sizes(policy, environment.n_users, environment.n_items, horizon)
    require_memory(RECORDED_STEP * horizon, f"a recording of {horizon:,} steps")
    world = environment.world(seed)
    if ndcg is not None and math.isnan(world.shift):
        raise InvalidInput(
            f"NDCG on {environment.name}: its mean rewards have no floor; accepted: worlds whose relevances cannot be negative"
        )
    agent = Agent(policy, environment.n_users, environment.n_items, seed, told(policy, environment, seed, world))
    users = arrivals(world, stream(seed, "arrivals"), horizon)
    moods, offering = stream(seed, "reactions"), stream(seed, "offers")
    slate = agent.slate._replace(whole=ndcg is not None)
    ruler = NO_RULER if ndcg is None else ndcg.ruler(environment.n_items)
    measured = 0 if ndcg is None else horizon
    steps, rankings = np.empty(horizon), np.empty(measured)
    whole = Record(np.empty(horizon, np.int32), steps, steps.copy(), steps.copy(), rankings, np.empty(measured, np.bool_))
    entry = program(live, type(agent.state))
    seconds = 0.0
    for start in range(0, horizon, CHUNK):
        stop = min(start + CHUNK, horizon)
        draws = reaction_draws(world, moods, stop - start)
        agent.state = reserve(agent.state, stop - start)
        before = (agent.state, agent.settings, agent.scratch, world, slate)
        after = (ruler, offering, agent.exploring, agent.learning)
        if start == 0:  # no steps: nothing happens but that the code is compiled or loaded, which is not the policy's time
            entry(*before, users[:0], draws[:0], whole.part(0, 0), *after)
        began = time.thread_time()
        entry(*before, users[start:stop], draws, whole.part(start, stop), *after)
        seconds += time.thread_time() - began
        if progress is not None:
            progress(stop - start)
    counters = {name: int(getattr(agent.state, name)[0]) for name in policy.counters}
    return Recording(policy, environment.name, seed, users, *whole, seconds, counters, agent.state_id)
