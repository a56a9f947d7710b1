"""From finished trials to the data that claims are judged by."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from albatross.studies.journal import Journal
from albatross.studies.plan import Study
from albatross.studies.reproducing.claims import Evidence, Values
from albatross.studies.reproducing.paper import GROWTH, RIVALS
from albatross.studies.trials import Result

Key = tuple[str, str, int, int]
"""Data set, policy, rank, horizon."""

Outcomes = dict[Key, list[Result]]
"""The results of a cell in the order of the seeds."""

Contenders = dict[str, dict[str, list[Result]]]
"""The results by data set and policy, in the order of the seeds."""


def collect(studies: Sequence[Study], journal: Journal) -> Outcomes:
    """The finished trials of some studies by cell."""
    outcomes: Outcomes = {}
    for study in studies:
        for trial in study.trials():
            key = (trial.dataset, trial.policy.policy_name(), trial.policy.parameters()["rank"], trial.horizon)
            outcomes.setdefault(key, []).append(journal[trial])
    n_seeds = len(studies[0].seeds)
    return {key: results[:n_seeds] for key, results in outcomes.items()}  # a trial may belong to two studies


def collect_beyond(studies: Sequence[Study], journal: Journal, outcomes: Outcomes, horizon: int) -> Contenders:
    """The policies that are not in the paper, together with the three that are."""
    contenders: Contenders = {}
    for study in studies:
        for trial in study.trials():
            contenders.setdefault(trial.dataset, {}).setdefault(trial.policy.policy_name(), []).append(journal[trial])
    for dataset, by_policy in contenders.items():
        by_policy |= {rival: outcomes[dataset, rival, 5, horizon] for rival in RIVALS}
    return contenders


def weigh(outcomes: Outcomes, horizon: int) -> Evidence:
    """The data that claims are judged by."""

    def final(name: str) -> "Reader":
        return Reader(outcomes, name, horizon)

    datasets = list(dict.fromkeys(dataset for dataset, *_ in outcomes))
    growth = {steps: exponents(results) for (dataset, policy, _, steps), results in outcomes.items() if (dataset, policy) == GROWTH}
    return Evidence(datasets, final("regret"), final("ndcg"), final("seconds"), growth)


class Reader:
    """The last value of a curve, or a number, per seed."""

    def __init__(self, outcomes: Outcomes, name: str, horizon: int) -> None:
        self.outcomes, self.name, self.horizon = outcomes, name, horizon

    def __call__(self, dataset: str, policy: str, rank: int) -> Values:
        values = [getattr(result, self.name) for result in self.outcomes[dataset, policy, rank, self.horizon]]
        return np.array([value if isinstance(value, float) else value[-1] for value in values])


def exponents(results: Sequence[Result]) -> NDArray[np.float64]:
    """Growth of pseudo-regret over the last nine tenths of the time, per seed: regret ~ t^exponent, by least squares on logarithms."""
    found = []
    for result in results:
        late = result.checkpoints >= result.checkpoints[-1] // 10
        regret = np.maximum(result.pseudo_regret[late], np.finfo(float).tiny)
        found.append(np.polyfit(np.log(result.checkpoints[late]), np.log(regret), 1)[0])
    return np.array(found)
