"""The fit against NumPy's, and how often it explores."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from albatross import Agent
from albatross.core.streams import stream
from albatross.policies.epsilon_als import FIRST_SWEEPS, SWEEPS, EpsilonALS

pytestmark = pytest.mark.xdist_group("epsilon-als")

Ratings = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def some_ratings(n_ratings: int, n_users: int = 8, n_items: int = 10) -> Ratings:
    random = np.random.default_rng(1)
    users, items = random.integers(n_users, size=n_ratings), random.integers(n_items, size=n_ratings)
    means = random.normal(size=(n_users, 2)) @ random.normal(size=(n_items, 2)).T
    return users, items, means[users, items] + 0.1 * random.normal(size=n_ratings)


def regression(vectors: NDArray[np.float64], rewards: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    gram = vectors.T @ vectors + ridge * np.eye(vectors.shape[1])
    return np.asarray(np.linalg.solve(gram, vectors.T @ rewards), np.float64)


def direct_fit(ratings: Ratings, items_before: NDArray[np.float64], n_users: int, ridge: float, n_sweeps: int) -> list[NDArray[np.float64]]:
    users, items, rewards = ratings
    fitted = [np.zeros((n_users, items_before.shape[1])), items_before.copy()]
    for _ in range(n_sweeps):
        for side, (own, other) in enumerate([(users, items), (items, users)]):
            for row in range(len(fitted[side])):
                mine = own == row
                fitted[side][row] = regression(fitted[1 - side][other[mine]], rewards[mine], ridge)
    return fitted


def test_fits_equal_those_of_numpy() -> None:
    ratings = some_ratings(100)
    agent = Agent(EpsilonALS(rank=2, ridge=0.1), n_users=9, n_items=11, seed=4)
    first = tuple(column[:50] for column in ratings)
    start = np.zeros((11, 2))
    learning = stream(4, "learning")
    for item in dict.fromkeys(first[1].tolist()):
        start[item] = learning.standard_normal(2)
    agent.replay(*first)
    expected = direct_fit(first, start, 9, 0.1, FIRST_SWEEPS)  # type: ignore[arg-type]
    np.testing.assert_allclose(agent.state.user_factors, expected[0], atol=1e-9)
    np.testing.assert_allclose(agent.state.item_factors, expected[1], atol=1e-9)
    agent.replay(*(column[50:] for column in ratings))
    expected = direct_fit(ratings, expected[1], 9, 0.1, SWEEPS)
    np.testing.assert_allclose(agent.state.user_factors, expected[0], atol=1e-9)
    np.testing.assert_allclose(agent.state.item_factors, expected[1], atol=1e-9)
    assert not agent.state.user_factors[8].any()
    assert not agent.state.item_factors[10].any()


def test_the_fit_settles_where_both_sides_are_regressions() -> None:
    users, items, rewards = some_ratings(300)
    agent = Agent(EpsilonALS(rank=2, ridge=0.1, refit_interval=1), n_users=8, n_items=10)
    agent.replay(users, items, rewards)
    for user in range(8):
        direct = regression(agent.state.item_factors[items[users == user]], rewards[users == user], 0.1)
        np.testing.assert_allclose(agent.state.user_factors[user], direct, rtol=0.01, atol=0.01)
    for item in range(10):
        direct = regression(agent.state.user_factors[users[items == item]], rewards[items == item], 0.1)
        np.testing.assert_allclose(agent.state.item_factors[item], direct, rtol=1e-8)
    assert np.abs(np.sum(agent.state.user_factors[users] * agent.state.item_factors[items], axis=1) - rewards).mean() < 0.2


def test_a_fit_that_vanished_starts_again() -> None:
    users, items, rewards = some_ratings(50)
    agent = Agent(EpsilonALS(rank=2), n_users=8, n_items=10)
    agent.replay(users, items, 1e-9 * rewards)
    assert np.abs(agent.state.item_factors).max() < 1e-6
    agent.replay(users, items, rewards)
    assert np.abs(agent.state.item_factors).max() > 0.1


def test_room_for_more_makes_no_difference() -> None:
    users, items, rewards = some_ratings(200)
    rewards[:50] = 0.0  # two starts, so that the second would see what the first has drawn in excess
    tight, roomy = Agent(EpsilonALS(rank=2), 8, 10), Agent(EpsilonALS(rank=2), 30, 40)
    for agent in (tight, roomy):
        agent.replay(users, items, rewards)
    assert tight.state.item_factors.any()
    assert np.array_equal(tight.state.item_factors, roomy.state.item_factors[:10])
    assert np.array_equal(tight.state.user_factors, roomy.state.user_factors[:8])


@pytest.mark.parametrize("exploration", [0.0, 50.0, 1000.0])
def test_explores_as_often_as_it_says(exploration: float) -> None:
    users, items, rewards = some_ratings(200)
    agent = Agent(EpsilonALS(rank=2, exploration=exploration), n_users=8, n_items=10, seed=5)
    agent.replay(users, items, rewards)
    estimates = agent.state.item_factors @ agent.state.user_factors[3]
    explored = min(1.0, exploration / 201)
    probabilities = np.full(10, explored / 10)
    probabilities[estimates.argmax()] += 1.0 - explored
    counts = np.zeros(10)
    for _ in range(4000):
        choice = agent.select(3)
        counts[choice.item] += 1
        assert choice.propensity == pytest.approx(probabilities[choice.item])
        assert choice.score == pytest.approx(estimates[choice.item])
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    assert possible.sum() == 1 or chisquare(counts[possible], 4000 * probabilities[possible]).pvalue > 0.001


@pytest.mark.parametrize("exploration", [0.0, 25.0])
def test_a_stranger_is_shown_anything(exploration: float) -> None:
    agent = Agent(EpsilonALS(rank=2, exploration=exploration), n_users=9, n_items=10)
    agent.replay(*some_ratings(50))
    choices = [agent.select(8, [1, 4, 7, 9]) for _ in range(2000)]
    assert chisquare(np.bincount([choice.item for choice in choices])[[1, 4, 7, 9]]).pvalue > 0.001
    assert {round(choice.propensity, 12) for choice in choices} == {0.25}
