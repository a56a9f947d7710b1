"""The numbers that figures show. They are drawn elsewhere."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from albatross.core.errors import InvalidInput, unknown
from albatross.core.files import whole_file
from albatross.core.streams import stream
from albatross.studies.comparison import Comparison
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.showing import label, show_value
from albatross.studies.statistics import Estimate, mean_over_seeds
from albatross.studies.trials import Result


class Series(NamedTuple):
    """One line: a value per seed after each of the steps, their mean, and its interval."""

    label: str
    steps: NDArray[np.int64]
    seeds: NDArray[np.float64]
    """One row per seed."""
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Chart(NamedTuple):
    """The lines of one panel, and the results behind them."""

    title: str
    series: Sequence[Series]
    results: Mapping[str, Mapping[int, Result]]
    """Results by label of a line, then by seed."""


class Tradeoff(NamedTuple):
    """Regret and time for each value of a parameter on one data set."""

    title: str
    values: Sequence[str]
    """Values of the parameter, in the order of the study."""
    regret: Estimate
    seconds: Estimate


def series_of(label: str, results: Sequence[Result], quantity: str = "regret") -> Series:
    """One curve of the results, over time."""
    seeds = np.array([getattr(result, quantity) for result in results])
    return Series(label, results[0].checkpoints, seeds, *mean_over_seeds(seeds, stream(0, "bootstrap")))


def chart_of(title: str, results: Mapping[str, Mapping[int, Result]], quantity: str = "regret") -> Chart:
    """A panel of one quantity."""
    return Chart(title, [series_of(name, list(by_seed.values()), quantity) for name, by_seed in results.items()], results)


def comparison_series(comparison: Comparison) -> list[Series]:
    """The regret of each policy."""
    return [series_of(label(policy), results) for policy, results in comparison.results.items()]


def study_charts(planned: Study, journal: Journal) -> list[Chart]:
    """The regret of each policy in the finished part of a study, a chart per data set."""
    finished = _finished(planned, journal)
    return [
        chart_of(dataset, {cell.label: results for cell, results in finished.items() if cell.dataset == dataset})
        for dataset in dict.fromkeys(cell.dataset for cell in finished)
    ]


def study_tradeoffs(planned: Study, journal: Journal, parameter: str) -> list[Tradeoff]:
    """Regret and time for each value of one parameter in the finished part of a study, by data set."""
    finished = _finished(planned, journal)
    known = {name for cell in finished for name in cell.policy.parameters()}
    if parameter not in known:
        raise unknown("parameter", parameter, known)
    return [_tradeoff(dataset, finished, parameter) for dataset in dict.fromkeys(cell.dataset for cell in finished)]


def write_series(charts: Sequence[Chart], path: Path) -> None:
    """The data of a figure as CSV, one row per point."""
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "curve", "step", "mean", "low", "high"])
        for chart in charts:
            for series in chart.series:
                for row in zip(series.steps, series.mean, series.low, series.high, strict=True):
                    writer.writerow([chart.title, series.label, *row])


def _finished(planned: Study, journal: Journal) -> dict[Cell, dict[int, Result]]:
    """The cells with finished trials, by seed."""
    cells = {cell: {trial.seed: result for trial, result in journal.finished(planned.trials_of(cell)).items()} for cell in planned.cells}
    finished = {cell: results for cell, results in cells.items() if results}
    if not finished:
        raise InvalidInput("no trial of this study is finished; run it first")
    return finished


def _tradeoff(dataset: str, finished: Mapping[Cell, Mapping[int, Result]], parameter: str) -> Tradeoff:
    cells = [cell for cell in finished if cell.dataset == dataset and parameter in cell.policy.parameters()]
    values = [cell.policy.parameters()[parameter] for cell in cells]
    if len(set(values)) < len(values):
        raise InvalidInput(f"on {dataset}, {parameter} is not all that differs; accepted: a study of one policy with one grid")
    regret = [_estimate([result.regret[-1] for result in finished[cell].values()]) for cell in cells]
    seconds = [_estimate([result.seconds for result in finished[cell].values()]) for cell in cells]
    shown = [show_value(value) for value in values]
    return Tradeoff(dataset, shown, Estimate(*np.transpose(regret)), Estimate(*np.transpose(seconds)))


def _estimate(values: ArrayLike) -> Estimate:
    """With one seed, an interval of zero width instead of none."""
    estimate = mean_over_seeds(values, stream(0, "bootstrap"))
    return Estimate(estimate.mean, estimate.mean, estimate.mean) if math.isnan(estimate.low) else estimate
