"""The fit against least squares in NumPy, and when it is made."""

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.streams import stream
from albatross.policies.als import ALS, GROWTH, SWEEPS

pytestmark = pytest.mark.xdist_group("als")

Array = NDArray[np.float64]
Ratings = tuple[NDArray[np.int64], NDArray[np.int64], Array]


def some_ratings(n_ratings: int) -> Ratings:
    random = np.random.default_rng(1)
    users, items = random.integers(8, size=n_ratings), random.integers(10, size=n_ratings)
    means = 3.0 + random.normal(size=(8, 1)) + random.normal(size=10) + random.normal(size=(8, 2)) @ random.normal(size=(2, 10))
    return users, items, means[users, items] + 0.1 * random.normal(size=n_ratings)


def half_sweep(own: NDArray[np.int64], partner: NDArray[np.int64], rewards: Array, fitted: Array, others: Array, ridge: float) -> None:
    """Solve for one side, (vector, bias) per row, given the other."""
    for row in np.unique(own):
        mine = own == row
        regressors = np.column_stack([others[partner[mine], :-1], np.ones(mine.sum())])
        gram = regressors.T @ regressors + ridge * mine.sum() * np.eye(regressors.shape[1])
        fitted[row] = np.linalg.solve(gram, regressors.T @ (rewards[mine] - others[partner[mine], -1]))


def objective(ratings: Ratings, people: Array, things: Array, ridge: float) -> float:
    users, items, rewards = ratings
    means = (people[users, :-1] * things[items, :-1]).sum(axis=1) + people[users, -1] + things[items, -1]
    weights = ridge * ((people[users] ** 2).sum() + (things[items] ** 2).sum())
    return float(((rewards - rewards.mean() - means) ** 2).sum() + weights)


def test_fits_equal_those_of_numpy() -> None:
    ratings = some_ratings(60)
    users, items, rewards = ratings
    agent = Agent(ALS(rank=2, ridge=0.1, refit_interval=60), n_users=9, n_items=11, seed=4)
    agent.replay(*ratings)
    learning, things, people = stream(4, "learning"), np.zeros((11, 3)), np.zeros((9, 3))
    met: dict[int, None] = dict.fromkeys(int(item) for user in range(8) for item in items[users == user])
    for item in met:
        things[item, :2] = 0.1 * learning.standard_normal(2)
    for _ in range(SWEEPS):
        half_sweep(users, items, rewards - rewards.mean(), people, things, 0.1)
        half_sweep(items, users, rewards - rewards.mean(), things, people, 0.1)
    np.testing.assert_allclose(agent.state.user_factors, people, atol=1e-9)
    np.testing.assert_allclose(agent.state.item_coordinates.T, things, atol=1e-9)
    agent.select(3)
    means = rewards.mean() + people[3, 2] + things[:, 2] + things[:, :2] @ people[3, :2]
    np.testing.assert_allclose(agent.slate.means, means, atol=1e-9)


def test_every_refit_of_the_same_ratings_lowers_the_objective() -> None:
    ratings = some_ratings(200)
    agent = Agent(ALS(rank=2, ridge=0.02, refit_interval=200), n_users=8, n_items=10)
    agent.replay(*ratings)
    before = objective(ratings, agent.state.user_factors, agent.state.item_coordinates.T, 0.02)
    spread = float(((ratings[2] - ratings[2].mean()) ** 2).sum())
    assert before < 0.35 * spread
    agent.replay(*ratings)  # the same ratings twice have the same best fit
    after = objective(ratings, agent.state.user_factors, agent.state.item_coordinates.T, 0.02)
    assert after < before


def test_fits_become_rarer_as_ratings_become_many() -> None:
    agent = Agent(ALS(rank=1, refit_interval=10), n_users=8, n_items=10)
    fits = []
    for user, item, reward in zip(*some_ratings(600), strict=True):
        agent.update(int(user), int(item), float(reward))
        if agent.state.updates[0] == agent.state.updates[1]:
            fits.append(int(agent.state.updates[0]))
    assert fits[:20] == [10 * number for number in range(1, 21)]
    gaps = np.diff(fits)
    assert all(gap == max(10, before // GROWTH) for before, gap in zip(fits[:-1], gaps, strict=True))
    assert gaps[-1] > 10


def test_nothing_is_explored() -> None:
    agent = Agent(ALS(rank=2), n_users=8, n_items=10)
    assert agent.select(0).propensity == 0.1, "before the first fit everything is equal"
    agent.replay(*some_ratings(100))
    assert {(choice.item, choice.propensity) for choice in (agent.select(0) for _ in range(50))} == {
        (int(agent.slate.scores.argmax()), 1.0)
    }
