"""Particle Thompson sampling in NumPy, the yardsticks for the compiled policy: particle by particle, and all particles in one call.

Both are written straight from the algorithm: statistics of the present vectors, summed at each visit from the ratings of the user
and of the item without a loop over them, and whole copies of particles.
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
    """One particle after the other, as in published implementations.

    From the same start and the same streams it draws the same as the policy, up to rounding.
    """

    def __init__(self, policy: PTS, n_users: int, n_items: int, seed: int) -> None:
        start = Agent(policy, n_users, n_items, seed).state.particles
        self.policy = policy
        self.users = np.array(start.user_factors.transpose(1, 0, 2), order="C")
        self.items = np.array(start.item_factors.transpose(1, 0, 2), order="C")
        self.exploring, self.learning = stream(seed, "exploring"), stream(seed, "learning")
        self.plays, self.totals = np.zeros((n_users, n_items)), np.zeros((n_users, n_items))
        self.user_ridge, self.item_ridge = (
            (policy.noise / scale) ** 2 * np.eye(policy.rank) for scale in (policy.user_scale, policy.item_scale)
        )

    def select(self, user: int) -> int:
        """Follow one particle: draw the user's vector given its items, score all items, return the best one."""
        n_particles = self.policy.n_particles
        items = self.items[int(np.ceil(n_particles * (1.0 - self.exploring.random()))) - 1]
        gram, moment = self._user_statistics(items, user)
        self.scores = items @ self._draw(gram, moment, self.exploring)
        return int(self.scores.argmax())

    def update(self, user: int, item: int, reward: float) -> None:
        """Reweight, resample and move."""
        logs = np.empty(self.policy.n_particles)
        for d, items in enumerate(self.items):
            gram, moment = self._user_statistics(items, user)
            solved = np.linalg.solve(gram, items[item])
            spread = self.policy.noise**2 * (1.0 + items[item] @ solved)
            logs[d] = -0.5 * (np.log(spread) + (reward - moment @ solved) ** 2 / spread)
        self._resample(logs)
        self.plays[user, item] += 1.0
        self.totals[user, item] += reward
        for d, items in enumerate(self.items):
            self.users[d, user] = self._draw(*self._user_statistics(items, user), self.learning)
        for d, users in enumerate(self.users):
            self.items[d, item] = self._draw(*self._item_statistics(users, item), self.learning)

    def _user_statistics(self, items: Array, user: int) -> tuple[Array, Array]:
        return self._statistics(items, self.plays[user], self.totals[user], self.user_ridge)

    def _item_statistics(self, users: Array, item: int) -> tuple[Array, Array]:
        return self._statistics(users, self.plays[:, item], self.totals[:, item], self.item_ridge)

    def _statistics(self, vectors: Array, plays: Array, totals: Array, ridge: Array) -> tuple[Array, Array]:
        """Σ x xᵀ, the prior included, and Σ y x over the ratings at these regressors; of one particle or of all."""
        rated = plays.nonzero()[0]
        regressors = vectors.take(rated, axis=-2)
        return ridge + np.swapaxes(regressors * plays[rated, np.newaxis], -1, -2) @ regressors, totals[rated] @ regressors

    def _draw(self, gram: Array, moment: Array, random: np.random.Generator) -> Array:
        """A draw from the posterior of a regression; of one particle or of all."""
        upper = np.swapaxes(np.linalg.cholesky(gram), -1, -2)
        errors = np.linalg.solve(upper, random.standard_normal(moment.shape)[..., np.newaxis])
        return np.asarray((np.linalg.solve(gram, moment[..., np.newaxis]) + self.policy.noise * errors)[..., 0])

    def _resample(self, logs: Array) -> None:
        cumulative = np.exp(logs - logs.max()).cumsum()
        points = (np.arange(logs.size) + 1.0 - self.learning.random()) / logs.size
        ancestors = np.searchsorted(cumulative, points * cumulative[-1])
        self.users, self.items = self.users[ancestors], self.items[ancestors]


class BatchedNumpyPTS(NumpyPTS):
    """All particles in one call each time, in well-written NumPy."""

    def update(self, user: int, item: int, reward: float) -> None:
        gram, moment = self._user_statistics(self.items, user)
        shown = self.items[:, item]
        solved = np.linalg.solve(gram, shown[..., np.newaxis])[..., 0]
        spread = self.policy.noise**2 * (1.0 + np.einsum("dk,dk->d", shown, solved))
        surprise = reward - np.einsum("dk,dk->d", moment, solved)
        self._resample(-0.5 * (np.log(spread) + surprise**2 / spread))
        self.plays[user, item] += 1.0
        self.totals[user, item] += reward
        self.users[:, user] = self._draw(*self._user_statistics(self.items, user), self.learning)
        self.items[:, item] = self._draw(*self._item_statistics(self.users, item), self.learning)


def seconds_of_steps(yardstick: type[NumpyPTS], policy: PTS, environment: Gaussian, n_steps: int, seed: int = 0) -> float:
    """CPU seconds of so many steps, all items being candidates; world and start are made beforehand."""
    world = environment.world(seed)
    learner = yardstick(policy, environment.n_users, environment.n_items, seed)
    arrivals = stream(seed, "arrivals").integers(environment.n_users, size=n_steps).tolist()
    noise = environment.noise * stream(seed, "reactions").standard_normal(n_steps)
    began = time.process_time()
    for user, error in zip(arrivals, noise.tolist(), strict=True):
        item = learner.select(user)
        learner.update(user, item, float(world.user_factors[user] @ world.item_factors[item]) + error)
    return time.process_time() - began
