"""Means of items, and fairness among equals."""

import numpy as np
import pytest
from scipy.stats import chisquare

from albatross import Agent, simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.item_mean import ItemMean

pytestmark = pytest.mark.xdist_group("item-mean")


def test_every_item_is_tried_once_before_any_is_repeated() -> None:
    items = simulate(ItemMean(), Gaussian(n_users=5, n_items=30, rank=2), horizon=60, seed=0).items
    assert sorted(items[:30]) == list(range(30))
    assert len(set(items[30:])) < 30


def test_an_untried_item_is_expected_to_be_like_the_others() -> None:
    agent = Agent(ItemMean(), n_users=1, n_items=3)
    agent.replay([0, 0], [0, 1], [2.0, 5.0])
    choice = agent.select(0)
    assert (choice.item, choice.mean, choice.score) == (2, 3.5, np.inf)


@pytest.mark.parametrize("shrunk", [False, True])
def test_scores_are_the_closed_form(shrunk: bool) -> None:
    random = np.random.default_rng(0)
    users, items, rewards = random.integers(4, size=200), random.integers(9, size=200), random.normal(3.0, 2.0, 200)
    agent = Agent(ItemMean(shrunk=shrunk), n_users=4, n_items=10)
    agent.replay(users, items, rewards)
    plays, totals = np.bincount(items, minlength=10), np.bincount(items, rewards, minlength=10)
    agent.select(0)
    if shrunk:
        np.testing.assert_allclose(agent.slate.scores, (totals + rewards.mean()) / (plays + 1), rtol=1e-12)
        assert np.array_equal(agent.slate.scores, agent.slate.means)
    else:
        np.testing.assert_allclose(agent.slate.scores[:9], totals[:9] / plays[:9], rtol=1e-12)
        assert agent.slate.scores[9] == np.inf
    assert agent.select(1, [3, 8, 5]).item == max([3, 8, 5], key=lambda item: agent.slate.scores[[3, 8, 5].index(item)])


def test_equals_are_equally_likely() -> None:
    agent = Agent(ItemMean(), n_users=1, n_items=6, seed=3)
    agent.replay([0] * 6, range(6), [1.0, 4.0, 4.0, 2.0, 4.0, 4.0])
    choices = [agent.select(0) for _ in range(4000)]
    counts = np.bincount([choice.item for choice in choices], minlength=6)
    assert counts[[0, 3]].sum() == 0
    assert chisquare(counts[[1, 2, 4, 5]]).pvalue > 0.001
    assert {choice.propensity for choice in choices} == {0.25}
