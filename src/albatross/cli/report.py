"""What a comparison comes to: a table, a JSON file, a figure."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.studies.comparison import Comparison
from albatross.studies.files import whole_file
from albatross.studies.showing import label, show_interval, show_number
from albatross.studies.statistics import mean_over_seeds
from albatross.studies.trials import Result

FIGURE_FORMATS = ("png", "svg", "pdf")


def print_table(comparison: Comparison) -> None:
    """One line per policy: what a person wants to know first."""
    environment, seeds = comparison.environment, comparison.seeds
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("policy", overflow="fold")
    for heading in ("regret", "95 % interval", "pseudo-regret", "µs/step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for policy, results in comparison.results.items():
        regret = mean_over_seeds([result.regret[-1] for result in results], stream(0, "bootstrap"))
        pseudo_regret = np.mean([result.pseudo_regret[-1] for result in results])
        microseconds = 1e6 * np.mean([result.seconds for result in results]) / comparison.horizon
        table.add_row(label(policy), show_number(regret.mean), show_interval(regret), show_number(pseudo_regret), f"{microseconds:,.1f}")
    console = Console(highlight=False)
    numbers = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]}–{seeds[-1]}"
    sizes = f"{environment.n_users:,} users, {environment.n_items:,} items"
    console.print(f"{comparison.dataset}: {sizes}; {comparison.horizon:,} steps {comparison.protocol}, {numbers}", markup=False)
    console.print(table)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything a later program may want, as plain values."""
    return {
        "dataset": comparison.dataset,
        "dataset_parameters": comparison.environment.parameters(),
        "protocol": comparison.protocol,
        "horizon": comparison.horizon,
        "policies": [
            {
                "name": policy.policy_name(),
                "parameters": policy.parameters(),
                "runs": [_run(seed, result) for seed, result in zip(comparison.seeds, results, strict=True)],
            }
            for policy, results in comparison.results.items()
        ],
    }


def _run(seed: int, result: Result) -> dict[str, Any]:
    return {
        "seed": seed,
        "checkpoints": result.checkpoints.tolist(),
        "regret": result.regret.tolist(),
        "pseudo_regret": result.pseudo_regret.tolist(),
        "seconds": result.seconds,
    }


def save_json(comparison: Comparison, path: Path) -> None:
    text = json.dumps(as_json(comparison))
    with whole_file(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def save_figure(comparison: Comparison, path: Path) -> None:
    """Cumulative regret over time, in the format the file's name asks for."""
    from albatross.figures.regret import Curve, draw_regret, save  # Matplotlib is heavy

    curves = []
    for policy, results in comparison.results.items():
        seeds = np.array([result.regret for result in results])
        curves.append(Curve(label(policy), results[0].checkpoints, seeds, *mean_over_seeds(seeds, stream(0, "bootstrap"))))
    figure = draw_regret(curves, title=comparison.environment.name)
    with whole_file(path) as partial:
        save(figure, partial, path.suffix[1:].lower())


def check_targets(json_file: Path | None, figure_file: Path | None) -> None:
    """Refuse files that could not be written before anybody waits for what would be in them."""
    if figure_file is not None and figure_file.suffix[1:].lower() not in FIGURE_FORMATS:
        raise InvalidInput(f"--figure is {figure_file}; accepted: a name ending in .{', .'.join(FIGURE_FORMATS)}")
    for option, file in (("--json", json_file), ("--figure", figure_file)):
        if file is None:
            continue
        if file.is_dir():
            raise InvalidInput(f"{option} is {file}, a folder; accepted: the name of a file")
        if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
            raise InvalidInput(f"{option} is {file}; accepted: a file in a folder that exists and can be written to")
