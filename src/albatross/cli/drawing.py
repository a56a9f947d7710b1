"""Passes the numbers of studies to figures, which do not import each other.

Matplotlib is heavy, so what draws is imported when something is drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from albatross.core.errors import InvalidInput
from albatross.core.files import whole_file
from albatross.studies.comparison import Comparison
from albatross.studies.report.figures import PaperFigure
from albatross.studies.report.growth import AXES
from albatross.studies.report.protocols import FIGURE, PROTOCOL_TITLES
from albatross.studies.report.series import Chart, Tradeoff, comparison_series
from albatross.studies.reproducing.growth import Growth
from albatross.studies.reproducing.paper import BEYOND, TITLES
from albatross.studies.reproducing.protocols import Standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


def check_format(file: Path, option: str = "") -> None:
    """Refuse a name that does not end in a format that can be drawn."""
    if _kind(file) not in FORMATS:
        given = f"{option} is {file}" if option else str(file)
        raise InvalidInput(f"{given}; accepted: a name ending in .{', .'.join(FORMATS)}")


def save_comparison(comparison: Comparison, file: Path) -> None:
    """Cumulative regret over time, each policy a curve."""
    from albatross.figures.regret import Curve, draw_regret

    curves = [Curve(*series) for series in comparison_series(comparison)]
    _save(draw_regret(curves, title=comparison.environment.name), file)


def save_charts(charts: Sequence[Chart], file: Path) -> None:
    """Cumulative regret over time, each chart a panel."""
    _save(_draw_charts(charts, "cumulative regret", same_scale=False), file)


def save_tradeoffs(tradeoffs: Sequence[Tradeoff], parameter: str, file: Path) -> None:
    """Regret and time by the value of a parameter, each data set a column."""
    from albatross.figures.tradeoff import Band, Column, draw_tradeoff

    columns = [Column(each.title, each.values, Band(*each.regret), Band(*each.seconds)) for each in tradeoffs]
    _save(draw_tradeoff(columns, parameter), file)


def save_growth(grown: Sequence[Growth], file: Path) -> None:
    """Regret by size, each study a panel."""
    from albatross.figures.growth import GrowthPanel, Line, draw_growth

    panels = [
        GrowthPanel(AXES.get(each.axis, each.axis), [Line(law.policy, law.sizes, *law.regret) for law in each.laws]) for each in grown
    ]
    _save(draw_growth(panels), file)


def save_paper_figure(figure: PaperFigure, folder: Path) -> None:
    """A figure of the paper in every format."""
    drawn = _draw_charts(figure.charts, figure.quantity, same_scale=figure.same_scale)
    for kind in FORMATS:
        _save(drawn, folder / f"{figure.name}.{kind}")


def save_protocols(standings: Sequence[Standing], folder: Path) -> None:
    """Ours beside the best of the others in all protocols, in every format."""
    from albatross.figures.glance import GlancePanel, Ratio, draw_glance

    panels = [
        GlancePanel(title, [Ratio(TITLES[each.dataset], *map(float, each.ratio())) for each in standings if each.protocol == protocol])
        for protocol, title in PROTOCOL_TITLES.items()
        if any(each.protocol == protocol for each in standings)
    ]
    drawn = draw_glance(panels, f"regret of {BEYOND} as a multiple of the best of the others'")
    for kind in FORMATS:
        _save(drawn, folder / f"{FIGURE}.{kind}")


def _draw_charts(charts: Sequence[Chart], quantity: str, *, same_scale: bool) -> "Figure":
    from albatross.figures.panels import Panel, draw_panels
    from albatross.figures.regret import Curve

    panels = [Panel(chart.title, [Curve(*series) for series in chart.series]) for chart in charts]
    return draw_panels(panels, quantity, same_scale=same_scale)


def _save(figure: "Figure", file: Path) -> None:
    from albatross.figures.regret import save

    with whole_file(file) as partial:
        save(figure, partial, _kind(file))


def _kind(file: Path) -> str:
    return file.suffix[1:].lower()
