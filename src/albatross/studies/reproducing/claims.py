"""The claims of the paper, and the verdict of the trials: reproduced, not reproduced, or undecided.

Every verdict rests on an interval: a claim is reproduced if the whole 95 % interval agrees with it, not reproduced if the whole
interval contradicts it, and undecided in between. With fewer than five seeds no claim is judged.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.streams import stream
from albatross.studies.reproducing.paper import RANK_DATASET, RANKS, REAL, RIVALS, SYNTHETIC, TITLES
from albatross.studies.showing import show_estimate
from albatross.studies.statistics import FEWEST, Estimate, mean_over_seeds

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"
NO_VERDICT = "no verdict"
"""There are too few seeds for another verdict."""
CONTRADICTED = "contradicted"
"""For statements of the paper about other papers: an earlier paper contradicts it."""

ALB, PTS, NMF = RIVALS
NDCG_MARGIN = 0.03
ALMOST_ALL = 5
"""Of six data sets."""
A_FEW_MINUTES = 600.0
"""Seconds."""

Values = NDArray[np.float64]
Read = Callable[[str, str, int], Values]
"""From data set, policy and rank to one number per seed."""


class Evidence(NamedTuple):
    """The data that claims are judged by. Data sets that were not run are missing from `datasets`."""

    datasets: Sequence[str]
    regret: Read
    """Cumulative regret at the horizon."""
    ndcg: Read
    """Average cumulative NDCG at the horizon."""
    seconds: Read
    exponents: dict[int, Values]
    """Growth of ALB's regret with time on Gaussian data, per horizon and seed: regret ~ t^exponent."""


class Verdict(NamedTuple):
    claim: str
    where: str
    word: str
    measured: str
    """The numbers behind the verdict."""


HISTORY = (
    Verdict(
        "ALB is the first online matrix factorization in a UCB-type bandit framework without side information",
        "the literature",
        CONTRADICTED,
        "Mary, Gaudel and Preux, Bandits Warm-up Cold Recommender Systems, 2014 (arXiv 1407.2806): confidence ellipsoids of users, or of "
        "items, on a factorization kept by alternating least squares, from ratings alone (here: beware). Nakamura, A UCB-Like Strategy of "
        "Collaborative Filtering, ACML 2014 (PMLR 39:315–329): a UCB-like bonus on a factorization, from ratings alone (here: nakamura).",
    ),
)
"""Claims that no trial can judge. New in ALB is how the two sides alternate: the optimistic vector of the user, not the mean, enters
the regression of the item, and earlier ratings count with the user's current vector."""


def judge(evidence: Evidence) -> list[Verdict]:
    """Every claim that the available data sets can judge; with too few seeds, only the numbers."""
    verdicts = [
        *_order(evidence),
        *_rankings(evidence),
        *_ranks(evidence),
        *_times(evidence),
        *_growth(evidence),
    ]
    if len(evidence.seconds(evidence.datasets[0], ALB, 5)) < FEWEST:
        return [verdict._replace(word=NO_VERDICT) for verdict in verdicts]
    return verdicts


def _order(evidence: Evidence) -> Iterator[Verdict]:
    for rival in (PTS, NMF):
        for dataset in _known(evidence, SYNTHETIC + REAL):
            difference = _estimate(evidence.regret(dataset, ALB, 5) - evidence.regret(dataset, rival, 5))
            claim = f"ALB has lower regret than {TITLES[rival]}"
            yield Verdict(claim, dataset, _negative(difference), f"difference {show_estimate(difference)}")
    words = []
    for dataset in _known(evidence, SYNTHETIC + REAL):
        difference = _estimate(evidence.regret(dataset, PTS, 5) - evidence.regret(dataset, NMF, 5))
        words.append(_negative(difference))
    if len(words) == len(SYNTHETIC + REAL):
        word = UNDECIDED
        if words.count(REPRODUCED) >= ALMOST_ALL:
            word = REPRODUCED
        elif words.count(NOT_REPRODUCED) > len(words) - ALMOST_ALL:
            word = NOT_REPRODUCED
        counts = ", ".join(f"{words.count(word)} {word}" for word in (REPRODUCED, NOT_REPRODUCED, UNDECIDED))
        yield Verdict("PTS has lower regret than NMF-Bandit in almost all experiments", "all six", word, f"by data set: {counts}")


def _rankings(evidence: Evidence) -> Iterator[Verdict]:
    margins = {dataset: _margin(evidence, dataset) for dataset in _known(evidence, REAL)}
    for dataset, margin in margins.items():
        if dataset != "book-crossing":
            estimate = _estimate(margin)
            claim = f"ALB's average NDCG@5 is at least {NDCG_MARGIN} above the better rival's"
            yield Verdict(claim, dataset, _at_least(estimate, NDCG_MARGIN), f"margin {show_estimate(estimate, 4)}")
    if len(margins) == len(REAL):
        gaps = {dataset: _gap(evidence, dataset) for dataset in REAL}
        for dataset in REAL[1:]:
            difference = _estimate(gaps["book-crossing"] - gaps[dataset])
            claim = "NDCG differs less between the policies on Book-Crossing"
            yield Verdict(claim, f"than on {dataset}", _negative(difference), f"difference {show_estimate(difference, 4)}")


def _ranks(evidence: Evidence) -> Iterator[Verdict]:
    if RANK_DATASET not in evidence.datasets:
        return
    regrets = {rival: {rank: evidence.regret(RANK_DATASET, rival, rank) for rank in RANKS} for rival in RIVALS}
    low, high = min(RANKS), max(RANKS)
    spreads = {rival: _relative_spread(list(by_rank.values())) for rival, by_rank in regrets.items()}
    for rival in (PTS, NMF):
        difference = _estimate(spreads[ALB] - spreads[rival])
        claim = f"ALB's regret varies less with rank than {TITLES[rival]}'s: (max − min) / mean"
        yield Verdict(claim, RANK_DATASET, _negative(difference), f"difference {show_estimate(difference, 3)}")
    shrinking = _estimate(regrets[PTS][low] - regrets[PTS][high])
    claim = f"PTS is better at rank {low} than at rank {high}"
    yield Verdict(claim, RANK_DATASET, _negative(shrinking), f"difference {show_estimate(shrinking)}")
    growing = _estimate(regrets[NMF][high] - regrets[NMF][low])
    claim = f"NMF-Bandit is better at rank {high} than at rank {low}"
    yield Verdict(claim, RANK_DATASET, _negative(growing), f"difference {show_estimate(growing)}")
    for rank in RANKS:
        better = np.minimum(regrets[PTS][rank], regrets[NMF][rank])
        difference = _estimate(regrets[ALB][rank] - better)
        claim = "ALB has lower regret than the better rival at every rank"
        yield Verdict(claim, f"{RANK_DATASET}, rank {rank}", _negative(difference), f"difference {show_estimate(difference)}")


def _times(evidence: Evidence) -> Iterator[Verdict]:
    known = _known(evidence, SYNTHETIC + REAL)
    for dataset in known:
        ratio = _estimate(evidence.seconds(dataset, PTS, 5) / evidence.seconds(dataset, ALB, 5))
        claim = "PTS takes about as long as ALB (half to twice)"
        yield Verdict(claim, dataset, _between(ratio, 0.5, 2.0), f"ratio {show_estimate(ratio, 2)}")
    for dataset in known:
        alb, pts, nmf = (evidence.seconds(dataset, rival, 5) for rival in RIVALS)
        ratio = _estimate(nmf / np.maximum(alb, pts))
        claim = "NMF-Bandit takes three to four times as long as the slower of ALB and PTS"
        yield Verdict(claim, dataset, _between(ratio, 3.0, 4.0), f"ratio {show_estimate(ratio, 2)}")
    slowest = max(float(evidence.seconds(dataset, rival, 5).max()) for dataset in evidence.datasets for rival in (ALB, PTS))
    word = REPRODUCED if slowest < A_FEW_MINUTES else NOT_REPRODUCED
    yield Verdict("A trial of ALB or PTS takes a few minutes at most", "all", word, f"the longest took {slowest:.2g} s")


def _growth(evidence: Evidence) -> Iterator[Verdict]:
    for horizon, values in evidence.exponents.items():
        estimate = _estimate(values)
        claim = "ALB's regret grows more slowly than time: as t to the power of less than 1"
        yield Verdict(claim, f"gaussian, {horizon:,} steps", _negative(estimate, bound=1.0), f"exponent {show_estimate(estimate, 3)}")


def _known(evidence: Evidence, datasets: Sequence[str]) -> list[str]:
    return [dataset for dataset in datasets if dataset in evidence.datasets]


def _margin(evidence: Evidence, dataset: str) -> Values:
    return evidence.ndcg(dataset, ALB, 5) - np.maximum(evidence.ndcg(dataset, PTS, 5), evidence.ndcg(dataset, NMF, 5))


def _gap(evidence: Evidence, dataset: str) -> Values:
    values = np.array([evidence.ndcg(dataset, rival, 5) for rival in RIVALS])
    return np.asarray(values.max(axis=0) - values.min(axis=0))


def _relative_spread(by_rank: list[Values]) -> Values:
    values = np.array(by_rank)
    return np.asarray((values.max(axis=0) - values.min(axis=0)) / values.mean(axis=0))


def _estimate(values: Values) -> Estimate:
    return mean_over_seeds(values, stream(0, "claims"))


def _negative(estimate: Estimate, bound: float = 0.0) -> str:
    return REPRODUCED if estimate.high < bound else NOT_REPRODUCED if estimate.low > bound else UNDECIDED


def _at_least(estimate: Estimate, bound: float) -> str:
    return REPRODUCED if estimate.low >= bound else NOT_REPRODUCED if estimate.high < bound else UNDECIDED


def _between(estimate: Estimate, low: float, high: float) -> str:
    if estimate.low >= low and estimate.high <= high:
        return REPRODUCED
    return NOT_REPRODUCED if estimate.high < low or estimate.low > high else UNDECIDED
