"""The last section of a reproduction: policies that are not in the paper, kept apart from its claims."""

import numpy as np

from albatross.core.streams import stream
from albatross.studies.report.document import Block, Grid, Heading, Paragraph
from albatross.studies.report.quantities import MOMENTS, moments, regret_at, show_ndcg, show_regret, show_seconds
from albatross.studies.reproducing.evidence import Contenders
from albatross.studies.reproducing.paper import BEYOND, TITLES
from albatross.studies.showing import show_estimate
from albatross.studies.statistics import paired_difference


def beyond_blocks(contenders: Contenders, horizon: int) -> list[Block]:
    said_first = (
        f"{BEYOND} with its defaults everywhere, against the paper's policies tuned for each data set and simple ones with their defaults. "
        "The difference is paired by seed, against the other policy with the lowest mean regret at that step; below zero, "
        f"{BEYOND} has less. NDCG is measured on the real data sets."
    )
    return [Heading("Beyond the paper"), Paragraph(said_first), _differences(contenders, horizon), _table(contenders, horizon)]


def _differences(contenders: Contenders, horizon: int) -> Grid:
    rows = []
    for dataset, by_policy in contenders.items():
        row = [TITLES[dataset]]
        for share in MOMENTS:
            regret = {policy: regret_at(results, share * horizon) for policy, results in by_policy.items()}
            best = min((policy for policy in regret if policy != BEYOND), key=lambda policy: np.mean(regret[policy]))
            difference = paired_difference(regret[BEYOND], regret[best], stream(0, "bootstrap"))
            row.append(f"{show_estimate(difference)} against {TITLES.get(best, best)}")
        rows.append(row)
    return Grid(("data set", *moments("difference", horizon)), rows)


def _table(contenders: Contenders, horizon: int) -> Grid:
    rows = [
        [TITLES[dataset], TITLES.get(policy, policy), *show_regret(results, horizon), show_ndcg(results), show_seconds(results)]
        for dataset, by_policy in contenders.items()
        for policy, results in by_policy.items()
    ]
    return Grid(("data set", "policy", *moments("regret", horizon), "NDCG@5", "seconds"), rows)
