"""Regret stands above, time below."""

import numpy as np

from albatross.figures.tradeoff import Band, Column, draw_tradeoff


def test_each_column_shows_its_numbers() -> None:
    regret = Band(*np.array([[9.0, 5.0], [8.0, 4.0], [10.0, 6.0]]))
    seconds = Band(*np.array([[1.0, 2.0], [0.5, 1.5], [1.5, 2.5]]))
    figure = draw_tradeoff([Column("films", ["0.1", "1"], regret, seconds)], "ridge")
    above, below = figure.axes
    for axes, band in ((above, regret), (below, seconds)):
        (line,) = axes.get_lines()
        assert line.get_ydata().tolist() == band.mean.tolist()  # type: ignore[union-attr]
        corners = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
        assert (corners.min(), corners.max()) == (band.low.min(), band.high.max())
    assert (above.get_title(), below.get_xlabel()) == ("films", "ridge")
    assert (above.get_ylabel(), below.get_ylabel()) == ("cumulative regret", "seconds per trial")
    assert [label.get_text() for label in below.get_xticklabels()] == ["0.1", "1"]
