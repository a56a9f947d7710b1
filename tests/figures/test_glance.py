"""Ahead, level and behind are shown by place and by colour."""

import numpy as np

from albatross.figures.glance import AHEAD, BEHIND, LEVEL, GlancePanel, Ratio, draw_glance


def test_each_dot_stands_in_its_row_in_the_colour_of_its_interval() -> None:
    ratios = [Ratio("films", 0.5, 0.4, 0.6), Ratio("jokes", 1.0, 0.9, 1.1), Ratio("books", 1.3, 1.2, 1.4)]
    figure = draw_glance([GlancePanel("Repeats", ratios), GlancePanel("Clicks", ratios[2:])], "ratio")
    first, second = figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["films", "jokes", "books"]
    assert (first.get_title(), second.get_title()) == ("Repeats", "Clicks")
    line, *marks = first.get_lines()
    assert np.asarray(line.get_xdata()).tolist() == [1.0, 1.0]
    for place, (ratio, colour) in enumerate(zip(ratios, (AHEAD, LEVEL, BEHIND), strict=True)):
        interval, dot = marks[2 * place : 2 * place + 2]
        assert np.asarray(interval.get_xdata()).tolist() == [ratio.low, ratio.high]
        assert (np.asarray(dot.get_xdata()).tolist(), np.asarray(dot.get_ydata()).tolist()) == ([ratio.mean], [place])
        assert {interval.get_color(), dot.get_color()} == {colour}
    assert np.asarray(second.get_lines()[-1].get_ydata()).tolist() == [2], "a row is the same data set in every panel"
