"""UCB1 over items against its closed form."""

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.item_ucb import ItemUCB

pytestmark = pytest.mark.xdist_group("item-ucb")


def test_every_item_is_tried_once_before_any_is_repeated() -> None:
    items = simulate(ItemUCB(), Gaussian(n_users=5, n_items=30, rank=2), horizon=30, seed=0).items
    assert sorted(items) == list(range(30))


def test_scores_are_the_closed_form() -> None:
    random = np.random.default_rng(0)
    items, rewards = random.integers(6, size=100), random.normal(size=100)
    agent = Agent(ItemUCB(scale=0.7), n_users=4, n_items=7)
    agent.replay(random.integers(4, size=100), items, rewards)
    plays, totals = np.bincount(items), np.bincount(items, rewards)
    assert agent.select(2).item == 6
    assert agent.slate.scores[6] == np.inf
    np.testing.assert_allclose(agent.slate.means, [*(totals / plays), rewards.mean()], rtol=1e-12)
    expected = totals / plays + 0.7 * np.sqrt(2 * np.log(100) / plays)
    np.testing.assert_allclose(agent.slate.scores[:6], expected, rtol=1e-12)
    assert agent.select(2, [4, 1, 5]).item == [4, 1, 5][expected[[4, 1, 5]].argmax()]
