"""Means are ridge regression; directions have the length of the estimate and turn as far as the schedule says."""

from pathlib import Path

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Gaussian
from albatross.policies.random import Random
from albatross.policies.smooth_explore import SmoothExplore, turn

pytestmark = pytest.mark.xdist_group("smooth-explore")

RANK, ITEMS = 3, 12


def taught(folder: Path, n_ratings: int) -> tuple[Agent, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    features = random.normal(size=(ITEMS, RANK))
    np.save(folder / "features.npy", features)
    agent = Agent(SmoothExplore(features=str(folder / "features.npy"), ridge=0.5, exploration=2.0), 2, ITEMS)
    items, rewards = random.integers(ITEMS, size=n_ratings), random.normal(1.0, 1.0, n_ratings)
    agent.replay(np.zeros(n_ratings, int), items, rewards)
    shown = features[items]
    center = np.linalg.solve(shown.T @ shown + 0.5 * np.eye(RANK), shown.T @ rewards)
    return agent, features, center


@pytest.mark.parametrize("n_ratings", [1, 40])
def test_the_direction_turns_as_far_as_the_schedule_says(tmp_path: Path, n_ratings: int) -> None:
    agent, features, center = taught(tmp_path, n_ratings)
    share = min(2.0 / (1 + n_ratings), 2.0 / 3.0)
    errors = []
    for _ in range(300):
        choice = agent.select(0)
        direction = agent.scratch.direction[:RANK]
        np.testing.assert_allclose(agent.slate.means, features @ center, atol=1e-9)
        np.testing.assert_allclose(agent.slate.scores, features @ direction, atol=1e-9)
        assert choice.item == (features @ direction).argmax()
        assert np.linalg.norm(direction) == pytest.approx(np.linalg.norm(center))
        assert direction @ center == pytest.approx(np.sqrt(1.0 - share) * (center @ center))
        errors.append(direction - np.sqrt(1.0 - share) * center)
    assert np.abs(np.mean(errors, axis=0)).max() < 0.2 * np.sqrt(share) * np.linalg.norm(center)


def test_a_stranger_is_looked_at_from_any_side() -> None:
    random, directions = np.random.default_rng(1), np.zeros((2000, 2))
    for direction in directions:
        turn(np.zeros(2), direction, 0.5, random)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
    np.testing.assert_allclose(directions.T @ directions / 2000, np.eye(2) / 2, atol=0.05)


def test_in_one_dimension_there_is_nowhere_to_turn() -> None:
    direction = np.zeros(1)
    turn(np.array([3.0]), direction, 0.5, np.random.default_rng(0))
    assert direction[0] == pytest.approx(3.0 * np.sqrt(0.5))


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.npy"):
        Agent(SmoothExplore(features=str(tmp_path / "nowhere.npy")), 2, 3)


def test_features_come_from_other_users_or_are_the_true_ones() -> None:
    world = Gaussian(n_users=20, n_items=30, rank=2)
    chance = simulate(Random(), world, 3000, seed=0).pseudo_regret.mean()
    for features in (None, "true"):
        assert simulate(SmoothExplore(rank=2, features=features), world, 3000, seed=0).pseudo_regret[-1000:].mean() < 0.3 * chance
    with pytest.raises(InvalidInput, match="must be told"):
        Agent(SmoothExplore(), 2, 3)
