"""Many comparisons in one figure: a panel per protocol, a row per data set, a dot with its interval for the ratio of two regrets."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from albatross.figures.regret import COLOURS

AHEAD, LEVEL, BEHIND = COLOURS[2], COLOURS[6], COLOURS[1]


class Ratio(NamedTuple):
    row: str
    mean: float
    low: float
    high: float


class GlancePanel(NamedTuple):
    title: str
    ratios: Sequence[Ratio]


def draw_glance(panels: Sequence[GlancePanel], quantity: str) -> Figure:
    """The panels share their rows and their scale; the line marks equal regrets."""
    rows = list(dict.fromkeys(ratio.row for panel in panels for ratio in panel.ratios))
    figure = Figure(figsize=(2.0 + 2.4 * len(panels), 1.4 + 0.36 * len(rows)), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        axis.axvline(1.0, color="#888888", linewidth=1.0)
        for ratio in panel.ratios:
            place, colour = rows.index(ratio.row), AHEAD if ratio.high < 1.0 else BEHIND if ratio.low > 1.0 else LEVEL
            axis.plot([ratio.low, ratio.high], [place, place], color=colour, linewidth=2.0, solid_capstyle="butt")
            axis.plot([ratio.mean], [place], color=colour, marker="o", markersize=5)
        axis.set_title(panel.title)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(rows)), rows)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    axes[0].set_xlim(left=0.0)
    figure.supxlabel(quantity, fontsize="medium")
    return figure
