"""Verdicts follow the intervals."""

import numpy as np
import pytest

from albatross.studies.reproducing.claims import (
    CONTRADICTED,
    HISTORY,
    NDCG_MARGIN,
    NO_VERDICT,
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Evidence,
    Values,
    Verdict,
    judge,
)
from albatross.studies.reproducing.paper import RANKS, REAL, RIVALS, SYNTHETIC

SEEDS = np.arange(10.0)


TIMES = {"alb": 1.0, "pts": 1.0, "nmf-bandit": 3.5}


def evidence(
    regret: dict[str, float], ndcg: dict[str, float] | None = None, noise: float = 1.0, seconds: dict[str, float] = TIMES
) -> Evidence:
    """The same figures on every data set and at every rank, with a spread over seeds that differs between policies."""
    rankings = ndcg or dict.fromkeys(RIVALS, 0.5)

    def read(values: dict[str, float], scale: float) -> "Reading":
        return Reading(values, scale)

    return Evidence(
        SYNTHETIC + REAL, read(regret, noise), read(rankings, 1e-4), read(seconds, 1e-6), {25_000: np.full(10, 0.8) + SEEDS / 100}
    )


class Reading:
    def __init__(self, values: dict[str, float], scale: float) -> None:
        self.values, self.scale = values, scale

    def __call__(self, dataset: str, policy: str, rank: int) -> Values:
        random = np.random.default_rng([RIVALS.index(policy), rank])
        return self.values[policy] + self.scale * random.standard_normal(10)


def words(verdicts: list[Verdict], beginning: str) -> set[str]:
    found = {verdict.word for verdict in verdicts if verdict.claim.startswith(beginning)}
    assert found
    return found


@pytest.mark.parametrize(
    ("alb", "word"),
    [(50.0, REPRODUCED), (150.0, NOT_REPRODUCED)],
)
def test_a_clear_difference_decides(alb: float, word: str) -> None:
    verdicts = judge(evidence({"alb": alb, "pts": 100.0, "nmf-bandit": 120.0}))
    assert words(verdicts, "ALB has lower regret than PTS") == {word}
    assert words(verdicts, "ALB has lower regret than the better rival") == {word}
    assert words(verdicts, "PTS has lower regret than NMF-Bandit") == {REPRODUCED}


def test_a_difference_within_the_noise_is_undecided() -> None:
    verdicts = judge(evidence({"alb": 100.0, "pts": 100.0, "nmf-bandit": 100.0}, noise=10.0))
    assert words(verdicts, "ALB has lower regret than PTS") == {UNDECIDED}


@pytest.mark.parametrize(("margin", "word"), [(0.05, REPRODUCED), (0.01, NOT_REPRODUCED), (-0.1, NOT_REPRODUCED)])
def test_the_ndcg_margin_is_held_against_its_bound(margin: float, word: str) -> None:
    verdicts = judge(evidence(dict.fromkeys(RIVALS, 1.0), {"alb": 0.6 + margin, "pts": 0.6, "nmf-bandit": 0.5}))
    assert words(verdicts, "ALB's average NDCG@5 is at least") == {word}


def test_times_and_growth() -> None:
    verdicts = judge(evidence(dict.fromkeys(RIVALS, 1.0)))
    assert words(verdicts, "PTS takes about as long") == {REPRODUCED}
    assert words(verdicts, "NMF-Bandit takes three to four") == {REPRODUCED}
    assert words(verdicts, "ALB's regret grows") == {REPRODUCED}


@pytest.mark.parametrize(
    ("alb", "pts", "nmf", "word"),
    [(1.0, 1.9, 6.0, REPRODUCED), (1.9, 1.0, 6.0, REPRODUCED), (1.0, 1.9, 3.5, NOT_REPRODUCED), (1.9, 1.0, 12.0, NOT_REPRODUCED)],
)
def test_nmf_bandit_is_timed_against_the_slower_of_the_others(alb: float, pts: float, nmf: float, word: str) -> None:
    verdicts = judge(evidence(dict.fromkeys(RIVALS, 1.0), seconds={"alb": alb, "pts": pts, "nmf-bandit": nmf}))
    assert words(verdicts, "NMF-Bandit takes three to four") == {word}


class Given:
    """The same numbers everywhere, whatever the data set and the rank."""

    def __init__(self, alb: Values, pts: Values, nmf: Values) -> None:
        self.values = dict(zip(RIVALS, (alb, pts, nmf), strict=True))

    def __call__(self, dataset: str, policy: str, rank: int) -> Values:
        return self.values[policy]


@pytest.mark.parametrize("side", [-0.1, 0.1])
def test_no_word_rests_on_a_mean_alone(side: float) -> None:
    """An interval that holds the bound decides nothing, on whichever side of it the mean lies."""
    noise = np.random.default_rng(0).standard_normal(10)
    wide, nine, far = side + noise - noise.mean(), np.full(10, 9.0), np.full(10, 1e6)
    judged = Evidence(
        SYNTHETIC + REAL,
        regret=Given(nine + wide, nine, far),
        ndcg=Given(nine + NDCG_MARGIN + wide, nine, -far),
        seconds=Given(np.ones(10), np.ones(10), np.full(10, 3.0) + wide),
        exponents={25_000: 1.0 + wide},
    )
    for claim in (
        "ALB has lower regret than PTS",
        "ALB has lower regret than the better rival",
        "ALB's average NDCG@5 is at least",
        "NMF-Bandit takes three to four",
        "ALB's regret grows",
    ):
        assert words(judge(judged), claim) == {UNDECIDED}
    faster = judged._replace(seconds=Given(np.ones(10), np.full(10, 2.0) + wide, np.ones(10)))
    assert words(judge(faster), "PTS takes about as long") == {UNDECIDED}


@pytest.mark.parametrize(("n_seeds", "judged"), [(4, False), (5, True)])
def test_with_fewer_than_five_seeds_no_claim_is_judged(n_seeds: int, judged: bool) -> None:
    one, ten = np.full(n_seeds, 1.0), np.full(n_seeds, 10.0)
    sure = Given(one, ten, ten)
    verdicts = judge(Evidence(SYNTHETIC + REAL, sure, sure, sure, {25_000: one}))
    assert ({verdict.word for verdict in verdicts} == {NO_VERDICT}) is not judged
    assert verdicts[0].measured == "difference -9 [-9, -9]", "the numbers are there all the same"


def test_data_sets_that_were_not_run_are_not_judged() -> None:
    partial = evidence(dict.fromkeys(RIVALS, 1.0))._replace(datasets=["gaussian"])
    assert {verdict.where for verdict in judge(partial)} <= {"gaussian", "all", "gaussian, 25,000 steps"}
    assert len(RANKS) == 3


def test_what_the_paper_says_of_others_is_judged_by_references() -> None:
    (verdict,) = HISTORY
    assert verdict.word == CONTRADICTED
    for reference in ("1407.2806", "PMLR 39:315"):
        assert reference in verdict.measured
