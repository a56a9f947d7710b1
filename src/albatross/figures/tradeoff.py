"""The effect of one parameter: regret above, time below, one column per data set."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from numpy.typing import NDArray

from albatross.figures.regret import COLOURS


class Band(NamedTuple):
    """A number per value of the parameter, with its interval."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Column(NamedTuple):
    title: str
    values: Sequence[str]
    """Values of the parameter, in drawing order."""
    regret: Band
    seconds: Band


def draw_tradeoff(columns: Sequence[Column], parameter: str) -> Figure:
    """The figure. Values are evenly spaced, because grids rarely are."""
    figure = Figure(figsize=(4.2 * len(columns), 5.2), dpi=150, layout="constrained")
    axes = figure.subplots(2, len(columns), sharex="col", squeeze=False)
    for number, column in enumerate(columns):
        for row, (band, colour) in enumerate(((column.regret, COLOURS[0]), (column.seconds, COLOURS[1]))):
            axis, places = axes[row, number], np.arange(len(column.values))
            axis.fill_between(places, band.low, band.high, color=colour, alpha=0.2, linewidth=0)
            axis.plot(places, band.mean, color=colour, linewidth=2.0, marker="o", markersize=4)
            axis.set_xticks(places, column.values)
            axis.set_ylim(bottom=0)
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
            axis.spines[["top", "right"]].set_visible(False)
        axes[0, number].set_title(column.title)
        axes[1, number].set_xlabel(parameter)
    axes[0, 0].set_ylabel("cumulative regret")
    axes[1, 0].set_ylabel("seconds per trial")
    return figure
