"""Both axes are logarithmic, and a line for linear growth stands beside the policies."""

import numpy as np

from albatross.figures.growth import GrowthPanel, Line, draw_growth


def test_each_panel_shows_its_lines_and_linear_growth() -> None:
    sizes, mean = np.array([10.0, 100.0]), np.array([4.0, 20.0])
    figure = draw_growth(
        [GrowthPanel("users", [Line("alb", sizes, mean, mean - 1, mean + 1)]), GrowthPanel("items", [Line("pts", sizes, mean, mean, mean)])]
    )
    left, right = figure.axes
    assert (left.get_xlabel(), right.get_xlabel(), left.get_ylabel()) == ("users", "items", "pseudo-regret")
    assert (left.get_xscale(), left.get_yscale()) == ("log", "log")
    policy, linear = left.get_lines()
    assert np.asarray(policy.get_ydata()).tolist() == mean.tolist()
    low, high = np.asarray(linear.get_ydata())
    assert high / low == 10.0
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["alb", "linear"]  # type: ignore[union-attr]
