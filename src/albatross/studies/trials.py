"""One policy in one environment with one seed, and its stored result."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Environment
from albatross.core.foreign.outside import digest_of
from albatross.core.memory import footprint
from albatross.core.policy import Policy
from albatross.core.recording import Recording
from albatross.environments.telling import informed
from albatross.metrics.ndcg import NDCG
from albatross.simulation.shards import simulate_shards

N_CHECKPOINTS = 100
"""Number of stored points of a curve: enough for any figure, few enough for thousands of trials."""


@dataclass(frozen=True)
class Trial:
    """A trial to run."""

    policy: Policy
    environment: Environment
    horizon: int
    seed: int
    ndcg: NDCG | None = None
    """How to measure rankings; None: they are not measured."""
    dataset: str = ""
    """The name of the environment in the study or command."""
    shards: int = 1
    """The number of shards that the users live on."""
    exchange: int | None = None
    """Limit of arrivals between two exchanges of the shards; None: one per four items."""

    def recipe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values; for a policy from outside also the digest of its source.

        The parameters include what the policy is told of its candidates.
        """
        source = digest_of(type(self.policy))
        return {
            "policy": self.policy.policy_name(),
            "parameters": informed(self.policy, self.environment).parameters(),
            "environment": self.environment.name,
            "environment_parameters": self.environment.parameters(),
            "horizon": self.horizon,
            "seed": self.seed,
            "ndcg": None if self.ndcg is None else self.ndcg.parameters(),
            **({} if self.shards == 1 else {"shards": self.shards, "exchange": self.exchange}),
            **({} if source is None else {"source": source}),
        }

    def footprint(self) -> int:
        """About how many bytes of memory the policy takes at the end."""
        n_users = -(-self.environment.n_users // self.shards)
        return self.shards * footprint(self.policy, n_users, self.environment.n_items, -(-self.horizon // self.shards))

    def protocol(self) -> str:
        """In words: whether a user may be shown an item again, and what is held back."""
        parameters = self.environment.parameters()
        repeats = "with repeats" if parameters.get("repeats", True) else "without repeats"
        return f"{repeats}, half of the {parameters['split']} told beforehand" if "split" in parameters else repeats


@dataclass(frozen=True)
class Result:
    """The result of a trial. Curves have their values after the steps in `checkpoints`."""

    checkpoints: NDArray[np.int64]
    regret: NDArray[np.float64]
    """Cumulative."""
    pseudo_regret: NDArray[np.float64]
    """Cumulative."""
    ndcg: NDArray[np.float64]
    """The mean so far; empty if it was not measured."""
    trivial: float
    """The share of steps at which all rankings were equally good; NaN if rankings were not measured."""
    counters: dict[str, int]
    """Counters of the policy, by name."""
    seconds: float
    """Processor time of the steps, without compilation."""
    state_id: str
    """A digest of what the policy had learned at the end."""

    def regret_at(self, step: float) -> float:
        """Cumulative regret at a step, linearly interpolated between checkpoints."""
        return float(np.interp(step, self.checkpoints, self.regret))


def run(trial: Trial, progress: Callable[[int], None] | None = None, jobs: int = 1) -> Result:
    """Run a trial, its shards in so many processes. `progress` is called with the number of steps done since the last call."""
    recording = simulate_shards(
        trial.policy, trial.environment, trial.horizon, trial.seed, trial.shards, trial.exchange, trial.ndcg, progress, jobs
    )
    return result_of(trial, recording)


def result_of(trial: Trial, recording: Recording) -> Result:
    """The stored part of a recording."""
    steps = checkpoints(trial.horizon)
    measured = trial.ndcg is not None
    return Result(
        checkpoints=steps,
        regret=np.cumsum(recording.regret)[steps - 1],
        pseudo_regret=np.cumsum(recording.pseudo_regret)[steps - 1],
        ndcg=recording.average_ndcg[steps - 1] if measured else np.empty(0),
        trivial=float(recording.trivial.mean()) if measured else math.nan,
        counters=recording.counters,
        seconds=recording.seconds,
        state_id=recording.state_id,
    )


def checkpoints(horizon: int) -> NDArray[np.int64]:
    """About a hundred steps, evenly spaced, of which the last is the horizon.

    >>> checkpoints(25_000)[:3].tolist(), checkpoints(3).tolist()
    ([250, 500, 750], [1, 2, 3])
    """
    count = min(N_CHECKPOINTS, horizon)
    return np.arange(1, count + 1) * horizon // count
