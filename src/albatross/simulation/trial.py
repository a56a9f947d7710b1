"""A trial: a user arrives, is shown an item and reacts, and the policy learns. All steps run in compiled code."""

import time
from collections.abc import Callable

import numpy as np

from albatross.core.agent import Agent
from albatross.core.environment import Environment
from albatross.core.errors import check_whole
from albatross.core.foreign.plain import Plain, Player, as_policy
from albatross.core.memory import check_sizes
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.core.state import reserve
from albatross.environments.telling import informed, told
from albatross.metrics.ndcg import NDCG
from albatross.simulation.loop import Loop
from albatross.simulation.plain import PlainLife
from albatross.simulation.public import CHUNK, Life, Public


def simulate(
    policy: Policy | type[Policy] | Callable[..., Player],
    environment: Environment,
    horizon: int = 25_000,
    seed: int = 0,
    ndcg: NDCG | None = None,
    progress: Callable[[int], None] | None = None,
) -> Recording:
    """Run a policy in a fresh world of this environment for `horizon` steps.

    The same seed gives every policy the same world, the same arrivals and the same noise. Where no pair comes back, a policy that wants to
    know is told so; the recording has the recipe that ran. A policy in plain Python is given by
    the class or function that makes it, or by `plain(maker, parameter=value)`.
    `ndcg` also measures each ranking, if relevances have a lower bound.
    `progress` is called with the number of steps done since the last call.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.random import Random
    >>> simulate(Random(), Gaussian(n_users=5, n_items=5, rank=2), horizon=100, seed=1).regret.shape
    (100,)
    """
    life = begin(policy, environment, horizon, seed, ndcg)
    while life.done < horizon:
        before = life.done
        life.advance(life.at_once)
        if progress is not None:
            progress(life.done - before)
    return life.recording()


def begin(
    policy: Policy | type[Policy] | Callable[..., Player], environment: Environment, horizon: int, seed: int = 0, ndcg: NDCG | None = None
) -> Life:
    """A trial before its first step, to be run in slices."""
    check_whole("horizon", horizon, 1)
    check_whole("seed", seed, 0)
    recipe = informed(as_policy(policy), environment)
    if isinstance(recipe, Plain):
        return PlainLife(recipe, environment, horizon, seed, ndcg)
    return CompiledLife(recipe, environment, horizon, seed, ndcg)


class CompiledLife:
    """The trial of a compiled policy, in progress."""

    at_once = CHUNK

    def __init__(self, policy: Policy, environment: Environment, horizon: int, seed: int, ndcg: NDCG | None) -> None:
        check_sizes(policy, environment.n_users, environment.n_items, horizon)
        self.public = Public(environment, horizon, seed, ndcg)
        self.done = 0
        self._policy, self._environment, self._horizon, self._seed = policy, environment, horizon, seed
        truth = told(policy, environment, seed, self.public.world)
        self._agent = Agent(policy, environment.n_users, environment.n_items, seed, truth)
        residents = np.arange(environment.n_users, dtype=np.int32)
        self._loop = Loop(self._agent, self.public, residents, ndcg is not None)
        self._draws = np.empty(0)
        self._seconds = 0.0

    def advance(self, n_steps: int) -> None:
        stop = min(self.done + n_steps, self._horizon)
        while self.done < stop:
            first = self.done % CHUNK
            if first == 0:
                size = min(CHUNK, self._horizon - self.done)
                self._draws = self.public.draws(size)
                self._agent.state = reserve(self._agent.state, size)
            draws = self._draws[first : first + stop - self.done]
            began = time.thread_time()
            self._loop.run(self.done, draws)
            self._seconds += time.thread_time() - began
            self.done += draws.size

    def recording(self) -> Recording:
        state, public = self._agent.state, self.public
        counters = {name: int(getattr(state, name)[0]) for name in self._policy.counters}
        name, seed = self._environment.name, self._seed
        return Recording(self._policy, name, seed, public.users, *public.record, self._seconds, counters, self._agent.state_id)
