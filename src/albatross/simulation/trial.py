"""A trial: a user arrives, is shown an item, reacts, and the policy learns, thousands of times in compiled code."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.environment import Environment, World
from albatross.core.errors import check_whole
from albatross.core.memory import check_sizes
from albatross.core.plain import Plain, Player, as_policy
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.core.state import reserve
from albatross.environments.telling import told
from albatross.kernels.compiling import program
from albatross.kernels.operations import Slate, select, update
from albatross.metrics.ndcg import NDCG, Ruler
from albatross.simulation.plain import play
from albatross.simulation.public import CHUNK, Public, Record, answer, meet


def live(
    state: Any,
    settings: Any,
    scratch: Any,
    world: World,
    slate: Slate,
    users: NDArray[np.int32],
    began: int,
    draws: NDArray[np.float64],
    record: Record,
    ruler: Ruler,
    offering: np.random.Generator,
    exploring: np.random.Generator,
    learning: np.random.Generator,
) -> None:
    """Select, react, record, learn, once per arriving user: one step per draw, after those that were `began`."""
    for step in range(began, began + draws.size):
        user = users[step]
        start, stop = meet(world, user, offering)
        candidates = world.items[start:stop]
        position, _ = select(state, settings, scratch, user, candidates, slate, exploring)
        answer(world, user, candidates, position, slate, draws[step - began], ruler, record, step)
        heard = step - world.delay
        if heard >= 0:
            update(state, settings, scratch, users[heard], record.items[heard], record.rewards[heard], learning)


def simulate(
    policy: Policy | type[Policy] | Callable[..., Player],
    environment: Environment,
    horizon: int = 25_000,
    seed: int = 0,
    ndcg: NDCG | None = None,
    progress: Callable[[int], None] | None = None,
) -> Recording:
    """Let a policy live in a fresh world of this environment for so many steps.

    The same seed gives every policy the same world, the same arrivals and the same moods. A policy in plain Python is given by
    the class or function that makes it, or by `plain(maker, parameter=value)`.
    `ndcg` also measures how good each ranking was, where relevances have a floor.
    `progress` is called with the number of steps done since the last call.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.random import Random
    >>> simulate(Random(), Gaussian(n_users=5, n_items=5, rank=2), horizon=100, seed=1).regret.shape
    (100,)
    """
    check_whole("horizon", horizon, 1)
    check_whole("seed", seed, 0)
    recipe = as_policy(policy)
    if isinstance(recipe, Plain):
        return play(recipe, environment, horizon, seed, ndcg, progress)
    return _run(recipe, environment, horizon, seed, ndcg, progress)


def _run(
    policy: Policy, environment: Environment, horizon: int, seed: int, ndcg: NDCG | None, progress: Callable[[int], None] | None
) -> Recording:
    """The trial of a compiled policy."""
    check_sizes(policy, environment.n_users, environment.n_items, horizon)
    public = Public(environment, horizon, seed, ndcg)
    world, users = public.world, public.users
    agent = Agent(policy, environment.n_users, environment.n_items, seed, told(policy, environment, seed, world))
    slate = agent.slate._replace(whole=ndcg is not None)
    entry = program(live, type(agent.state))
    seconds = 0.0
    for start in range(0, horizon, CHUNK):
        stop = min(start + CHUNK, horizon)
        draws = public.draws(stop - start)
        agent.state = reserve(agent.state, stop - start)
        before = (agent.state, agent.settings, agent.scratch, world, slate)
        after = (public.ruler, public.offering, agent.exploring, agent.learning)
        if start == 0:  # no steps: nothing happens but that the code is compiled or loaded, which is not the policy's time
            entry(*before, users, 0, draws[:0], public.record, *after)
        began = time.thread_time()
        entry(*before, users, start, draws, public.record, *after)
        seconds += time.thread_time() - began
        if progress is not None:
            progress(stop - start)
    counters = {name: int(getattr(agent.state, name)[0]) for name in policy.counters}
    return Recording(policy, environment.name, seed, users, *public.record, seconds, counters, agent.state_id)
