"""Against a transcription of the paper in NumPy, on forced choices; and the clusters it finds."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent, simulate
from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian
from albatross.environments.telling import told
from albatross.policies.club import CLUB

pytestmark = pytest.mark.xdist_group("club")

Array = NDArray[np.float64]


class Transcription:
    """The paper's figure, with one matrix per user and components searched anew each time."""

    def __init__(self, features: Array, n_users: int, exploration: float, separation: float) -> None:
        self.features, self.exploration, self.separation = features, exploration, separation
        rank = features.shape[1]
        self.matrices, self.sums = np.tile(np.eye(rank), (n_users, 1, 1)), np.zeros((n_users, rank))
        self.visits, self.graph, self.time = np.zeros(n_users), ~np.eye(n_users, dtype=bool), 0

    def component(self, user: int) -> list[int]:
        reached, frontier = {user}, [user]
        while frontier:
            for other in np.flatnonzero(self.graph[frontier.pop()]):
                if other not in reached:
                    reached.add(int(other))
                    frontier.append(int(other))
        return sorted(reached)

    def scores(self, user: int) -> tuple[Array, Array]:
        members = self.component(user)
        matrix = np.eye(self.features.shape[1]) + sum(self.matrices[member] - np.eye(self.features.shape[1]) for member in members)
        means = self.features @ np.linalg.solve(matrix, self.sums[members].sum(axis=0))
        squares = np.einsum("ia,ab,ib->i", self.features, np.linalg.inv(matrix), self.features)
        return means, means + self.exploration * np.sqrt(squares * np.log(self.time + 2))

    def update(self, user: int, item: int, reward: float) -> None:
        vectors = np.array([np.linalg.solve(matrix, total) for matrix, total in zip(self.matrices, self.sums, strict=True)])
        widths = self.separation * np.sqrt((1 + np.log(1 + self.visits)) / (1 + self.visits))
        far = np.linalg.norm(vectors[user] - vectors, axis=1) > widths[user] + widths
        self.graph[user, far] = self.graph[far, user] = False
        self.matrices[user] += np.outer(self.features[item], self.features[item])
        self.sums[user] += reward * self.features[item]
        self.visits[user] += 1
        self.time += 1


def saved(folder: Path, features: Array) -> str:
    np.save(folder / "features.npy", features)
    return str(folder / "features.npy")


def planted(n_users: int, n_items: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Features of norm one, and users of three kinds far from each other."""
    features = random.normal(size=(n_items, 3))
    return features / np.linalg.norm(features, axis=1, keepdims=True), np.eye(3)[np.arange(n_users) % 3]


def test_scores_and_clusters_are_those_of_the_paper(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    features, tastes = planted(9, 25, random)
    agent = Agent(CLUB(features=saved(tmp_path, 4 * features), exploration=0.4, separation=0.5), n_users=9, n_items=25)
    slow = Transcription(features, 9, 0.4, 0.5)
    for step in range(400):
        user, item = int(random.integers(9)), int(random.integers(25))
        reward = float(tastes[user] @ features[item] + 0.1 * random.normal())
        if step % 7 == 0:
            means, scores = slow.scores(user)
            agent.select(user)
            np.testing.assert_allclose(agent.slate.means, means, atol=1e-9)
            np.testing.assert_allclose(agent.slate.scores, scores, atol=1e-9)
        agent.update(user, item, reward)
        slow.update(user, item, reward)
        assert agent.state.clusters.tolist() == [slow.component(each)[0] for each in range(9)]
    assert len(np.unique(agent.state.clusters)) == 3, "all of that was not about one component"


def test_planted_clusters_are_found_and_components_never_merge(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    features, tastes = planted(30, 40, random)
    agent = Agent(CLUB(features=saved(tmp_path, features), separation=0.6), n_users=30, n_items=40)
    before = agent.state.clusters.copy()
    for _ in range(2500):
        user, item = int(random.integers(30)), int(random.integers(40))
        agent.update(user, item, float(tastes[user] @ features[item] + 0.1 * random.normal()))
        after = agent.state.clusters.copy()
        assert np.unique(np.column_stack([before, after]), axis=0).shape[0] == np.unique(after).size, "two components became one"
        before = after
    assert before.tolist() == [user % 3 for user in range(30)]


def test_offline_features_are_a_factorization_of_what_others_said() -> None:
    world = Gaussian(n_users=40, n_items=30, rank=2, noise=0.01)
    agent = Agent(CLUB(rank=2), 40, 30, truth=told(CLUB(rank=2), world, 0))
    fitted, true = agent.state.item_factors, world.world(0).item_factors
    assert np.linalg.norm(fitted, axis=1).max() == pytest.approx(1.0)
    rest = true - fitted @ np.linalg.lstsq(fitted, true, rcond=None)[0]
    assert np.abs(rest).max() < 0.05, "the true vectors up to a linear map"


def test_current_features_regress_on_the_cluster_of_the_moment() -> None:
    policy = CLUB(features="current", rank=2, separation=50.0)  # one cluster for good
    assert policy.needs == ()
    random = np.random.default_rng(3)
    agent = Agent(policy, n_users=3, n_items=4, seed=2)
    start = stream(2, "club items").normal(size=(4, 2))
    features = start / np.linalg.norm(start, axis=1).max()
    matrix, total = np.eye(2), np.zeros(2)
    grams, moments = np.tile(np.eye(2), (4, 1, 1)), np.zeros((4, 2))
    for _ in range(40):
        user, item, reward = int(random.integers(3)), int(random.integers(4)), float(random.normal(3.0))
        center = np.linalg.solve(matrix, total)
        agent.update(user, item, reward)
        matrix += np.outer(features[item], features[item])
        total += reward * features[item]
        if center.any():
            grams[item] += np.outer(center, center)
            moments[item] += reward * center
            features[item] = np.linalg.solve(grams[item], moments[item])
    np.testing.assert_allclose(agent.state.item_factors, features, atol=1e-9)


def test_current_features_learn() -> None:
    world = Gaussian(n_users=20, n_items=20, rank=2)
    regret = simulate(CLUB(features="current", rank=2), world, horizon=3000).pseudo_regret
    assert regret[-500:].mean() < 0.7 * regret[:50].mean()


def test_a_file_without_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no columns"):
        Agent(CLUB(features=saved(tmp_path, np.zeros((5, 0)))), 2, 5)
