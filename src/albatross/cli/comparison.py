"""Policies side by side in one environment, with a progress bar for who waits for them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from albatross.cli.progress import progress_bar
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.memory import memory_limit, show_bytes
from albatross.core.policy import Policy
from albatross.studies.execution import available_cores, execute
from albatross.studies.showing import label
from albatross.studies.trials import Result, Trial

MUCH_MEMORY = 50_000_000
"""Bytes from which on it is said beforehand."""


@dataclass(frozen=True)
class Comparison:
    """What was run, and per policy the results in the order of the seeds."""

    dataset: str
    environment: Environment
    horizon: int
    seeds: Sequence[int]
    protocol: str
    results: dict[Policy, list[Result]]


def compare(
    policies: Sequence[Policy], dataset: str, environment: Environment, horizon: int, seeds: Sequence[int], jobs: int | None = None
) -> Comparison:
    """Run every policy with every seed."""
    for number, policy in enumerate(policies):
        if policy in policies[:number]:
            raise InvalidInput(f"policy {label(policy)!r} is given twice; accepted: each once, or with other parameters")
    if jobs is None:
        jobs = available_cores() if len(seeds) > 1 else 1
    trials = [Trial(policy, environment, horizon, seed) for policy in policies for seed in seeds]
    announce_memory(trials)
    with progress_bar(horizon * len(trials)) as progress:
        done = dict(execute(trials, jobs, progress))
    ordered = iter([done[position] for position in range(len(trials))])
    results = {policy: [next(ordered) for _ in seeds] for policy in policies}
    return Comparison(dataset, environment, horizon, seeds, trials[0].protocol(), results)


def announce_memory(trials: Sequence[Trial]) -> None:
    """Say beforehand which policies take much memory."""
    for policy, trial in {trial.policy: trial for trial in trials}.items():
        if MUCH_MEMORY <= trial.footprint() <= memory_limit():  # what cannot fit is refused with the estimate
            sizes = f"{trial.environment.n_users:,} users, {trial.environment.n_items:,} items, {trial.horizon:,} steps"
            print(f"albatross: {label(policy)} takes up to {show_bytes(trial.footprint())} of memory ({sizes})", file=sys.stderr)
