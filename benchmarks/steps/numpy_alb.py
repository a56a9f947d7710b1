"""ALB in well-written NumPy: the yardstick for the compiled policy.

It keeps the same statistics (the sums of each item, terms exchanged when a user moves; a user's own sums built at the visit)
and never loops over items or over a user's pairs. Data that are used together are stored together, so that one call is enough.
"""

import math

import numpy as np
from numpy.typing import NDArray

from albatross.policies.alb import ALB

Array = NDArray[np.float64]

REBUILD_INTERVAL = 4096
"""Minimum number of updates between two rebuilds of the item sums, as in the policy."""


class NumpyALB:
    """The same algorithm from the same start in other arithmetic: it agrees with the policy up to rounding."""

    def __init__(self, policy: ALB, user_factors: Array, item_factors: Array) -> None:
        self.settings = policy.settings()
        (n_users, rank), n_items = user_factors.shape, len(item_factors)
        self.rank, self.square = rank, rank * rank
        self.user_factors = user_factors.copy()
        # The item vectors twice: by row for the few items of a user, by coordinate for the scan over all items.
        self.item_factors = np.array(item_factors, order="C")
        self.coordinates = np.array(item_factors.T, order="C")
        # Per item λ₂I + Σ A_u A_uᵀ, flattened, and beside it Σ y A_u: one exchange serves both.
        self.no_ratings = np.concatenate([self.settings.item_ridge * np.eye(rank).ravel(), np.zeros(rank)])
        self.sums = np.tile(self.no_ratings, (n_items, 1))
        # Per user the distinct items, and for each how often it was rated and the sum of its ratings.
        self.items = [np.empty(0, np.int64)] * n_users
        self.weights = [np.empty((0, 2))] * n_users
        self.positions: list[dict[int, int]] = [{} for _ in range(n_users)]
        self.n_pairs = self.n_updates = self.n_updates_at_rebuild = 0
        self.exchange = np.zeros((2, self.square + rank))
        self.rows = np.empty((rank + 1, rank))
        self.projections = np.empty((rank + 1, n_items))
        self.widths, self.scores = np.empty(n_items), np.empty(n_items)

    def recall(self, users: NDArray[np.int64], items: NDArray[np.int64], rewards: Array) -> None:
        """Begin with these ratings and the current vectors."""
        for user, item, reward in zip(users.tolist(), items.tolist(), rewards.tolist(), strict=True):
            self._remember(user, item, reward)
        self._rebuild()

    def select(self, user: int) -> int:
        """Score all items and return the best one."""
        settings, rank = self.settings, self.rank
        weights = self.weights[user]
        rated = self.item_factors.take(self.items[user], axis=0)
        gram = (rated.T * weights[:, 0]) @ rated
        gram.ravel()[:: rank + 1] += settings.user_ridge
        whitener = np.linalg.inv(np.linalg.cholesky(gram))
        growth = -2.0 * math.log(whitener.diagonal().prod()) - rank * math.log(settings.user_ridge)
        width = math.sqrt(max(growth, 0.0) - 2.0 * math.log(settings.confidence))
        self.radius = settings.noise * width + math.sqrt(settings.user_ridge) * settings.norm_bound
        self.rows[:rank] = whitener
        self.rows[rank] = (whitener @ (weights[:, 1] @ rated)) @ whitener
        np.matmul(self.rows, self.coordinates, out=self.projections)
        white = self.projections[:rank]
        np.sqrt(np.einsum("ai,ai->i", white, white), out=self.widths)
        np.multiply(self.widths, self.radius, out=self.scores)
        self.scores += self.projections[rank]
        return int(self.scores.argmax())

    def update(self, user: int, item: int, reward: float) -> None:
        """Learn from one rating by the user for whom `select` was called last."""
        rank, square = self.rank, self.square
        whitener, center, width = self.rows[:rank], self.rows[rank], self.widths[item]
        stretch = self.radius / width if width > 0.0 else 0.0
        vector = center + stretch * (self.projections[:rank, item] @ whitener)
        outer = (vector[:, np.newaxis] * vector).ravel()
        before = self.user_factors[user]
        self._exchange(user, outer - (before[:, np.newaxis] * before).ravel(), vector - before)
        self.user_factors[user] = vector
        self._remember(user, item, reward)
        sums = self.sums[item]
        sums[:square] += outer
        sums[square:] += reward * vector
        self.n_updates += 1
        if self.n_updates - self.n_updates_at_rebuild >= max(REBUILD_INTERVAL, self.n_pairs + len(self.user_factors) + len(self.sums)):
            self._rebuild()
        fitted = np.linalg.solve(sums[:square].reshape(rank, rank), sums[square:])
        self.item_factors[item] = fitted
        self.coordinates[:, item] = fitted

    def _exchange(self, user: int, outer: Array, vector: Array) -> None:
        """Add a change of the user's terms to the sums of all items the user has rated."""
        self.exchange[0, : self.square] = outer
        self.exchange[1, self.square :] = vector
        self.sums[self.items[user]] += self.weights[user] @ self.exchange

    def _remember(self, user: int, item: int, reward: float) -> None:
        positions = self.positions[user]
        position = positions.get(item)
        if position is None:
            positions[item] = position = len(positions)
            self.items[user] = np.append(self.items[user], item)
            self.weights[user] = np.append(self.weights[user], np.zeros((1, 2)), axis=0)
            self.n_pairs += 1
        weights = self.weights[user]
        weights[position, 0] += 1.0
        weights[position, 1] += reward

    def _rebuild(self) -> None:
        """Recompute the sums: each exchange adds a rounding error."""
        self.n_updates_at_rebuild = self.n_updates
        self.sums[:] = self.no_ratings
        for user, vector in enumerate(self.user_factors):
            self._exchange(user, np.outer(vector, vector).ravel(), vector)
