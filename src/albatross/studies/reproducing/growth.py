"""Growth of regret with time, with users and with items: exponents, and a verdict on sub-linear growth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.reproducing.evidence import exponents
from albatross.studies.statistics import FEWEST, Estimate, bootstrap, mean_over_seeds
from albatross.studies.trials import Result

STEPS = "steps"
SUBLINEAR, NOT_SUBLINEAR, UNDECIDED, NO_VERDICT = "sub-linear", "not sub-linear", "undecided", "no verdict"


class Law(NamedTuple):
    """The regret of one policy by size, and the fitted power law: regret ~ size^exponent."""

    policy: str
    sizes: NDArray[np.float64]
    regret: Estimate
    """One value per size."""
    exponent: Estimate
    n_seeds: int

    @property
    def verdict(self) -> str:
        """Judged by the whole interval; with fewer than five seeds there is no verdict."""
        if self.n_seeds < FEWEST:
            return NO_VERDICT
        return SUBLINEAR if self.exponent.high < 1.0 else NOT_SUBLINEAR if self.exponent.low >= 1.0 else UNDECIDED


class Growth(NamedTuple):
    """The laws of all policies of a study, along one axis."""

    title: str
    axis: str
    """`steps`, or the parameter by which the worlds of the study differ."""
    laws: list[Law]


def power(sizes: ArrayLike, regrets: ArrayLike) -> float:
    """The exponent of a power law, by least squares on logarithms.

    >>> round(power([10, 100, 1000], [2.0, 20.0, 200.0]), 6)
    1.0
    """
    positive = np.maximum(np.asarray(regrets, np.float64), np.finfo(float).tiny)
    return float(np.polyfit(np.log(np.asarray(sizes, np.float64)), np.log(positive), 1)[0])


def measure_growth(study: Study, journal: Journal) -> Growth:
    """Pseudo-regret along time if the study has one world, otherwise along the parameter by which its worlds differ.

    Along time, the exponent is that of the last nine tenths, per seed. Along a parameter, it is that of the mean regret at the horizon;
    its interval resamples seeds within each size.
    """
    axis = _axis(study)
    by_policy: dict[str, dict[float, list[Result]]] = {}
    for cell in study.cells:
        results = list(journal.finished(study.trials_of(cell)).values())
        if results:
            size = float(study.horizon if axis == STEPS else cell.environment.parameters()[axis])
            by_policy.setdefault(_name(cell, study), {})[size] = results
    if not by_policy:
        raise InvalidInput("no trial of this study is finished; run it first")
    along = _along_time if axis == STEPS else _along_sizes
    return Growth(study.title, axis, [along(policy, results) for policy, results in by_policy.items()])


def _name(cell: Cell, study: Study) -> str:
    """The name of the policy, whose parameters may be tuned per size; with parameters if several cells have that name."""
    name = cell.policy.policy_name()
    alike = [other for other in study.cells if other.dataset == cell.dataset and other.policy.policy_name() == name]
    return name if len(alike) == 1 else cell.label


def _axis(study: Study) -> str:
    worlds = [cell.environment.parameters() for cell in study.cells]
    differing = [key for key in worlds[0] if any(world.get(key) != worlds[0][key] for world in worlds)]
    if len(differing) > 1 or any(not isinstance(worlds[0][key], int) for key in differing):
        raise InvalidInput(f"the worlds of the study differ in {', '.join(differing)}; accepted: one world, or one number that differs")
    return differing[0] if differing else STEPS


def _along_time(policy: str, by_size: dict[float, list[Result]]) -> Law:
    (results,) = by_size.values()
    random = stream(0, "bootstrap")
    regret = mean_over_seeds([result.pseudo_regret for result in results], random)
    return Law(policy, results[0].checkpoints.astype(np.float64), regret, mean_over_seeds(exponents(results), random), len(results))


def _along_sizes(policy: str, by_size: dict[float, list[Result]]) -> Law:
    sizes = sorted(by_size)
    values = [[float(result.pseudo_regret[-1]) for result in by_size[size]] for size in sizes]
    if len(sizes) < 3:
        raise InvalidInput(f"{policy} is finished at {len(sizes)} sizes; accepted: at least 3")
    random = stream(0, "bootstrap")

    def fitted(groups: Sequence[NDArray[np.float64]]) -> float:
        return power(sizes, [group.mean() for group in groups])

    estimates = [mean_over_seeds(group, random) for group in values]
    regret = Estimate(*(np.array(part) for part in zip(*estimates, strict=True)))
    return Law(policy, np.array(sizes), regret, bootstrap(fitted, values, random), min(len(group) for group in values))
