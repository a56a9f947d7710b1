"""ALB exactly as Algorithm 1 of the paper, in NumPy: everything is computed again from the history of all ratings, at every step.

X and Z have a row per rating, the vector of its item and of its user; lines 16 and 18 overwrite all rows of a user and of an item.
Only the scan over the items is written for NumPy rather than as a loop. As in the policy, A_u also enters the row of the
rating just observed, and s is 1.
"""

import numpy as np
from numpy.typing import NDArray

from albatross.policies.alb import ALB

Array = NDArray[np.float64]


class LiteralALB:
    """The same algorithm from the same start in other arithmetic: it agrees with the policy up to rounding."""

    def __init__(self, policy: ALB, user_factors: Array, item_factors: Array, horizon: int) -> None:
        self.settings, self.rank = policy.settings(), policy.rank
        self.user_factors, self.item_factors = user_factors.copy(), np.array(item_factors, order="C")
        self.n_ratings = 0
        self.users, self.items = np.full(horizon, -1), np.full(horizon, -1)
        self.ratings = np.zeros(horizon)
        self.item_rows, self.user_rows = np.zeros((horizon, policy.rank)), np.zeros((horizon, policy.rank))  # X and Z

    def recall(self, users: NDArray[np.int64], items: NDArray[np.int64], rewards: Array) -> None:
        """Begin with these ratings in the history, and the current vectors in its rows."""
        self.n_ratings = n_ratings = users.size
        self.users[:n_ratings], self.items[:n_ratings], self.ratings[:n_ratings] = users, items, rewards
        self.item_rows[:n_ratings], self.user_rows[:n_ratings] = self.item_factors[items], self.user_factors[users]

    def select(self, user: int) -> int:
        """Lines 5 to 11, the argmax over items; what it means for the user is line 11's other half, and the update's."""
        settings, past = self.settings, slice(0, self.n_ratings)
        self.of_user = np.flatnonzero(self.users[past] == user)
        rows = self.item_rows[self.of_user]
        identity = np.eye(self.rank)
        self.center = np.linalg.inv(rows.T @ rows + settings.user_ridge * identity) @ rows.T @ self.ratings[self.of_user]
        self.gram = settings.user_ridge * identity + rows.T @ rows
        _, growth = np.linalg.slogdet(self.gram / settings.user_ridge)
        width = np.sqrt(max(growth, 0.0) - 2.0 * np.log(settings.confidence))
        self.radius = settings.noise * width + np.sqrt(settings.user_ridge) * settings.norm_bound
        inverse = np.linalg.inv(self.gram)
        self.widths = np.sqrt(np.einsum("ja,ja->j", self.item_factors @ inverse, self.item_factors))
        self.scores = self.item_factors @ self.center + self.radius * self.widths
        return int(self.scores.argmax())

    def update(self, user: int, item: int, reward: float) -> None:
        """Lines 11 to 18, for the user for whom `select` was called last."""
        now = self.n_ratings
        width = self.widths[item]
        stretch = self.radius / width if width > 0.0 else 0.0
        self.user_factors[user] = self.center + stretch * np.linalg.solve(self.gram, self.item_factors[item])
        self.users[now], self.items[now], self.ratings[now] = user, item, reward
        self.n_ratings += 1
        of_item = np.flatnonzero(self.items[: self.n_ratings] == item)
        self.user_rows[self.of_user] = self.user_factors[user]
        self.user_rows[now] = self.user_factors[user]
        rows = self.user_rows[of_item]
        gram = rows.T @ rows + self.settings.item_ridge * np.eye(self.rank)
        self.item_factors[item] = np.linalg.inv(gram) @ rows.T @ self.ratings[of_item]
        self.item_rows[of_item] = self.item_factors[item]
