"""`albatross study compare`: one policy of a study against the best of the others, seed by seed."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.showing import label, show_estimate, show_mean, show_number
from albatross.studies.statistics import paired_difference
from albatross.studies.trials import Result

NARROWEST = 100
"""Columns: two intervals side by side and a name do not fit into fewer."""

Measure = Callable[[Result], float]


def compare_policies(planned: Study, journal: Journal, policy: str, steps: Sequence[int]) -> Table:
    """Per data set: the policy, the best of the others, and their difference over the seeds that both have finished."""
    for step in steps:
        if not 1 <= step <= planned.horizon:
            raise InvalidInput(f"--at is {step}; accepted: steps from 1 to the horizon, {planned.horizon:,}")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in (policy, "best other", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("which", overflow="fold")
    for dataset in dict.fromkeys(cell.dataset for cell in planned.cells):
        everybody = {label(cell.policy): _finished(planned, cell, journal) for cell in planned.cells if cell.dataset == dataset}
        ours, others = _split(everybody, policy, dataset)
        table.add_row(dataset, style="bold")
        for step in steps:
            table.add_row(f"  regret at {step:,}", *_against(ours, others, partial(Result.regret_at, step=step), min, 0))
        if planned.ndcg:
            table.add_row(f"  NDCG@{planned.ndcg.depth}", *_against(ours, others, _final_ndcg, max, 4))
    return table


def print_comparison(planned: Study, journal: Journal, policy: str, steps: Sequence[int]) -> None:
    table = compare_policies(planned, journal, policy, steps or [planned.horizon])
    console = Console(highlight=False)
    console.width = max(console.width, NARROWEST)
    console.print(f"{planned.title}: means over seeds with 95 % intervals, differences paired by seed", markup=False)
    console.print(table)


def _finished(planned: Study, cell: Cell, journal: Journal) -> dict[int, Result]:
    """By seed."""
    return {trial.seed: journal[trial] for trial in planned.trials_of(cell) if trial in journal}


def _split(everybody: dict[str, dict[int, Result]], policy: str, dataset: str) -> tuple[dict[int, Result], dict[str, dict[int, Result]]]:
    if policy not in everybody:
        raise InvalidInput(f"policy is {policy!r}, which has no part in {dataset}; accepted: {', '.join(everybody)}")
    others = {name: results for name, results in everybody.items() if name != policy and results}
    if not everybody[policy] or not others:
        raise InvalidInput(f"{dataset}: nothing is finished that could be compared; `albatross study run` does it")
    return everybody[policy], others


def _final_ndcg(result: Result) -> float:
    return float(result.ndcg[-1])


def _against(
    ours: dict[int, Result], others: dict[str, dict[int, Result]], measure: Measure, best_of: Callable[..., str], digits: int
) -> list[str]:
    means = {name: np.mean([measure(result) for result in results.values()]) for name, results in others.items()}
    best = best_of(means, key=lambda name: means[name])
    shared = [seed for seed in ours if seed in others[best]]
    mine, theirs = [measure(ours[seed]) for seed in shared], [measure(others[best][seed]) for seed in shared]
    difference = paired_difference(mine, theirs, stream(0, "bootstrap"))
    return [show_mean(mine, digits), show_number(np.mean(theirs), digits), show_estimate(difference, digits), best]
