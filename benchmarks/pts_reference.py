"""Particle Thompson sampling in NumPy, written straight from the algorithm: the yardstick for the compiled policy.

All particles stand in one array and are treated by one call where NumPy has one. The statistics are those of the present vectors,
summed anew at each visit from the ratings of the user and of the item.
"""

import time

import numpy as np
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian
from albatross.policies.pts import PTS

Array = NDArray[np.float64]


class NumpyPTS:
    """The same algorithm from the same start: agrees with the policy in law, and in its draws up to rounding."""

    def __init__(self, policy: PTS, users: Array, items: Array, exploring: np.random.Generator, learning: np.random.Generator) -> None:
        """`users` and `items` are the initial vectors by particle, number and coordinate."""
        self.policy = policy
        self.users, self.items = users.copy(), items.copy()
        self.exploring, self.learning = exploring, learning
        self.plays = np.zeros((users.shape[1], items.shape[1]))
        self.totals = np.zeros_like(self.plays)
        self.unit = np.eye(policy.rank)

    def select(self, user: int) -> int:
        """Follow one particle: draw the user's vector given its items, score all of them, return the best one."""
        items = self.items[int(self.policy.n_particles * self.exploring.random())]
        rated = self.plays[user].nonzero()[0]
        gram, moment = self._statistics(items[np.newaxis], rated, self.plays[user], self.totals[user], self.policy.user_scale)
        drawn = self._draw(gram, moment, self.exploring)[0]
        return int((items @ drawn).argmax())

    def update(self, user: int, item: int, reward: float) -> None:
        """Reweight, resample and move."""
        rated = self.plays[user].nonzero()[0]
        gram, moment = self._statistics(self.items, rated, self.plays[user], self.totals[user], self.policy.user_scale)
        shown = self.items[:, item]
        solved = np.linalg.solve(gram, np.stack([moment, shown], axis=2))
        mean, spread = np.einsum("dk,dkc->cd", shown, solved)
        spread = self.policy.noise**2 * (1.0 + spread)
        logs = -0.5 * (np.log(spread) + (reward - mean) ** 2 / spread)
        weights = np.exp(logs - logs.max())
        points = (np.arange(weights.size) + 1.0 - self.learning.random()) / weights.size
        cumulative = weights.cumsum()
        ancestors = np.searchsorted(cumulative, points * cumulative[-1])
        self.users, self.items = self.users[ancestors], self.items[ancestors]
        self.plays[user, item] += 1.0
        self.totals[user, item] += reward
        rated = self.plays[user].nonzero()[0]
        gram, moment = self._statistics(self.items, rated, self.plays[user], self.totals[user], self.policy.user_scale)
        self.users[:, user] = self._draw(gram, moment, self.learning)
        raters = self.plays[:, item].nonzero()[0]
        gram, moment = self._statistics(self.users, raters, self.plays[:, item], self.totals[:, item], self.policy.item_scale)
        self.items[:, item] = self._draw(gram, moment, self.learning)

    def _statistics(self, vectors: Array, chosen: NDArray[np.int64], plays: Array, totals: Array, scale: float) -> tuple[Array, Array]:
        """Per particle Σ x xᵀ and Σ y x over the ratings at these regressors, the prior included."""
        regressors = vectors[:, chosen]
        gram = (regressors * plays[chosen, np.newaxis]).transpose(0, 2, 1) @ regressors
        return gram + (self.policy.noise / scale) ** 2 * self.unit, totals[chosen] @ regressors

    def _draw(self, gram: Array, moment: Array, random: np.random.Generator) -> Array:
        """Per particle one draw from the posterior of its regression."""
        upper = np.linalg.cholesky(gram).transpose(0, 2, 1)
        errors = np.linalg.solve(upper, random.standard_normal((*moment.shape, 1)))
        return np.asarray((np.linalg.solve(gram, moment[:, :, np.newaxis]) + self.policy.noise * errors)[:, :, 0])


def seconds_of_steps(policy: PTS, environment: Gaussian, n_steps: int, seed: int = 0) -> float:
    """CPU seconds of so many steps, all items being candidates; world and start are made beforehand."""
    world = environment.world(seed)
    start = Agent(policy, environment.n_users, environment.n_items, seed).state.particles
    users, items = (np.ascontiguousarray(factors.transpose(1, 0, 2)) for factors in (start.user_factors, start.item_factors))
    learner = NumpyPTS(policy, users, items, stream(seed, "exploring"), stream(seed, "learning"))
    arrivals = stream(seed, "arrivals").integers(environment.n_users, size=n_steps).tolist()
    noise = environment.noise * stream(seed, "reactions").standard_normal(n_steps)
    began = time.process_time()
    for user, error in zip(arrivals, noise.tolist(), strict=True):
        item = learner.select(user)
        learner.update(user, item, float(world.user_factors[user] @ world.item_factors[item]) + error)
    return time.process_time() - began
