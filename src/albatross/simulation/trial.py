"""A trial: a user arrives, is shown an item and reacts, and the policy learns. All steps run in compiled code."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent, Drawing, Mind, choose, learn
from albatross.core.environment import Environment
from albatross.core.errors import check_whole
from albatross.core.foreign.plain import Plain, Player, as_policy
from albatross.core.memory import check_sizes
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.core.state import reserve
from albatross.environments.telling import informed, told
from albatross.kernels.building.calling import Callee, call
from albatross.kernels.building.keeping import Kept, parts_of
from albatross.kernels.compiling import program
from albatross.kernels.operations import ALL_ITEMS, Slate
from albatross.metrics.ndcg import NDCG
from albatross.simulation.plain import PlainLife
from albatross.simulation.public import CHUNK, Life, Public, Stage, answer, meet
from albatross.simulation.waiting import live_late, room_for


class Rating(NamedTuple):
    """Room for one rating, as `learn` takes it."""

    user: NDArray[np.int64]
    item: NDArray[np.int64]
    reward: NDArray[np.float64]


def live(chooser: Any, learner: Any, slate: Slate, rating: Rating, stage: Any, began: int, draws: NDArray[np.float64]) -> None:
    """Select, react, record, learn, once per arriving user: one step per draw, starting at step `began`.

    The policy's part is called by address, so this is compiled once for all policies.
    """
    world, users, record, ruler, offering, _, _ = parts_of(stage)
    for step in range(began, began + draws.size):
        user = users[step]
        start, stop = meet(world, user, offering)
        candidates = world.items[start:stop]
        position, _ = call(chooser, (user, candidates, slate.whole, slate.best))
        answer(world, user, candidates, position, slate, draws[step - began], ruler, record, step)
        rating.user[0], rating.item[0], rating.reward[0] = user, record.items[step], record.rewards[step]
        call(learner, rating)


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
        self._slate = self._agent.slate._replace(whole=ndcg is not None)
        public, delay, residents = self.public, self.public.world.delay, np.arange(environment.n_users, dtype=np.int32)
        self._late = (residents, room_for(delay)) if delay else ()
        self._rating = Rating(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1))
        streams = (public.offering, self._agent.exploring, self._agent.learning)
        self._stage = Kept(Stage(public.world, public.users, public.record, public.ruler, *streams))
        self._mind: Kept | None = None
        self._draws = np.empty(0)
        self._enter(self._draws)  # no steps: this compiles or loads the code, which is not counted as the policy's time
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
            self._enter(draws)
            self._seconds += time.thread_time() - began
            self.done += draws.size

    def _enter(self, draws: NDArray[np.float64]) -> None:
        agent, mind = self._agent, self._mind
        if mind is None or mind.parts.state is not agent.state:
            mind = self._mind = Kept(Mind(agent.state, agent.settings, agent.scratch, self._slate))
            if not self._late:
                offered = (0, ALL_ITEMS, True, ALL_ITEMS)
                self._chooser = Callee(choose, type(agent.state), (mind, Kept(Drawing(agent.exploring))), offered)
                self._learner = Callee(learn, type(agent.state), (mind, Kept(Drawing(agent.learning))), self._rating)
        if self._late:
            program(live_late, type(agent.state))(mind, self._stage, *self._late, self.done, draws)
        else:
            program(live)(self._chooser, self._learner, self._slate, self._rating, self._stage, self.done, draws)

    def recording(self) -> Recording:
        state, public = self._agent.state, self.public
        counters = {name: int(getattr(state, name)[0]) for name in self._policy.counters}
        name, seed = self._environment.name, self._seed
        return Recording(self._policy, name, seed, public.users, *public.record, self._seconds, counters, self._agent.state_id)
