"""Several plots side by side, as in the paper: one panel per data set or policy."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from albatross.figures.regret import Curve, draw_curves


class Panel(NamedTuple):
    title: str
    curves: Sequence[Curve]


def draw_panels(panels: Sequence[Panel], quantity: str, *, same_scale: bool) -> Figure:
    """Panels in a row. `same_scale` gives them one vertical axis, if they have the same unit."""
    figure = Figure(figsize=(4.2 * len(panels), 3.6), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=same_scale, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        draw_curves(axis, panel.curves)
        axis.set_title(panel.title)
        axis.set_xlabel("time (steps)")
        axis.xaxis.set_major_locator(MaxNLocator(3))  # the last number of a panel must not touch the first of the next
        axis.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel(quantity)
    return figure
