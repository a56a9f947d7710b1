"""The paper's evaluation as studies: policies, data sets and parameters."""

import itertools
import tomllib
from importlib import resources
from typing import Any

from albatross import policies
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.environments import create
from albatross.metrics.ndcg import NDCG
from albatross.studies.plan import Cell, Study

RIVALS = ("alb", "pts", "nmf-bandit")
BEYOND = "mean-field"
"""Our policy, which is not in the paper."""
SIMPLE = ("epsilon-als", "item-mean", "popularity-memory")
"""Strong policies that are not in the paper."""
SYNTHETIC = ("gaussian", "uniform", "bernoulli")
REAL = ("book-crossing", "movielens-100k", "jester-2")
TITLES = {
    "alb": "ALB", "pts": "PTS", "nmf-bandit": "NMF-Bandit",
    "gaussian": "Gaussian", "uniform": "Uniform", "bernoulli": "Bernoulli",
    "book-crossing": "Book-Crossing", "movielens-100k": "MovieLens 100K", "jester-2": "Jester",
}  # fmt: skip
"""The paper's names of its policies and data sets."""
RANK_DATASET = "movielens-100k"
RANKS = (3, 5, 7)
HORIZON = 25_000
LONG_HORIZON = 200_000
GROWTH = ("gaussian", "alb")
"""The data set and the policy for the growth of regret with time."""
N_SEEDS = 10
TUNING_SEEDS = tuple(range(1000, 1003))
"""Parameters are tuned on seeds that no reported number uses."""

GRIDS: dict[str, dict[str, list[Any]]] = {
    "alb": {"ridge": [0.001, 0.01, 0.1, 1.0], "noise": [step / 10 for step in range(1, 11)]},
    "pts": {"n_particles": [10, 20, 30, 40, 50], "noise": [step / 10 for step in range(1, 11)]},
    "nmf-bandit": {"exploration": [1.0, 2.0, 3.0, 4.0, 5.0], "set_size": [5, 10, 15, 20, 25, 30]},
}
"""The grids of the paper."""

FIXED: dict[str, dict[str, Any]] = {"nmf-bandit": {"data": "all"}}
"""Not tuned: an NMF-Bandit that learns only from its exploration steps is hardly better than random."""

Tuned = dict[str, dict[str, dict[str, Any]]]
"""Parameters by data set and policy."""


def shipped_parameters() -> Tuned:
    """The paper's tuned values for ALB; for its rivals, whose values it does not print, those found by a full run."""
    text = resources.files("albatross.studies.reproducing").joinpath("tuned.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def available_environments(real: bool = True) -> tuple[dict[str, Environment], dict[str, str]]:
    """The six data sets, or only the synthetic ones, by name; and a reason for each missing one."""
    present: dict[str, Environment] = {}
    missing: dict[str, str] = {}
    for name in SYNTHETIC + (REAL if real else ()):
        try:
            present[name] = create(name)
        except InvalidInput as error:
            missing[name] = str(error)
    return present, missing


def tuned_policy(tuned: Tuned, dataset: str, name: str, **changes: Any) -> Policy:
    return policies.create(name, FIXED.get(name, {}) | tuned[dataset][name] | changes)


def comparison_studies(environments: dict[str, Environment], tuned: Tuned, horizon: int = HORIZON, n_seeds: int = N_SEEDS) -> list[Study]:
    """Figures 1 to 4: every rival on every data set, and at three ranks on one; and a longer run of ALB for the growth of its regret."""
    seeds = tuple(range(n_seeds))
    synthetic = tuple(name for name in SYNTHETIC if name in environments)
    real = tuple(name for name in REAL if name in environments)

    def cells(names: tuple[str, ...], **changes: Any) -> tuple[Cell, ...]:
        return tuple(Cell(name, environments[name], tuned_policy(tuned, name, rival, **changes)) for name in names for rival in RIVALS)

    studies = [
        Study("synthetic data sets", horizon, seeds, None, cells(synthetic)),
        Study("real data sets", horizon, seeds, NDCG(), cells(real)),
    ]
    if RANK_DATASET in environments:
        # The middle rank is that of the previous study: the same trials, run once.
        other = tuple(cell for rank in RANKS for cell in cells((RANK_DATASET,), rank=rank))
        studies.append(Study("factorization rank", horizon, seeds, NDCG(), other))
    if GROWTH[0] in environments:
        alb = Cell(GROWTH[0], environments[GROWTH[0]], tuned_policy(tuned, *GROWTH))
        studies.append(Study("growth with time", horizon * (LONG_HORIZON // HORIZON), seeds, None, (alb,)))
    return [study for study in studies if study.cells]


def beyond_studies(environments: dict[str, Environment], horizon: int = HORIZON, n_seeds: int = N_SEEDS) -> list[Study]:
    """Policies that are not in the paper, with default parameters, on the same data sets and seeds."""
    studies = []
    for title, names, ndcg in (("synthetic data sets", SYNTHETIC, None), ("real data sets", REAL, NDCG())):
        present = [name for name in names if name in environments]
        cells = tuple(Cell(name, environments[name], policies.create(policy)) for name in present for policy in (BEYOND, *SIMPLE))
        studies.append(Study(f"beyond the paper, {title}", horizon, tuple(range(n_seeds)), ndcg, cells))
    return [study for study in studies if study.cells]


def tuning_study(environments: dict[str, Environment], horizon: int = HORIZON) -> Study:
    """Every grid on every data set, on separate seeds."""
    cells = tuple(
        Cell(name, environment, policies.create(rival, FIXED.get(rival, {}) | dict(zip(grid, values, strict=True))))
        for name, environment in environments.items()
        for rival, grid in GRIDS.items()
        for values in itertools.product(*grid.values())
    )
    return Study("grid search", horizon, TUNING_SEEDS, None, cells)
