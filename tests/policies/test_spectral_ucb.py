"""Against OFUL on the eigenbasis, and the graph it is made from."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Gaussian
from albatross.environments.telling import told
from albatross.policies.spectral_ucb import SpectralUCB, effective_dimension, nearest_neighbours

pytestmark = pytest.mark.xdist_group("spectral-ucb")

Array = NDArray[np.float64]


def ring(n_items: int) -> Array:
    """Each item is like the one before and the one behind."""
    return np.roll(np.eye(n_items), 1, axis=0) + np.roll(np.eye(n_items), -1, axis=0)


def saved(folder: Path, graph: Array) -> str:
    np.save(folder / "graph.npy", graph)
    return str(folder / "graph.npy")


@pytest.mark.parametrize("n_eigenvectors", [12, 20, 5])
def test_scores_are_those_of_oful_on_the_eigenbasis(tmp_path: Path, n_eigenvectors: int) -> None:
    """All eigenvectors, more than there are, and fewer."""
    graph, policy = ring(12), {"ridge": 0.1, "noise": 0.3, "confidence": 0.05, "norm_bound": 0.7, "visits": 40}
    agent = Agent(SpectralUCB(graph=saved(tmp_path, graph), n_eigenvectors=n_eigenvectors, **policy), n_users=2, n_items=12)  # type: ignore[arg-type]
    laplacian = np.diag(graph.sum(axis=1)) - graph
    values, vectors = np.linalg.eigh(laplacian)
    kept = min(n_eigenvectors, 12)
    features = vectors[:, :kept]
    matrix, total, random = np.diag(values[:kept] + 0.1), np.zeros(kept), np.random.default_rng(0)
    dimension = max(d for d in range(1, 13) if (d - 1) * (values[d - 1] + 0.1) <= 40 / np.log(1 + 40 / 0.1))
    for visit in range(1, 31):
        agent.select(1)
        radius = 0.6 * np.sqrt(dimension * np.log(1 + visit / 0.1) + 2 * np.log(1 / 0.05)) + 0.7
        means = features @ np.linalg.solve(matrix, total)
        widths = np.sqrt(np.einsum("ia,ab,ib->i", features, np.linalg.inv(matrix), features))
        np.testing.assert_allclose(agent.slate.means, means, atol=1e-8)
        np.testing.assert_allclose(agent.slate.scores, means + radius * widths, atol=1e-8)
        item, reward = int(random.integers(12)), float(random.normal())
        agent.update(1, item, reward)
        matrix += np.outer(features[item], features[item])
        total += reward * features[item]


def test_the_effective_dimension() -> None:
    assert effective_dimension(np.array([0.5]), 0.5, 10) == 1.0
    values = np.array([0.1, 0.1, 1.0, 50.0])
    assert effective_dimension(values, 0.1, 20) == 3.0, "2 · 1 ≤ 20 / log 201 = 3.8 < 3 · 50"


def test_neighbours_are_the_nearest_in_either_direction() -> None:
    vectors = np.array([[0.0], [1.0], [1.5], [9.0]])
    assert nearest_neighbours(vectors, 1).tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    assert nearest_neighbours(vectors[:1], 10).tolist() == [[0]]


def test_the_graph_of_what_others_said_links_similar_items() -> None:
    world, policy = Gaussian(n_users=60, n_items=50, rank=2, noise=0.1), SpectralUCB(rank=2, n_eigenvectors=6)
    agent = Agent(policy, 60, 50, truth=told(policy, world, 0))
    smooth = agent.state.item_factors[:, :6]
    true = world.world(0).item_factors
    rest = true - smooth @ np.linalg.lstsq(smooth, true, rcond=None)[0]
    assert (rest**2).sum() < 0.3 * (true**2).sum(), "few smooth functions explain the true vectors"


@pytest.mark.parametrize("graph", [np.eye(4)[:3], -np.ones((4, 4)), np.triu(np.ones((4, 4)))])
def test_what_is_no_graph_is_refused(tmp_path: Path, graph: Array) -> None:
    with pytest.raises(InvalidInput, match=r"describes 3 items|square, symmetric table"):
        Agent(SpectralUCB(graph=saved(tmp_path, graph)), 2, 4)
