"""Cumulative regret over time: each seed as a thin line, their mean as a thick one, with a band for its 95 % interval."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from numpy.typing import NDArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind people can distinguish too; without yellow, which is too pale for a line."""

LINES = ("solid", "dashed", "dotted", "dashdot")
"""Used in turn after all colours are taken."""


class Curve(NamedTuple):
    """One policy's values after each of the steps."""

    label: str
    steps: NDArray[np.int64]
    seeds: NDArray[np.float64]
    """One row per seed."""
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def draw_regret(curves: Sequence[Curve], title: str) -> Figure:
    """The figure; the legend is in the order of the curves' ends."""
    figure = Figure(figsize=(7.0, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    draw_curves(axes, [_from_zero(curve) for curve in curves])
    n_seeds = max(len(curve.seeds) for curve in curves)
    axes.set_title(title if n_seeds == 1 else f"{title}: mean of {n_seeds} seeds with 95 % interval, and each seed")
    axes.set_xlabel("time (steps: one user shown one item)")
    axes.set_ylabel("cumulative regret (units of reward)")
    lines, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(curves)), key=lambda number: -curves[number].mean[-1])
    axes.legend([lines[number] for number in order], [labels[number] for number in order], frameon=False, loc="upper left")
    return figure


def draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw each curve in its own colour; the caller adds titles and legend."""
    for number, curve in enumerate(curves):
        colour, line = COLOURS[number % len(COLOURS)], LINES[number // len(COLOURS) % len(LINES)]
        if len(curve.seeds) > 1:
            axes.plot(curve.steps, curve.seeds.T, color=colour, linewidth=0.6, alpha=0.35)
            axes.fill_between(curve.steps, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(curve.steps, curve.mean, color=colour, linewidth=2.0, linestyle=line, label=curve.label)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axes.set_xlim(left=0, right=max(int(curve.steps[-1]) for curve in curves))
    axes.spines[["top", "right"]].set_visible(False)


def _from_zero(curve: Curve) -> Curve:
    """Add a zero before the first step."""
    arrays = {name: np.insert(getattr(curve, name), 0, 0, axis=-1) for name in curve._fields[1:]}
    return curve._replace(**arrays)


def save(figure: Figure, file: str | os.PathLike[str], kind: str) -> None:
    """Write a figure as png, svg or pdf; the same figure gives the same bytes."""
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context({"svg.hashsalt": "albatross"}):
        figure.savefig(file, format=kind, metadata=undated)
