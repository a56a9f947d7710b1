"""Regressions, ellipsoids and turns against NumPy, on forced choices."""

import numpy as np
import pytest

from albatross import Agent
from albatross.policies.beware import BeWARE

pytestmark = pytest.mark.xdist_group("beware")

USERS, ITEMS, RIDGE = 6, 9, 0.3


def regression(vectors: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and Gram matrix, the ridge once per rating."""
    gram = vectors.T @ vectors + RIDGE * max(len(rewards), 1) * np.eye(vectors.shape[1])
    return np.linalg.solve(gram, vectors.T @ rewards), gram


@pytest.mark.parametrize("uncertain", ["user", "item"])
def test_forced_choices_agree_with_numpy(uncertain: str) -> None:
    random = np.random.default_rng(0)
    agent = Agent(BeWARE(uncertain=uncertain, rank=3, ridge=RIDGE, exploration=0.7), USERS + 1, ITEMS + 1, seed=4)
    factors = [agent.state.users.factors.copy(), agent.state.items.factors.copy()]
    grams = {item: RIDGE * np.eye(3) for item in range(ITEMS + 1)}
    history: list[tuple[int, int, float]] = []
    turns = [0, 0]
    for _ in range(60):
        history.append((int(random.integers(USERS)), int(random.integers(ITEMS)), float(random.normal(2.0, 1.0))))
        agent.update(*history[-1])
        rows, rewards = [np.array([rating[side] for rating in history]) for side in (0, 1)], np.array([rating[2] for rating in history])
        met = [list(dict.fromkeys(side.tolist())) for side in rows]
        for by_turns in (False, True):
            for side in (0, 1):
                turns[side] = (turns[side] + 1) % len(met[side]) if by_turns else turns[side]
                row = int(met[side][turns[side]] if by_turns else history[-1][side])
                mine = rows[side] == row
                factors[side][row], gram = regression(factors[1 - side][rows[1 - side][mine]], rewards[mine])
                if side == 1:
                    grams[row] = gram
        np.testing.assert_allclose(agent.state.users.factors, factors[0], atol=1e-9)
        np.testing.assert_allclose(agent.state.items.factors, factors[1], atol=1e-9)
    for user in range(USERS + 1):
        mine = rows[0] == user
        center, gram = regression(factors[1][rows[1][mine]], rewards[mine])
        means = factors[1] @ center
        if uncertain == "user":
            widths = np.sqrt(np.einsum("ja,ab,jb->j", factors[1], np.linalg.inv(gram), factors[1]))
        else:
            widths = np.array([np.sqrt(center @ np.linalg.inv(grams[item]) @ center) for item in range(ITEMS + 1)])
        agent.select(user)
        np.testing.assert_allclose(agent.slate.means, means, atol=1e-9)
        np.testing.assert_allclose(agent.slate.scores, means + 0.7 * widths, atol=1e-8)
        assert agent.select(user, [3, 8, 1]).score == pytest.approx((means + 0.7 * widths)[[3, 8, 1]].max())


def test_ratings_of_zero_do_not_lose_an_item() -> None:
    agent = Agent(BeWARE(rank=2), 2, 3)
    before = agent.state.items.factors.copy()
    agent.replay([0, 0], [1, 2], [0.0, 0.0])
    assert np.array_equal(agent.state.items.factors, before)
