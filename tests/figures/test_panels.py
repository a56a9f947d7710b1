"""Panels show the numbers they are given."""

import numpy as np

from albatross.figures.panels import Panel, draw_panels
from albatross.figures.regret import Curve


def curve(label: str, slope: float) -> Curve:
    steps = np.array([10, 20])
    seeds = slope * steps + np.arange(2)[:, np.newaxis]
    return Curve(label, steps, seeds, seeds.mean(axis=0), seeds.min(axis=0), seeds.max(axis=0))


def test_each_panel_has_its_curves() -> None:
    panels = [Panel("one", [curve("alb", 1.0), curve("pts", 2.0)]), Panel("two", [curve("alb", 30.0)])]
    figure = draw_panels(panels, "cumulative regret", same_scale=False)
    for axes, panel in zip(figure.axes, panels, strict=True):
        assert axes.get_title() == panel.title
        means = [line.get_ydata().tolist() for line in axes.get_lines() if line.get_label() in ("alb", "pts")]  # type: ignore[union-attr]
        assert means == [each.mean.tolist() for each in panel.curves]
    assert figure.axes[0].get_ylabel() == "cumulative regret"


def test_one_scale_is_one_scale() -> None:
    panels = [Panel("one", [curve("alb", 1.0)]), Panel("two", [curve("alb", 30.0)])]
    shared, own = (draw_panels(panels, "regret", same_scale=same).axes for same in (True, False))
    assert shared[0].get_ylim() == shared[1].get_ylim()
    assert own[0].get_ylim() != own[1].get_ylim()
