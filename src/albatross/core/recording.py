"""The result of one trial, with its recipe."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Recording:
    """Per-step arrays of one trial."""

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
    """NDCG of each ranking, between 0 and 1; empty if it was not requested."""
    trivial: NDArray[np.bool_]
    """Per ranking: whether any ranking would have been as good."""
    seconds: float
    """Processor time of the steps, without compilation. Other load on the machine does not count. For a policy in plain Python: the time
    of its `select` and `update`."""
    counters: dict[str, int]
    """Counters of the policy, by name."""
    state_id: str
    """A digest of what the policy had learned at the end; for a policy in plain Python, of the ratings it learned from."""

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

    def columns(self) -> dict[str, NDArray[Any]]:
        """The steps as a table, one array per column, as pandas, Polars and DuckDB accept it."""
        table: dict[str, NDArray[Any]] = {
            "step": np.arange(1, self.horizon + 1),
            "user": self.users,
            "item": self.items,
            "reward": self.rewards,
            "expected": self.expected,
            "best": self.best,
            "regret": self.regret,
            "pseudo_regret": self.pseudo_regret,
        }
        return table | {"ndcg": self.ndcg, "trivial": self.trivial} if self.ndcg.size else table

    def to_frame(self) -> "DataFrame":
        """The steps as a pandas DataFrame, one row each. Pandas is not installed with albatross; `columns` needs nothing."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise InvalidInput("to_frame needs pandas, which is not installed; accepted: pip install pandas, or columns()") from error
        return pandas.DataFrame(self.columns())
