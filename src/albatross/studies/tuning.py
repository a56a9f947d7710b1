"""Tuning: parameters are chosen on one set of seeds and reported on another."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from albatross.core.files import whole_file
from albatross.studies.journal import Journal
from albatross.studies.plan import Study
from albatross.studies.reproducing.paper import FIXED, Tuned


def settle(study: Study, journal: Journal) -> Study:
    """The study with the best cell of each choice. Choices whose tuning is not finished stay open."""
    grid, cells, waiting = study.tuning(), [], []
    for choice in study.choices:
        trials = [grid.trials_of(cell) for cell in choice.cells]
        if all(trial in journal for by_seed in trials for trial in by_seed):
            regrets = [np.mean([journal[trial].regret[-1] for trial in by_seed]) for by_seed in trials]
            cells.append(choice.cells[int(np.argmin(regrets))])
        else:
            waiting.append(choice)
    return replace(study, cells=(*study.cells, *cells), choices=tuple(waiting))


def best_parameters(grid: Study, journal: Journal) -> Tuned:
    """Per data set and policy, the point of the grid with the least mean regret at the horizon; with ties, the first."""
    least: dict[tuple[str, str], float] = {}
    tuned: Tuned = {}
    for cell in grid.cells:
        name = cell.policy.policy_name()
        regret = float(np.mean([journal[trial].regret[-1] for trial in grid.trials_of(cell)]))
        if regret < least.get((cell.dataset, name), np.inf):
            least[cell.dataset, name] = regret
            tuned.setdefault(cell.dataset, {})[name] = _varied(cell.policy.parameters(), name, grid)
    return tuned


def write_parameters(tuned: Tuned, path: Path) -> None:
    """The chosen parameters as TOML."""
    lines = []
    for dataset, by_policy in tuned.items():
        lines.append(f"[{dataset}]")
        for name, parameters in by_policy.items():
            lines.append(f"{name} = {{ {', '.join(f'{key} = {value!r}' for key, value in parameters.items())} }}")
        lines.append("")
    with whole_file(path) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def _varied(parameters: dict[str, Any], name: str, grid: Study) -> dict[str, Any]:
    """Only the parameters that the grid varies."""
    others = [cell.policy.parameters() for cell in grid.cells if cell.policy.policy_name() == name]
    return {
        key: value for key, value in parameters.items() if key not in FIXED.get(name, {}) and any(other[key] != value for other in others)
    }
