"""The paper's four figures as numbers."""

from collections.abc import Sequence
from typing import NamedTuple

from albatross.studies.report.series import Chart, chart_of
from albatross.studies.reproducing.evidence import Contenders, Outcomes
from albatross.studies.reproducing.paper import BEYOND, RANK_DATASET, RANKS, REAL, RIVALS, SYNTHETIC, TITLES
from albatross.studies.trials import Result


class PaperFigure(NamedTuple):
    name: str
    charts: Sequence[Chart]
    quantity: str
    same_scale: bool
    """Whether the charts have the same unit."""
    caption: str


def paper_figures(outcomes: Outcomes, contenders: Contenders, horizon: int) -> list[PaperFigure]:
    """Every figure of the paper that the available data sets allow, with our policy as the first curve of the comparisons."""

    def charts(datasets: Sequence[str], quantity: str) -> list[Chart]:
        present = [dataset for dataset in datasets if (dataset, RIVALS[0], 5, horizon) in outcomes]
        return [chart_of(TITLES[dataset], {**ours(dataset), **theirs(dataset)}, quantity) for dataset in present]

    def ours(dataset: str) -> dict[str, dict[int, Result]]:
        found = contenders.get(dataset, {}).get(BEYOND)
        return {} if found is None else {f"{BEYOND} (ours)": dict(enumerate(found))}

    def theirs(dataset: str) -> dict[str, dict[int, Result]]:
        return {TITLES[rival]: dict(enumerate(outcomes[dataset, rival, 5, horizon])) for rival in RIVALS}

    ranks = [
        chart_of(TITLES[rival], {f"rank {rank}": dict(enumerate(outcomes[RANK_DATASET, rival, rank, horizon])) for rank in RANKS})
        for rival in ("pts", "nmf-bandit", "alb")
        if (RANK_DATASET, rival, RANKS[0], horizon) in outcomes
    ]
    regret, ndcg = "cumulative regret", "average cumulative NDCG@5"
    figures = [
        PaperFigure("figure-1", charts(SYNTHETIC, "regret"), regret, False, f"Figure 1: {regret} on the synthetic data sets"),
        PaperFigure("figure-2", charts(REAL, "regret"), regret, False, f"Figure 2: {regret} on the real data sets"),
        PaperFigure("figure-3", charts(REAL, "ndcg"), ndcg, True, f"Figure 3: {ndcg} on the real data sets"),
        PaperFigure("figure-4", ranks, regret, True, f"Figure 4: {regret} at different ranks, MovieLens 100K"),
    ]
    return [figure for figure in figures if figure.charts]
