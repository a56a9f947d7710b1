"""Draws are Beta, neighbours are those with the largest draws, and scores are the sums of the docstring."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, chisquare, kstest

from albatross import Agent
from albatross.kernels.likes import draw_share
from albatross.policies.knn_bandit import KNNBandit

pytestmark = pytest.mark.xdist_group("knn-bandit")

USERS, ITEMS = 7, 9


def some_ratings(n_ratings: int = 120) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    random = np.random.default_rng(2)
    users, items = random.integers(USERS, size=n_ratings), random.integers(ITEMS, size=n_ratings)
    return users, items, (1.0 + (users + items + random.integers(3, size=n_ratings)) % 5).astype(np.float64)


def likes_of(users: NDArray[np.int64], items: NDArray[np.int64], rewards: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    likes = np.zeros((USERS + 1, ITEMS))
    likes[users[rewards >= threshold], items[rewards >= threshold]] = 1.0
    return likes


@pytest.mark.parametrize(("successes", "failures"), [(0, 0), (0, 5), (4, 0), (3, 7), (20, 2), (4, 4), (9, 13)])
def test_draws_are_beta(successes: int, failures: int) -> None:
    random = np.random.default_rng(0)
    draws = [draw_share(successes, failures, random) for _ in range(4000)]
    assert kstest(draws, beta(1 + successes, 1 + failures).cdf).pvalue > 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_expected_is_a_sum_over_those_who_liked_the_item(weighted: bool) -> None:
    users, items, rewards = some_ratings()
    agent = Agent(KNNBandit(threshold=4, weighted=weighted), USERS + 1, ITEMS)
    agent.replay(users, items, rewards)
    likes = likes_of(users, items, rewards, 4.0)
    assert 0 < likes.sum() < likes.size
    weights = likes.copy()
    if weighted:
        for user, item in zip(*likes.nonzero(), strict=True):
            weights[user, item] = rewards[(users == user) & (items == item) & (rewards >= 4.0)].mean()
    for user in range(USERS + 1):
        similarity = (1.0 + likes @ likes[user]) / (2.0 + likes.sum(axis=1))
        own = [rewards[(users == user) & (items == item)] >= 4.0 for item in range(ITEMS)]
        shares = np.array([liked.mean() if liked.size else 1.0 for liked in own])
        agent.select(user)
        np.testing.assert_allclose(agent.slate.means, shares * (similarity @ weights), rtol=1e-12)
        np.testing.assert_allclose(agent.slate.scores, shares * (agent.scratch.draws @ weights), rtol=1e-12)
        agent.select(user, [5, 2])
        np.testing.assert_allclose(agent.slate.means[:2], (shares * (similarity @ weights))[[5, 2]], rtol=1e-12)


def test_scores_vary_around_what_is_expected() -> None:
    agent = Agent(KNNBandit(threshold=4), USERS + 1, ITEMS, seed=1)
    agent.replay(*some_ratings())
    scores = np.zeros((3000, ITEMS))
    for draw in scores:
        agent.select(1)
        draw[:] = agent.slate.scores
    assert agent.slate.means.max() > 1.0
    np.testing.assert_allclose(scores.mean(axis=0), agent.slate.means, atol=5 * scores.std(axis=0).max() / np.sqrt(3000))
    assert scores.std(axis=0).max() > 0.1


def test_neighbors_are_those_with_the_largest_draws() -> None:
    agents = [Agent(KNNBandit(threshold=4, n_neighbors=k), USERS + 1, ITEMS, seed=3) for k in (USERS, 2)]
    for agent in agents:
        agent.replay(*some_ratings())
        agent.select(USERS)  # a user without likes
    everybody, kept = (agent.scratch.draws for agent in agents)
    largest = np.argsort(everybody)[-2:]
    assert np.array_equal(np.flatnonzero(kept), np.sort(largest))
    assert np.array_equal(kept[largest], everybody[largest])


def test_without_a_threshold_a_like_is_above_the_mean_so_far() -> None:
    agent = Agent(KNNBandit(), 1, 5)
    agent.replay([0] * 5, [0, 1, 2, 3, 4], [3.0, 4.0, 3.0, 2.0, 3.1])
    assert agent.state.n_likes[0] == 2
    assert agent.state.likes.totals[:5].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]


def test_what_nobody_liked_is_shown_at_random() -> None:
    agent = Agent(KNNBandit(threshold=4), 2, 4, seed=5)
    agent.replay([1, 1], [0, 1], [1.0, 2.0])
    counts = np.bincount([agent.select(0).item for _ in range(2000)], minlength=4)
    assert chisquare(counts).pvalue > 0.001
