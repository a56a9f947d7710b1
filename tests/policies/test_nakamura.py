"""The bonus is the closed form of counts, and means are those of the fitted vectors."""

import numpy as np
import pytest

from albatross import Agent
from albatross.policies.nakamura import Nakamura

pytestmark = pytest.mark.xdist_group("nakamura")

USERS, ITEMS = 5, 7


def test_scores_are_the_closed_form() -> None:
    random = np.random.default_rng(0)
    users, items, rewards = random.integers(USERS, size=70), random.integers(ITEMS, size=70), random.normal(3.0, 1.0, 70)
    agent = Agent(Nakamura(rank=2, ridge=0.2, exploration=0.4), USERS + 1, ITEMS + 1)
    agent.replay(users, items, rewards)
    factors, plays = agent.state.items.factors, np.bincount(items, minlength=ITEMS + 1)
    for user in range(USERS + 1):
        mine = users == user
        vectors = factors[items[mine]]
        center = np.linalg.solve(vectors.T @ vectors + 0.2 * max(mine.sum(), 1) * np.eye(2), vectors.T @ rewards[mine])
        bonus = 0.4 * (np.sqrt(np.log(71) / max(mine.sum(), 0.5)) + np.sqrt(np.log(71) / np.maximum(plays, 0.5)))
        agent.select(user)
        np.testing.assert_allclose(agent.slate.means, factors @ center, atol=1e-9)
        np.testing.assert_allclose(agent.slate.scores, factors @ center + bonus, atol=1e-9)
        agent.select(user, [4, 7])
        np.testing.assert_allclose(agent.slate.scores[:2], (factors @ center + bonus)[[4, 7]], atol=1e-9)


def test_the_fit_settles_where_both_sides_are_regressions() -> None:
    random = np.random.default_rng(1)
    means = 3.0 + random.normal(size=(USERS, 1)) @ random.normal(size=(1, ITEMS))
    agent = Agent(Nakamura(rank=2, ridge=0.01), USERS, ITEMS)
    users, items = random.integers(USERS, size=2000), random.integers(ITEMS, size=2000)
    agent.replay(users, items, means[users, items])
    fitted = agent.state.users.factors @ agent.state.items.factors.T
    assert np.sqrt(((fitted - means) ** 2).mean()) < 0.1 * means.std()
