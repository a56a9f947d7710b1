"""What one trial produced, with the recipe that made it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from albatross.core.policy import Policy


@dataclass(frozen=True)
class Recording:
    """Per-step arrays of one policy's life in one world."""

    policy: Policy
    environment: str
    seed: int
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    rewards: NDArray[np.float64]
    expected: NDArray[np.float64]
    """The mean reward of the item shown."""
    best: NDArray[np.float64]
    """The mean reward of the best item that could have been shown."""
    ndcg: NDArray[np.float64]
    """How good each ranking was, between 0 and 1; empty where it was not asked for."""
    trivial: NDArray[np.bool_]
    """Beside it, whether any ranking would have been as good."""
    seconds: float
    """Processor time of the steps, compilation left out: what else the machine does at the same time does not count."""
    counters: dict[str, int]
    """What the policy counted, by name."""
    state_id: str
    """The name of what the policy had learned at the end."""

    @property
    def horizon(self) -> int:
        return self.users.size

    @property
    def regret(self) -> NDArray[np.float64]:
        """Best mean minus the reward seen (equation 1 of the paper): noisy, so a step may be negative."""
        return self.best - self.rewards

    @property
    def pseudo_regret(self) -> NDArray[np.float64]:
        """Best mean minus the mean of the item shown: never negative."""
        return self.best - self.expected

    @property
    def average_ndcg(self) -> NDArray[np.float64]:
        """The mean of `ndcg` up to each step."""
        return np.cumsum(self.ndcg) / np.arange(1, self.ndcg.size + 1)
