"""The growth of regret on logarithmic axes, where a power law is a straight line."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from albatross.figures.regret import COLOURS, LINES

FEW = 20
"""Up to so many sizes are marked individually."""


class Line(NamedTuple):
    """The regret of one policy by size."""

    label: str
    sizes: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class GrowthPanel(NamedTuple):
    axis: str
    """The name of the size."""
    lines: Sequence[Line]


def draw_growth(panels: Sequence[GrowthPanel]) -> Figure:
    """One panel per axis; a grey line shows linear growth."""
    figure = Figure(figsize=(4.4 * len(panels), 4.2), dpi=150, layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for number, line in enumerate(panel.lines):
            colour, style = COLOURS[number % len(COLOURS)], LINES[number // len(COLOURS) % len(LINES)]
            few = len(line.sizes) <= FEW
            axes.fill_between(line.sizes, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(line.sizes, line.mean, color=colour, linestyle=style, marker="o" if few else None, markersize=3, label=line.label)
        first, last = panel.lines[0].sizes[[0, -1]]
        lowest = min(float(line.mean[0]) for line in panel.lines)
        axes.plot([first, last], [0.7 * lowest, 0.7 * lowest * last / first], color="#999999", linewidth=1.0, label="linear")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(panel.axis)
        if len(panel.lines[0].sizes) <= FEW:
            axes.set_xticks(panel.lines[0].sizes)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("pseudo-regret")
    max(figure.axes, key=lambda axes: len(axes.get_lines())).legend(frameon=False, fontsize="small")
    return figure
