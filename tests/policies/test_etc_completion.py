"""It explores uniformly, fits once as NumPy does, and never learns again."""

import numpy as np
import pytest
from scipy.stats import chisquare

from albatross import Agent
from albatross.policies.etc_completion import SWEEPS, ETCCompletion

pytestmark = pytest.mark.xdist_group("etc-completion")

USERS, ITEMS, RIDGE = 6, 8, 0.1


def some_ratings() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    users, items = random.integers(USERS, size=60), random.integers(ITEMS, size=60)
    return users, items, random.normal(size=(USERS, 2))[users, items % 2] + random.normal(0.0, 0.1, 60)


def test_the_matrix_is_completed_once() -> None:
    users, items, rewards = some_ratings()
    agent = Agent(ETCCompletion(rank=2, ridge=RIDGE, exploration=60), USERS + 1, ITEMS + 1, seed=3)
    rows, factors = (users, items), [np.zeros((USERS + 1, 2)), agent.state.items.factors.copy()]
    agent.replay(users[:59], items[:59], rewards[:59])
    assert np.array_equal(agent.state.items.factors, factors[1])
    agent.update(int(users[59]), int(items[59]), float(rewards[59]))
    for _ in range(SWEEPS):
        for side in (0, 1):
            for row in np.unique(rows[side]):
                mine = rows[side] == row
                vectors = factors[1 - side][rows[1 - side][mine]]
                factors[side][row] = np.linalg.solve(vectors.T @ vectors + RIDGE * mine.sum() * np.eye(2), vectors.T @ rewards[mine])
    factors[1][ITEMS] = 0.0
    np.testing.assert_allclose(agent.state.users.factors, factors[0], atol=1e-9)
    np.testing.assert_allclose(agent.state.items.factors, factors[1], atol=1e-9)
    for user in range(USERS):
        assert agent.select(user).score == np.max(agent.slate.scores)
        np.testing.assert_allclose(agent.slate.scores, factors[1] @ factors[0][user], atol=1e-9)
    before = agent.state_id
    agent.replay(users, items, rewards + 5.0)
    assert agent.state_id == before


def test_exploration_is_uniform() -> None:
    agent = Agent(ETCCompletion(rank=2, exploration=100), USERS, ITEMS)
    agent.replay(*some_ratings())
    choices = [agent.select(1) for _ in range(2000)]
    assert chisquare(np.bincount([choice.item for choice in choices], minlength=ITEMS)).pvalue > 0.001
    assert {choice.propensity for choice in choices} == {1 / ITEMS}
