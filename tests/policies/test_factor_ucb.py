"""Against the published algorithm in NumPy, on forced choices: by Sherman–Morrison per user, and with one matrix for all."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.errors import InvalidInput
from albatross.core.policy import Need
from albatross.core.streams import stream
from albatross.policies.factor_ucb import MOST_COUPLED, FactorUCB

pytestmark = pytest.mark.xdist_group("factor-ucb")

Array = NDArray[np.float64]

N_USERS, N_ITEMS, RANK = 5, 8, 2
RIDGE, USER_EXPLORATION, ITEM_EXPLORATION = 0.3, 0.4, 0.7


class Transcription:
    """The whole of A at once, (p + l) n square, with vec taken user by user."""

    def __init__(self, contexts: Array, weights: Array) -> None:
        self.contexts, self.weights = contexts, weights
        self.latent = stream(6, "factor-ucb items").random((N_ITEMS, RANK))
        size = contexts.shape[1] + RANK
        self.theta = stream(6, "factor-ucb users").random((N_USERS, size))
        self.inverse, self.total = np.eye(size * N_USERS) / RIDGE, np.zeros(size * N_USERS)
        self.item_inverses, self.item_totals = np.tile(np.eye(RANK) / RIDGE, (N_ITEMS, 1, 1)), np.zeros((N_ITEMS, RANK))

    def scores(self, user: int) -> tuple[Array, Array]:
        coefficients = self.weights[:, user] @ self.theta
        items = np.hstack([self.contexts, self.latent])
        means, latent = items @ coefficients, coefficients[-RANK:]
        stretched = np.array([np.kron(self.weights[:, user], item) for item in items])
        widths = np.sqrt(np.einsum("if,fg,ig->i", stretched, self.inverse, stretched))
        item_widths = np.sqrt(np.einsum("a,iab,b->i", latent, self.item_inverses, latent))
        return means, means + USER_EXPLORATION * widths + ITEM_EXPLORATION * item_widths

    def update(self, user: int, item: int, reward: float) -> None:
        spread = np.kron(self.weights[:, user], np.concatenate([self.contexts[item], self.latent[item]]))
        self.inverse = sherman_morrison(self.inverse, spread)
        self.total += reward * spread
        self.theta = (self.inverse @ self.total).reshape(self.theta.shape) if self.weights[0, 0] < 1 else self.blockwise(user)
        coefficients = self.weights[:, user] @ self.theta
        given, latent = coefficients[:-RANK], coefficients[-RANK:]
        self.item_inverses[item] = sherman_morrison(self.item_inverses[item], latent)
        self.item_totals[item] += latent * (reward - self.contexts[item] @ given)
        self.latent[item] = self.item_inverses[item] @ self.item_totals[item]

    def blockwise(self, user: int) -> Array:
        """Without a graph only the user who rated changes; others keep the vectors they began with."""
        size = self.theta.shape[1]
        block = slice(user * size, (user + 1) * size)
        self.theta[user] = self.inverse[block, block] @ self.total[block]
        return self.theta


def sherman_morrison(inverse: Array, vector: Array) -> Array:
    gain = inverse @ vector
    return np.asarray(inverse - np.outer(gain, gain) / (1.0 + vector @ gain))


def some_weights() -> Array:
    random = np.random.default_rng(4)
    weights = random.random((N_USERS, N_USERS)) * (random.random((N_USERS, N_USERS)) < 0.6) + 0.5 * np.eye(N_USERS)
    return np.asarray(weights / weights.sum(axis=0))


@pytest.mark.parametrize("n_given", [0, 3])
@pytest.mark.parametrize("coupled", [False, True])
def test_scores_are_those_of_the_publication(tmp_path: Path, n_given: int, coupled: bool) -> None:
    random = np.random.default_rng(0)
    contexts = random.normal(size=(N_ITEMS, n_given))
    weights = some_weights() if coupled else np.eye(N_USERS)
    np.save(tmp_path / "contexts.npy", contexts)
    np.save(tmp_path / "graph.npy", weights)
    policy = FactorUCB(
        rank=RANK, ridge=RIDGE, user_exploration=USER_EXPLORATION, item_exploration=ITEM_EXPLORATION,
        contexts=str(tmp_path / "contexts.npy") if n_given else None, graph=str(tmp_path / "graph.npy") if coupled else None,
    )  # fmt: skip
    assert policy.needs == ((Need.FEATURES,) if n_given else ()) + ((Need.GRAPH,) if coupled else ())
    agent, slow = Agent(policy, N_USERS, N_ITEMS, seed=6), Transcription(contexts, weights)
    for _ in range(40):
        user, item, reward = int(random.integers(N_USERS)), int(random.integers(N_ITEMS)), float(random.normal(2.0))
        agent.select(user)
        means, scores = slow.scores(user)
        np.testing.assert_allclose(agent.slate.means, means, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(agent.slate.scores, scores, rtol=1e-7, atol=1e-7)
        agent.update(user, item, reward)
        slow.update(user, item, reward)


def test_a_graph_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "graph.npy"
    for graph, message in ((np.ones((3, 3)), "with sum one"), (np.eye(4), "3 × 3"), (np.eye(2), "describes 2 users")):
        np.save(path, graph)
        with pytest.raises(InvalidInput, match=message):
            Agent(FactorUCB(graph=str(path)), 3, 4)
    n_users = MOST_COUPLED // 5 + 1
    np.save(path, np.eye(n_users))
    with pytest.raises(InvalidInput, match=r"a graph of 1,001 users with 5 coordinates; accepted: a product of at most 5,000"):
        Agent(FactorUCB(graph=str(path)), n_users, 4)
