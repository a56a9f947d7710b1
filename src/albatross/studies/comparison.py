"""Policies side by side in one environment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import Player, as_policy
from albatross.core.policy import Policy
from albatross.core.sharing.exchange import check_shards
from albatross.kernels.building.beside import usable_cores
from albatross.studies.execution import execute
from albatross.studies.observer import NOBODY, Observer
from albatross.studies.showing import label
from albatross.studies.trials import Result, Trial, run


@dataclass(frozen=True)
class Comparison:
    """The setting, and per policy the results in the order of the seeds."""

    dataset: str
    environment: Environment
    horizon: int
    seeds: Sequence[int]
    protocol: str
    shards: int
    exchange: int | None
    """Limit of arrivals between two exchanges of the shards; None: one per four items."""
    results: dict[Policy, list[Result]]


def compare(
    policies: Sequence[Policy | type[Policy] | Callable[..., Player]],
    dataset: str,
    environment: Environment,
    horizon: int,
    seeds: Sequence[int],
    jobs: int | None = None,
    observer: Observer = NOBODY,
    shards: int = 1,
    exchange: int | None = None,
) -> Comparison:
    """Run every policy with every seed. Without `jobs`, one process per core, or one process for a single seed.

    With several shards, trials run one after the other, and the shards of each run in these processes.
    """
    contenders = contenders_of(policies)
    for policy in contenders:
        check_shards(policy, shards)
    if jobs is None:
        jobs = usable_cores() if len(seeds) > 1 or shards > 1 else 1
    trials = [Trial(policy, environment, horizon, seed, shards=shards, exchange=exchange) for policy in contenders for seed in seeds]
    observer.warn_of_memory(trials)
    with observer.watch(horizon * len(trials)) as progress:
        if shards > 1:
            done = {number: run(trial, progress, jobs) for number, trial in enumerate(trials)}
        else:
            done = dict(execute(trials, jobs, progress))
    ordered = iter([done[position] for position in range(len(trials))])
    results = {policy: [next(ordered) for _ in seeds] for policy in contenders}
    return Comparison(dataset, environment, horizon, seeds, trials[0].protocol(), shards, exchange, results)


def contenders_of(policies: Sequence[Policy | type[Policy] | Callable[..., Player]]) -> list[Policy]:
    """The policies as recipes. Refuses one that is given twice."""
    contenders = [as_policy(policy) for policy in policies]
    for number, policy in enumerate(contenders):
        if policy in contenders[:number]:
            raise InvalidInput(f"policy {label(policy)!r} is given twice; accepted: each once, or with other parameters")
    return contenders
