"""OFUL against its closed form, and where its features come from."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent, simulate
from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Gaussian
from albatross.environments.world import truth_of
from albatross.policies.oful import MOST_FEATURES, OFUL

pytestmark = pytest.mark.xdist_group("oful")


def saved(folder: Path, features: NDArray[np.generic]) -> str:
    path = folder / "features.npy"
    np.save(path, features)
    return str(path)


@pytest.mark.parametrize("rank", [2, 5, 9])
def test_scores_are_the_closed_form(tmp_path: Path, rank: int) -> None:
    random = np.random.default_rng(rank)
    features = random.normal(size=(300, rank))
    policy = OFUL(features=saved(tmp_path, features), ridge=0.3, noise=0.7, confidence=0.05, norm_bound=2.0)
    agent = Agent(policy, n_users=3, n_items=300)
    users, items, rewards = random.integers(3, size=100), random.integers(300, size=100), random.normal(size=100)
    agent.replay(users, items, rewards)
    for user in range(3):
        shown, liked = features[items[users == user]], rewards[users == user]
        gram = 0.3 * np.eye(rank) + shown.T @ shown
        center = np.linalg.solve(gram, shown.T @ liked)
        growth = np.linalg.slogdet(gram)[1] - rank * np.log(0.3)
        radius = 0.7 * np.sqrt(growth - 2 * np.log(0.05)) + np.sqrt(0.3) * 2.0
        widths = np.sqrt(np.einsum("ia,ia->i", features, np.linalg.solve(gram, features.T).T))
        scores = features @ center + radius * widths
        assert agent.select(user).item == scores.argmax()
        np.testing.assert_allclose(agent.slate.means, features @ center, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(agent.slate.scores, scores, rtol=1e-9, atol=1e-11)
        candidates = random.choice(300, 20, replace=False)
        assert agent.select(user, candidates).item == candidates[scores[candidates].argmax()]


def test_a_stranger_is_shown_the_widest_item(tmp_path: Path) -> None:
    features = np.array([[1.0, 0.0], [0.0, -3.0], [2.0, 1.0]])
    choice = Agent(OFUL(features=saved(tmp_path, features), ridge=4.0, noise=0.0), n_users=1, n_items=3).select(0)
    assert (choice.item, choice.mean) == (1, 0.0)
    assert choice.bonus == pytest.approx(3.0)  # √λ s · |x| / √λ


def test_without_a_file_the_true_features_are_taken() -> None:
    world = Gaussian(n_users=4, n_items=6, rank=3).world(0)
    agent = Agent(OFUL(), n_users=4, n_items=6, truth=truth_of(world))
    assert np.array_equal(agent.state.item_factors, world.item_factors)


def test_a_world_without_features_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no true item vectors"):
        Agent(OFUL(), n_users=2, n_items=2, truth=Truth(np.zeros((2, 2)), None))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros(6), "one row per item"),
        (np.array([["a", "b"]] * 6), "one row per item"),
        (np.full((6, 2), np.nan), "one row per item"),
        (np.zeros((5, 2)), "describes 5 items; accepted: at least 6"),
        (np.zeros((6, 0)), "0 columns"),
        (np.zeros((6, MOST_FEATURES + 1)), f"accepted: 1 to {MOST_FEATURES}"),
        (np.full((6, 2), None), "cannot be read"),
    ],
)
def test_a_file_that_is_no_table_of_features_is_refused(tmp_path: Path, features: NDArray[np.generic], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Agent(OFUL(features=saved(tmp_path, features)), n_users=2, n_items=6)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.npy"):
        Agent(OFUL(features=str(tmp_path / "nowhere.npy")), n_users=2, n_items=6)


def test_growth_takes_further_features_from_the_file(tmp_path: Path) -> None:
    features = np.arange(8.0).reshape(4, 2)
    agent = Agent(OFUL(features=saved(tmp_path, features)), n_users=1, n_items=2)
    agent.grow(2, 4)
    assert np.array_equal(agent.state.item_factors, features)
    with pytest.raises(InvalidInput, match="describes 4 items; accepted: at least 5"):
        agent.grow(2, 5)


def test_regret_on_the_gaussian_world_of_the_paper() -> None:
    regrets = [simulate(OFUL(ridge=1.0), Gaussian(), horizon=25_000, seed=seed).pseudo_regret.sum() for seed in range(10)]
    assert 6_500 < np.mean(regrets) < 9_000
