"""A simulated public as a Gymnasium environment."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from albatross import environments
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput, check_whole
from albatross.simulation.public import Public, Visits

Observation = dict[str, Any]


class Recommendation(gymnasium.Env[Observation, np.int64]):
    """Users arrive one by one. An action is the item to show; the reward is the user's rating.

    An observation is the `user` and an `action_mask`: 1 for each item that may be shown, else 0. `info` has the `pseudo_regret` of
    the step (the mean reward of the best item on offer minus that of the item shown) and whether the item was `offered`.
    `reset(seed=s)` gives the same public as `simulate(…, seed=s)`: the same arrivals, the same offers, the same noise. Without a
    seed, each episode has another public; `info` of `reset` has its seed. An episode is truncated after `horizon` steps.

    environment: an environment, the name of one, or a file of ratings.
    penalty: the reward for an item that is not offered. The user is shown nothing and leaves. None: such an action is an error.
    world: parameters of the environment, if it is given by name.

    >>> env = Recommendation("gaussian", horizon=100, world={"n_users": 5, "n_items": 4, "candidates": 2})
    >>> observation, info = env.reset(seed=0)
    >>> action = env.action_space.sample(mask=observation["action_mask"])
    >>> observation, reward, terminated, truncated, info = env.step(action)
    >>> int(observation["action_mask"].sum()), info["offered"], info["pseudo_regret"] >= 0
    (2, True, True)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc] # Gymnasium forgets to say that it is of the class

    def __init__(
        self,
        environment: Environment | str,
        horizon: int = 25_000,
        penalty: float | None = 0.0,
        world: dict[str, Any] | None = None,
    ) -> None:
        check_whole("horizon", horizon, 1)
        if world is not None and not isinstance(environment, str):
            raise InvalidInput(f"world is {world!r} beside an environment; accepted: parameters of an environment given by name")
        self.public = environments.create(environment, world) if isinstance(environment, str) else environment
        self.horizon = horizon
        self.penalty = penalty
        self.observation_space = Dict({"user": Discrete(self.public.n_users), "action_mask": MultiBinary(self.public.n_items)})
        self.action_space = Discrete(self.public.n_items)
        self._visits: Visits | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """A fresh public, and its first user."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        self._visits = Visits(Public(self.public, self.horizon, seed), self.public.n_items)
        return self._arrival(self._visits), {"seed": seed}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Show an item. Returns the reward, and the next user."""
        visits = self._visits
        if visits is None or visits.step == self.horizon:
            raise InvalidInput("step() before reset(), or after the end of the episode; accepted: reset() first")
        position = visits.position(int(action))
        if position is not None:
            reward = visits.show(position)
            record = visits.public.record
            pseudo_regret = float(record.best[visits.step - 1] - record.expected[visits.step - 1])
        elif self.penalty is not None:
            reward = self.penalty
            pseudo_regret = visits.pass_by() - self.penalty
        else:
            raise InvalidInput(f"action is {action}, an item that is not offered; accepted: items with a 1 in action_mask, or a penalty")
        info = {"pseudo_regret": pseudo_regret, "offered": position is not None}
        truncated = visits.step == self.horizon
        return self._parting(visits) if truncated else self._arrival(visits), reward, False, truncated, info

    def _arrival(self, visits: Visits) -> Observation:
        user, candidates = visits.arrive()
        mask = self._nothing()
        mask[candidates] = 1
        return {"user": user, "action_mask": mask}

    def _parting(self, visits: Visits) -> Observation:
        """The episode is over: no user, and nothing can be shown."""
        return {"user": int(visits.public.users[-1]), "action_mask": self._nothing()}

    def _nothing(self) -> NDArray[np.int8]:
        return np.zeros(self.public.n_items, np.int8)
