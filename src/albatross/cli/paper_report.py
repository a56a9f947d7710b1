"""The report of a reproduction: figures 1 to 4 of the paper, tables, verdicts."""

import csv
import datetime
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import albatross
from albatross.cli.document import Block, Grid, Heading, Paragraph, Picture
from albatross.core.streams import stream
from albatross.studies.claims import Verdict
from albatross.studies.evidence import Outcomes
from albatross.studies.paper import RANK_DATASET, RANKS, REAL, RIVALS, SYNTHETIC, TITLES, Tuned
from albatross.studies.showing import show_estimate, show_mean
from albatross.studies.statistics import interquartile_mean, mean_over_seeds, paired_difference, probability_of_improvement
from albatross.studies.trials import Result

if TYPE_CHECKING:
    from albatross.figures.panels import Panel

MOMENTS = (0.2, 0.4, 1.0)
"""Shares of the horizon at which regret is tabulated: 5k, 10k and 25k of 25,000."""


def draw_figures(outcomes: Outcomes, horizon: int, folder: Path) -> list[Picture]:
    """Every figure of the paper that the data sets at hand allow, as png, svg, pdf and as numbers."""
    from albatross.figures.panels import Panel, draw_panels  # Matplotlib is heavy
    from albatross.figures.regret import Curve, save

    def curve(label: str, results: Sequence[Result], name: str) -> Curve:
        seeds = np.array([getattr(result, name) for result in results])
        return Curve(label, results[0].checkpoints, seeds, *mean_over_seeds(seeds, stream(0, "bootstrap")))

    def panels(datasets: Sequence[str], name: str) -> list[Panel]:
        present = [dataset for dataset in datasets if (dataset, RIVALS[0], 5, horizon) in outcomes]
        return [
            Panel(TITLES[dataset], [curve(TITLES[rival], outcomes[dataset, rival, 5, horizon], name) for rival in RIVALS])
            for dataset in present
        ]

    ranks = [
        Panel(TITLES[rival], [curve(f"rank {rank}", outcomes[RANK_DATASET, rival, rank, horizon], "regret") for rank in RANKS])
        for rival in ("pts", "nmf-bandit", "alb")
        if (RANK_DATASET, rival, RANKS[0], horizon) in outcomes
    ]
    figures = [
        ("figure-1", panels(SYNTHETIC, "regret"), "cumulative regret", False, "Figure 1: cumulative regret on the synthetic data sets"),
        ("figure-2", panels(REAL, "regret"), "cumulative regret", False, "Figure 2: cumulative regret on the real data sets"),
        ("figure-3", panels(REAL, "ndcg"), "average cumulative NDCG@5", True, "Figure 3: average cumulative NDCG@5 on the real data sets"),
        ("figure-4", ranks, "cumulative regret", True, "Figure 4: cumulative regret at different ranks, MovieLens 100K"),
    ]
    pictures = []
    for name, drawn, quantity, same_scale, caption in figures:
        if not drawn:
            continue
        figure = draw_panels(drawn, quantity, same_scale=same_scale)
        for kind in ("png", "svg", "pdf"):
            save(figure, folder / f"{name}.{kind}", kind)
        _write_numbers(drawn, folder / f"{name}.csv")
        pictures.append(Picture(folder / f"{name}.svg", f"{caption}. Thin: each seed; thick: their mean, with a 95 % interval."))
    return pictures


def _write_numbers(panels: "Sequence[Panel]", path: Path) -> None:
    """What a figure shows, one row per point."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "curve", "step", "mean", "low", "high"])
        for panel in panels:
            for curve in panel.curves:
                for row in zip(curve.steps, curve.mean, curve.low, curve.high, strict=True):
                    writer.writerow([panel.title, curve.label, *row])


def write_report(
    title: str,
    outcomes: Outcomes,
    verdicts: Sequence[Verdict],
    tuned: Tuned,
    missing: dict[str, str],
    pictures: Sequence[Picture],
    horizon: int,
    n_seeds: int,
    full: bool,
) -> list[Block]:
    """The report, block by block."""
    command = f"albatross reproduce{' --full' if full else ''} --horizon {horizon} --seeds {n_seeds}"
    counts = {word: sum(verdict.word == word for verdict in verdicts) for word in ("reproduced", "not reproduced", "undecided")}
    blocks: list[Block] = [
        Heading(title, 1),
        Paragraph(
            f"Made by {command} with albatross {albatross.__version__} on {datetime.date.today().isoformat()} "
            f"({platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, Numba {version('numba')})."
        ),
        Paragraph(
            f"{horizon:,} steps per trial, {n_seeds} seeds, each with its own world and arrivals, the same for every policy. A random "
            "user arrives; on real data the choice is among the items that user has rated; an item may be shown again, as in the paper. "
            "Intervals are 95 %, by bootstrap over seeds; differences are paired by seed. A claim is reproduced, or not, only if the "
            "whole interval says so."
        ),
        Paragraph("Of the paper's claims, " + ", ".join(f"{count} are {word}" for word, count in counts.items()) + "."),
    ]
    blocks += [Paragraph(f"{TITLES[name]} is left out: {reason}") for name, reason in missing.items()]
    blocks += [Heading("Claims"), Grid(("claim", "where", "verdict", "measured"), [list(verdict) for verdict in verdicts])]
    blocks += [Heading("Figures"), *pictures]
    blocks += [Heading("Regret, NDCG and time"), _numbers(outcomes, horizon)]
    blocks += [Heading("ALB against each rival"), _comparisons(outcomes, horizon)]
    blocks += [Heading("Parameters"), _parameters(outcomes, tuned)]
    return blocks


def _numbers(outcomes: Outcomes, horizon: int) -> Grid:
    moments = [f"regret at {round(share * horizon):,}" for share in MOMENTS]
    rows = []
    for (dataset, policy, rank, steps), results in outcomes.items():
        if steps != horizon or rank != 5:
            continue
        row = [TITLES[dataset], TITLES[policy]]
        for share in MOMENTS:
            at = [result.regret_at(share * horizon) for result in results]
            row.append(show_mean(at))
        row.append(show_mean([result.ndcg[-1] for result in results], 4) if results[0].ndcg.size else "–")
        row.append(f"{np.mean([result.trivial for result in results]):.1%}" if results[0].ndcg.size else "–")
        row.append(f"{np.mean([result.seconds for result in results]):.2f}")
        rows.append(row)
    return Grid(("data set", "policy", *moments, "NDCG@5", "trivial steps", "seconds"), rows)


def _comparisons(outcomes: Outcomes, horizon: int) -> Grid:
    """Regret at the horizon: paired by seed, by the middle half of the seeds, and how likely ALB is to have less."""
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
