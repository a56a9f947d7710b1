"""The report of a reproduction: verdicts, figures 1 to 4 of the paper, tables; and policies that are not in the paper."""

import datetime
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from albatross.core.files import whole_file
from albatross.core.streams import stream
from albatross.core.version import VERSION
from albatross.studies.report.beyond import beyond_blocks
from albatross.studies.report.document import Block, Grid, Heading, Paragraph, Picture, as_html, as_markdown
from albatross.studies.report.figures import PaperFigure, paper_figures
from albatross.studies.report.protocols import FIGURE, protocol_blocks
from albatross.studies.report.quantities import moments, show_ndcg, show_regret, show_seconds
from albatross.studies.report.series import write_series
from albatross.studies.reproducing.claims import HISTORY, NOT_REPRODUCED, REPRODUCED, UNDECIDED
from albatross.studies.reproducing.evidence import Outcomes
from albatross.studies.reproducing.paper import TITLES, Tuned
from albatross.studies.reproducing.protocols import Standing
from albatross.studies.reproducing.reproduction import Reproduction
from albatross.studies.showing import NOTHING, interval_note, show_estimate
from albatross.studies.statistics import interquartile_mean, paired_difference, probability_of_improvement

TITLE = "Alternating Linear Bandits, reproduced"

Draw = Callable[[PaperFigure, Path], None]
"""Draws a figure into a folder, at least as an SVG file of its name, which the report shows."""
DrawStandings = Callable[[Sequence[Standing], Path], None]
"""Draws the figure of all protocols, in the same way."""


def write_report(reproduction: Reproduction, folder: Path, draw: Draw, draw_standings: DrawStandings) -> Path:
    """Write the report and its figures, as pictures and as numbers. Returns the page to open."""
    pictures = []
    for figure in paper_figures(reproduction.outcomes, reproduction.contenders, reproduction.horizon):
        draw(figure, folder)
        write_series(figure.charts, folder / f"{figure.name}.csv")
        caption = f"{figure.caption}. Thin: each seed; thick: their mean, with a 95 % interval."
        drawn_first = "ndcg" if "NDCG" in figure.quantity else "regret"
        pictures.append(Picture(folder / f"{figure.name}.svg", caption, figure.charts, drawn_first))
    draw_standings(reproduction.standings, folder)
    glance = Picture(
        folder / f"{FIGURE}.svg",
        "All protocols at a glance. Left of the line mean-field has less regret. Coloured: all of the 95 % interval is on one side.",
    )
    blocks = [
        *paper_blocks(reproduction, pictures),
        *beyond_blocks(reproduction.contenders, reproduction.horizon),
        *protocol_blocks(reproduction.standings, glance),
    ]
    page = folder / "report.html"
    for file, text in ((folder / "report.md", as_markdown(blocks)), (page, as_html(TITLE, blocks))):
        with whole_file(file) as partial:
            partial.write_text(text, encoding="utf-8")
    return page


def paper_blocks(reproduction: Reproduction, pictures: Sequence[Picture]) -> list[Block]:
    """The blocks of the report about the paper itself."""
    horizon, n_seeds, verdicts, outcomes = reproduction.horizon, reproduction.n_seeds, reproduction.verdicts, reproduction.outcomes
    choices = f"{' --full' if reproduction.full else ''}{'' if reproduction.real else ' --synthetic'}"
    command = f"albatross reproduce{choices} --horizon {horizon} --seeds {n_seeds}"
    counts = {word: sum(verdict.word == word for verdict in verdicts) for word in (REPRODUCED, NOT_REPRODUCED, UNDECIDED)}
    return [
        Heading(TITLE, 1),
        Paragraph(
            f"Made by {command} with albatross {VERSION} on {datetime.date.today().isoformat()} "
            f"({platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, Numba {version('numba')})."
        ),
        Paragraph(
            f"{horizon:,} steps per trial, {n_seeds} seeds, each with its own world and arrivals, the same for every policy. A random "
            "user arrives; on real data the choice is among the items that user has rated; an item may be shown again, as in the paper. "
            f"{_intervals(n_seeds)}; differences are paired by seed. A claim is reproduced, or not, only if the whole interval says so."
        ),
        Paragraph(
            "No claim is judged: there are too few seeds. The numbers stand without a verdict."
            if interval_note(n_seeds)
            else "Of the paper's claims, " + ", ".join(f"{count} are {word}" for word, count in counts.items()) + "."
        ),
        *(Paragraph(f"{TITLES[name]} is left out: {reason}") for name, reason in reproduction.missing.items()),
        Heading("Claims"),
        Grid(("claim", "where", "verdict", "measured"), [list(verdict) for verdict in verdicts]),
        Heading("History"),
        Grid(("claim", "where", "verdict", "references"), [list(verdict) for verdict in HISTORY]),
        Heading("Figures"),
        *pictures,
        Heading("Regret, NDCG and time"),
        _numbers(outcomes, horizon),
        Heading("ALB against each rival"),
        _comparisons(outcomes, horizon),
        Heading("Parameters"),
        _parameters(outcomes, reproduction.tuned),
    ]


def _intervals(n_seeds: int) -> str:
    note = interval_note(n_seeds)
    return f"Intervals are 95 % ({note})" if note else "Intervals are 95 %, by bootstrap over seeds"


def _numbers(outcomes: Outcomes, horizon: int) -> Grid:
    rows = []
    for (dataset, policy, rank, steps), results in outcomes.items():
        if steps != horizon or rank != 5:
            continue
        trivial = f"{np.mean([result.trivial for result in results]):.1%}" if results[0].ndcg.size else NOTHING
        measured = [*show_regret(results, horizon), show_ndcg(results), trivial, show_seconds(results)]
        rows.append([TITLES[dataset], TITLES[policy], *measured])
    return Grid(("data set", "policy", *moments("regret", horizon), "NDCG@5", "trivial steps", "seconds"), rows)


def _comparisons(outcomes: Outcomes, horizon: int) -> Grid:
    """Regret at the horizon: paired difference, interquartile mean, and the probability that ALB has less."""
    rows = []
    for dataset, policy, rank, steps in outcomes:
        if policy == "alb" or steps != horizon or rank != 5:
            continue
        alb, rival = ([result.regret[-1] for result in outcomes[dataset, name, 5, horizon]] for name in ("alb", policy))
        random = stream(0, "bootstrap")
        estimates = [paired_difference(alb, rival, random), interquartile_mean([alb], random), interquartile_mean([rival], random)]
        chance = probability_of_improvement(alb, rival, random)
        rows.append([TITLES[dataset], TITLES[policy], *(show_estimate(estimate) for estimate in estimates), show_estimate(chance, 2)])
    headings = ("mean difference, paired", "interquartile mean of ALB", "of the rival", "probability that ALB has less")
    return Grid(("data set", "rival", *headings), rows)


def _parameters(outcomes: Outcomes, tuned: Tuned) -> Grid:
    present = {dataset for dataset, *_ in outcomes}
    rows = [
        [TITLES[dataset], TITLES[policy], ", ".join(f"{key} = {value}" for key, value in parameters.items())]
        for dataset, by_policy in tuned.items()
        if dataset in present
        for policy, parameters in by_policy.items()
    ]
    return Grid(("data set", "policy", "parameters"), rows)
