"""Random choice is fair, and reports its probabilities."""

import numpy as np
import pytest
from scipy.stats import chisquare

from albatross import Agent
from albatross.policies.random import Random

pytestmark = pytest.mark.xdist_group("random")


def test_every_candidate_is_as_likely_as_it_says() -> None:
    agent = Agent(Random(), n_users=1, n_items=9, seed=3)
    for candidates in (None, [2, 5, 7]):
        offered = range(9) if candidates is None else candidates
        choices = [agent.select(0, candidates) for _ in range(2000)]
        assert chisquare(np.bincount([choice.item for choice in choices])[list(offered)]).pvalue > 0.001
        assert {choice.propensity for choice in choices} == {1.0 / len(offered)}
