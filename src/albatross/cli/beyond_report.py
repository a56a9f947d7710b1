"""The last section of a reproduction: policies the paper does not have, never mixed with its claims."""

from collections.abc import Sequence

import numpy as np

from albatross.cli.document import Block, Grid, Heading, Paragraph
from albatross.cli.paper_report import MOMENTS
from albatross.core.streams import stream
from albatross.studies.evidence import Outcomes
from albatross.studies.journal import Journal
from albatross.studies.paper import BEYOND, RIVALS, TITLES
from albatross.studies.plan import Study
from albatross.studies.showing import show_estimate, show_mean
from albatross.studies.statistics import paired_difference
from albatross.studies.trials import Result

Results = dict[str, dict[str, list[Result]]]
"""By data set and policy, in the order of the seeds."""


def beyond_results(studies: Sequence[Study], journal: Journal, outcomes: Outcomes, horizon: int) -> Results:
    """Everybody who took part, the paper's three among them."""
    results: Results = {}
    for study in studies:
        for trial in study.trials():
            results.setdefault(trial.dataset, {}).setdefault(trial.policy.policy_name(), []).append(journal[trial])
    for dataset, by_policy in results.items():
        by_policy |= {rival: outcomes[dataset, rival, 5, horizon] for rival in RIVALS}
    return results


def beyond_blocks(results: Results, horizon: int) -> list[Block]:
    said_first = (
        f"{BEYOND} with its defaults everywhere, against the paper's policies tuned for each data set and simple ones with their defaults. "
        "The difference is paired by seed, against whoever else has the lowest mean regret at that time; below zero, "
        f"{BEYOND} has less. NDCG is measured on the real data sets."
    )
    return [Heading("Beyond the paper"), Paragraph(said_first), _differences(results, horizon), _table(results, horizon)]


def _differences(results: Results, horizon: int) -> Grid:
    rows = []
    for dataset, by_policy in results.items():
        row = [TITLES[dataset]]
        for share in MOMENTS:
            regret = {policy: _regret(found, share * horizon) for policy, found in by_policy.items()}
            best = min((policy for policy in regret if policy != BEYOND), key=lambda policy: np.mean(regret[policy]))
            difference = paired_difference(regret[BEYOND], regret[best], stream(0, "bootstrap"))
            row.append(f"{show_estimate(difference)} against {TITLES.get(best, best)}")
        rows.append(row)
    return Grid(("data set", *(f"difference at {round(share * horizon):,}" for share in MOMENTS)), rows)


def _table(results: Results, horizon: int) -> Grid:
    rows = []
    for dataset, by_policy in results.items():
        for policy, found in by_policy.items():
            moments = [show_mean(_regret(found, share * horizon)) for share in MOMENTS]
            ndcg = "–"
            if found[0].ndcg.size:
                ndcg = show_mean([result.ndcg[-1] for result in found], 4)
            rows.append(
                [TITLES[dataset], TITLES.get(policy, policy), *moments, ndcg, f"{np.mean([result.seconds for result in found]):.2f}"]
            )
    return Grid(("data set", "policy", *(f"regret at {round(share * horizon):,}" for share in MOMENTS), "NDCG@5", "seconds"), rows)


def _regret(results: Sequence[Result], step: float) -> list[float]:
    return [result.regret_at(step) for result in results]
