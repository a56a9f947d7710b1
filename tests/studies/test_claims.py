"""Verdicts follow the intervals."""

import numpy as np
import pytest

from albatross.studies.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Evidence, Values, Verdict, judge
from albatross.studies.paper import RANKS, REAL, RIVALS, SYNTHETIC

SEEDS = np.arange(10.0)


def evidence(regret: dict[str, float], ndcg: dict[str, float] | None = None, noise: float = 1.0) -> Evidence:
    """The same figures on every data set and at every rank, with a spread over seeds that differs between policies."""
    rankings = ndcg or dict.fromkeys(RIVALS, 0.5)

    def read(values: dict[str, float], scale: float) -> "Reading":
        return Reading(values, scale)

    seconds = {"alb": 1.0, "pts": 1.0, "nmf-bandit": 3.5}
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


def test_data_sets_that_were_not_run_are_not_judged() -> None:
    partial = evidence(dict.fromkeys(RIVALS, 1.0))._replace(datasets=["gaussian"])
    assert {verdict.where for verdict in judge(partial)} <= {"gaussian", "all", "gaussian, 25,000 steps"}
    assert len(RANKS) == 3
