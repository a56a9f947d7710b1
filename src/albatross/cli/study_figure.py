"""`albatross study figure`: the finished part of a study as a picture."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from albatross.cli.report import FIGURE_FORMATS
from albatross.core.errors import InvalidInput, unknown
from albatross.core.streams import stream
from albatross.studies.files import whole_file
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.showing import label, show_value
from albatross.studies.statistics import Estimate, mean_over_seeds
from albatross.studies.trials import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # heavy


def draw_study(planned: Study, journal: Journal, target: Path, along: str | None) -> None:
    """Cumulative regret over time, or what one parameter buys and costs; a panel per data set."""
    from albatross.figures.regret import save  # Matplotlib is heavy

    kind = target.suffix[1:].lower()
    if kind not in FIGURE_FORMATS:
        raise InvalidInput(f"{target}; accepted: a name ending in .{', .'.join(FIGURE_FORMATS)}")
    finished = {cell: _results(planned, cell, journal) for cell in planned.cells}
    finished = {cell: results for cell, results in finished.items() if results}
    if not finished:
        raise InvalidInput("no trial of this study is finished; run it first")
    figure = _curves(finished) if along is None else _tradeoff(finished, along)
    with whole_file(target) as partial:
        save(figure, partial, kind)


def _results(planned: Study, cell: Cell, journal: Journal) -> list[Result]:
    trials = planned.trials_of(cell)
    return [journal[trial] for trial in trials if trial in journal]


def _curves(finished: dict[Cell, list[Result]]) -> "Figure":
    from albatross.figures.panels import Panel, draw_panels
    from albatross.figures.regret import Curve

    def curve(cell: Cell, results: Sequence[Result]) -> Curve:
        seeds = np.array([result.regret for result in results])
        return Curve(label(cell.policy), results[0].checkpoints, seeds, *_estimate(seeds))

    panels = [
        Panel(dataset, [curve(cell, results) for cell, results in finished.items() if cell.dataset == dataset])
        for dataset in dict.fromkeys(cell.dataset for cell in finished)
    ]
    return draw_panels(panels, "cumulative regret", same_scale=False)


def _tradeoff(finished: dict[Cell, list[Result]], parameter: str) -> "Figure":
    from albatross.figures.tradeoff import Band, Column, draw_tradeoff

    known = {name for cell in finished for name in cell.policy.parameters()}
    if parameter not in known:
        raise unknown("parameter", parameter, known)
    columns = []
    for dataset in dict.fromkeys(cell.dataset for cell in finished):
        cells = [cell for cell in finished if cell.dataset == dataset and parameter in cell.policy.parameters()]
        values = [cell.policy.parameters()[parameter] for cell in cells]
        if len(set(values)) < len(values):
            raise InvalidInput(f"on {dataset}, {parameter} is not all that differs; accepted: a study of one policy with one grid")
        regret = [_estimate([result.regret[-1] for result in finished[cell]]) for cell in cells]
        seconds = [_estimate([result.seconds for result in finished[cell]]) for cell in cells]
        shown = [show_value(value) for value in values]
        columns.append(Column(dataset, shown, Band(*np.transpose(regret)), Band(*np.transpose(seconds))))
    return draw_tradeoff(columns, parameter)


def _estimate(values: ArrayLike) -> Estimate:
    """With one seed, an interval of no width rather than none."""
    estimate = mean_over_seeds(values, stream(0, "bootstrap"))
    return Estimate(estimate.mean, estimate.mean, estimate.mean) if math.isnan(np.min(estimate.low)) else estimate
