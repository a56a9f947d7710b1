"""The figure shows the numbers it is given."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex

from albatross.figures.regret import COLOURS, Curve, draw_regret, save


def curve(label: str, slope: float, n_seeds: int = 3) -> Curve:
    steps = np.array([10, 20, 30])
    seeds = slope * steps + np.arange(n_seeds)[:, np.newaxis]
    mean = seeds.mean(axis=0)
    return Curve(label, steps, seeds, mean, mean - 0.5, mean + 0.5)


def test_every_seed_the_mean_and_the_band_are_drawn() -> None:
    given = curve("alb", 2.0)
    (axes,) = draw_regret([given], "gaussian").axes
    *seeds, mean = axes.get_lines()
    assert mean.get_xdata().tolist() == [0, 10, 20, 30]  # type: ignore[union-attr]
    assert mean.get_ydata().tolist() == [0.0, *given.mean]  # type: ignore[union-attr]
    assert [line.get_ydata().tolist() for line in seeds] == [[0.0, *row] for row in given.seeds]  # type: ignore[union-attr]
    (band,) = axes.collections
    assert isinstance(band, PolyCollection)
    corners = band.get_paths()[0].vertices
    assert {(30.0, given.low[-1]), (30.0, given.high[-1])} <= {tuple(corner) for corner in np.asarray(corners).tolist()}


def test_axes_are_labelled_and_the_legend_follows_the_curves() -> None:
    (axes,) = draw_regret([curve("good", 1.0), curve("bad", 5.0), curve("fair", 2.0)], "films").axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["bad", "fair", "good"]
    assert [to_hex(line.get_color()).upper() for line in legend.get_lines()] == [COLOURS[1], COLOURS[2], COLOURS[0]]
    assert "steps" in axes.get_xlabel()
    assert "reward" in axes.get_ylabel()
    assert "films" in axes.get_title()


def test_one_seed_is_one_line() -> None:
    (axes,) = draw_regret([curve("alb", 2.0, n_seeds=1)], "gaussian").axes
    assert len(axes.get_lines()) == 1
    assert len(axes.collections) == 0


def test_no_two_of_many_curves_look_alike() -> None:
    (axes,) = draw_regret([curve(str(number), number, n_seeds=1) for number in range(20)], "many").axes
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 20


@pytest.mark.parametrize(("kind", "beginning"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_saved_twice_it_is_the_same_file(kind: str, beginning: bytes, tmp_path: Path) -> None:
    for name in ("first", "second"):
        save(draw_regret([curve("alb", 2.0)], "gaussian"), tmp_path / name, kind)
    first, second = ((tmp_path / name).read_bytes() for name in ("first", "second"))
    assert first.startswith(beginning)
    assert first == second
