"""Our policy in every protocol, beside simple policies that learn too: greedy, shrunk item mean, popularity with memory."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from albatross import policies
from albatross.core.environment import Environment
from albatross.core.streams import stream
from albatross.environments import PROTOCOLS, create
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.reproducing.paper import BEYOND, HORIZON, N_SEEDS
from albatross.studies.statistics import Estimate, paired_difference
from albatross.studies.trials import Result

LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    BEYOND: (BEYOND, {}),
    "greedy": (BEYOND, {"optimism": 0.0}),
    "shrunk item mean": ("item-mean", {"shrunk": True}),
    "popularity with memory": ("popularity-memory", {}),
}
"""The compared policies, by their name in tables: the policy and its parameters."""

CLICKS_ALREADY = ("uniform", "bernoulli")
"""Uniform data as clicks are Bernoulli data, and Bernoulli data are clicks already."""

SHORTER = {"book-crossing": 10_000}
"""A shorter horizon where most users have few items, and would soon have seen all of them."""


class Standing(NamedTuple):
    """Our policy and the best of the others on one data set in one protocol, at the end."""

    dataset: str
    protocol: str
    steps: int
    regret: float
    rival: str
    rival_regret: float
    difference: Estimate
    """Ours minus the rival's, paired by seed."""

    def ratio(self) -> Estimate:
        """Our regret as a multiple of the rival's; 1 if both are zero."""
        scale = self.rival_regret if self.rival_regret > 0.0 else 1.0
        return Estimate(*(1.0 + bound / scale for bound in self.difference))


def protocol_studies(environments: Mapping[str, Environment], horizon: int = HORIZON, n_seeds: int = N_SEEDS) -> dict[str, Study]:
    """The comparisons on these data sets, by protocol."""
    studies = {}
    for protocol, meaning in PROTOCOLS.items():
        cells = []
        for name in environments:
            if meaning["clicks"] and name in CLICKS_ALREADY:
                continue
            environment = create(name, {"protocol": protocol})
            steps = horizon
            if not meaning["repeats"]:
                steps = min(horizon, SHORTER.get(name, horizon), int(environment.world(0).lengths.sum()))
            made = (policies.create(policy, parameters) for policy, parameters in LEARNERS.values())
            cells += [Cell(name, environment, policy, horizon=steps) for policy in made]
        if cells:
            studies[protocol] = Study(f"protocol {protocol}", horizon, tuple(range(n_seeds)), None, tuple(cells))
    return studies


def stand(studies: Mapping[str, Study], journal: Journal) -> list[Standing]:
    """The standing of our policy, per protocol and data set, once all trials are finished."""
    standings = []
    for protocol, study in studies.items():
        for dataset in dict.fromkeys(cell.dataset for cell in study.cells):
            cells = [cell for cell in study.cells if cell.dataset == dataset]
            results = [[journal[trial] for trial in study.trials_of(cell)] for cell in cells]
            standings.append(standing_of(dataset, protocol, dict(zip(LEARNERS, results, strict=True))))
    return standings


def standing_of(dataset: str, protocol: str, results: Mapping[str, Sequence[Result]]) -> Standing:
    final = {name: np.array([result.regret[-1] for result in by_seed]) for name, by_seed in results.items()}
    rival = min((name for name in final if name != BEYOND), key=lambda name: float(final[name].mean()))
    difference = paired_difference(final[BEYOND], final[rival], stream(0, "bootstrap"))
    steps = int(results[BEYOND][0].checkpoints[-1])
    return Standing(dataset, protocol, steps, float(final[BEYOND].mean()), rival, float(final[rival].mean()), difference)
