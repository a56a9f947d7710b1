"""The page's charts and their data inside a report that is one file."""

import base64
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.streams import stream
from albatross.studies.report.series import Chart
from albatross.studies.statistics import Estimate, mean_over_seeds

PAGE = files("albatross").joinpath("page")
START = "report.js"
SHEETS = ("vendor/uplot.css", "style.css", "report.css")
IMPORT = re.compile(r'from "\./([\w/]+\.js)"')
INSIDE = "albatross/"
"""Prefix of our module names: a single file has no paths, so an import map resolves them."""

QUANTITIES = ("regret", "pseudo_regret", "ndcg")
MOST_POINTS = 50
"""Points per curve: more are not visible on a screen."""
DIGITS = 5
"""Significant digits, for the same reason."""


def style() -> str:
    return "\n".join(PAGE.joinpath(sheet).read_text(encoding="utf-8") for sheet in SHEETS)


def embedded(figures: Sequence[tuple[str, Sequence[Chart]]]) -> str:
    """The scripts of the page, and the data of the figures, each with the quantity that is drawn first."""
    panels: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    """Index of a panel by the identity of its results: two figures of the same trials share one."""
    drawn = []
    for quantity, charts in figures:
        for chart in charts:
            key = hash((chart.title, *((name, id(result)) for name, by_seed in chart.results.items() for result in by_seed.values())))
            if key not in places:
                places[key] = len(panels)
                panels.append(panel_of(chart))
            drawn.append((quantity, chart.title, places[key]))
    by_figure = iter(drawn)
    told = [[next(by_figure) for _ in charts] for _, charts in figures]
    modules = {f"{INSIDE}{name}": f"data:text/javascript;base64,{_encoded(text)}" for name, text in _modules(START).items()}
    return (
        f'<script type="application/json" id="races">{_inside({"panels": panels, "figures": told})}</script>\n'
        f'<script type="importmap">{_inside({"imports": modules})}</script>\n'
        f'<script type="module">import "{INSIDE}{START}";</script>\n'
    )


def panel_of(chart: Chart) -> dict[str, Any]:
    """What can be drawn of a panel, as plain values: each recorded quantity, over all seeds and per seed."""
    first = next(iter(next(iter(chart.results.values())).values()))
    points = _points(first.checkpoints.size)
    seeds = sorted({seed for by_seed in chart.results.values() for seed in by_seed})
    return {
        "horizon": int(first.checkpoints[-1]),
        "steps": first.checkpoints[points].tolist(),
        "seeds": seeds,
        "policies": [
            {
                "label": name,
                "curves": {
                    quantity: _curve(by_seed, seeds, quantity, points)
                    for quantity in QUANTITIES
                    if all(getattr(result, quantity).size for result in by_seed.values())
                },
            }
            for name, by_seed in chart.results.items()
        ],
    }


def _curve(by_seed: Any, seeds: Sequence[int], quantity: str, points: NDArray[np.int64]) -> dict[str, Any]:
    values = {seed: getattr(result, quantity)[points] for seed, result in by_seed.items()}
    estimate = mean_over_seeds(list(values.values()), stream(0, "bootstrap"))
    whole = {name: _numbers(getattr(estimate, name)) for name in Estimate._fields}
    return {**whole, "seeds": [_numbers(values[seed]) if seed in values else None for seed in seeds]}


def _points(size: int) -> NDArray[np.int64]:
    """The drawn checkpoints: evenly spaced, including the last."""
    count = min(size, MOST_POINTS)
    return np.arange(1, count + 1) * size // count - 1


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.{DIGITS}g}") for value in values]


def _modules(name: str) -> dict[str, str]:
    """A module and everything it imports, by name, with imports that the map resolves."""
    found: dict[str, str] = {}
    wanted = [name]
    while wanted:
        module = wanted.pop()
        if module not in found:
            text = PAGE.joinpath(module).read_text(encoding="utf-8")
            wanted += IMPORT.findall(text)
            found[module] = IMPORT.sub(rf'from "{INSIDE}\1"', text)
    return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _inside(value: Any) -> str:
    """JSON that cannot end its script element, whatever a policy is called."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
