"""Sums updated term by term equal recomputed sums, beliefs are the closed form, and planted types are found."""

import numpy as np
import pytest
from scipy.special import digamma as exact_digamma

from albatross import Agent
from albatross.kernels.fitting.blocks import digamma
from albatross.policies.block_model import BlockModel

pytestmark = pytest.mark.xdist_group("block-model")

USERS, ITEMS = 8, 11


def taught(policy: BlockModel, n_ratings: int = 200) -> tuple[Agent, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    users, items = random.integers(USERS, size=n_ratings), random.integers(ITEMS, size=n_ratings)
    liked = random.random(n_ratings) < np.where((users + items) % 2 == 0, 0.8, 0.3)
    agent = Agent(policy, USERS + 1, ITEMS + 1)
    agent.replay(users, items, np.where(liked, 5.0, 2.0))
    ratings = np.zeros((USERS + 1, ITEMS + 1, 2))
    np.add.at(ratings, (users, items, liked.astype(int)), 1.0)
    return agent, ratings, users


def transcribed(likes: np.ndarray) -> np.ndarray:
    total = exact_digamma(2.0 + likes.sum(axis=2, keepdims=True))
    return np.asarray(exact_digamma(1.0 + likes) - total)


def types_from(logarithms: np.ndarray) -> np.ndarray:
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def test_the_digamma_function() -> None:
    for argument in (1.0, 1.3, 2.0, 5.9, 6.0, 17.0, 1e6):
        assert digamma(argument) == pytest.approx(exact_digamma(argument), rel=1e-9)


def test_sums_are_those_of_the_present_beliefs() -> None:
    agent, ratings, _ = taught(BlockModel(n_user_types=3, n_item_types=2, threshold=4))
    blocks = agent.state.blocks
    np.testing.assert_allclose(blocks.likes, np.einsum("ug,ih,uis->ghs", blocks.user_types, blocks.item_types, ratings), atol=1e-9)
    np.testing.assert_allclose(blocks.item_sums, np.einsum("ug,uis->igs", blocks.user_types, ratings), atol=1e-9)


def test_a_rating_refits_its_user_and_then_its_item() -> None:
    agent, ratings, _ = taught(BlockModel(n_user_types=3, n_item_types=2, threshold=4))
    users, items = agent.state.blocks.user_types.copy(), agent.state.blocks.item_types.copy()
    agent.update(4, 7, 5.0)
    ratings[4, 7, 1] += 1.0
    logarithms = transcribed(np.einsum("ug,ih,uis->ghs", users, items, ratings))
    guesses = agent.state.blocks.user_guesses[4], agent.state.blocks.item_guesses[7]
    users[4] = types_from(guesses[0] + np.einsum("ih,is,ghs->g", items, ratings[4], logarithms))
    logarithms = transcribed(np.einsum("ug,ih,uis->ghs", users, items, ratings))
    items[7] = types_from(guesses[1] + np.einsum("ug,us,ghs->h", users, ratings[:, 7], logarithms))
    np.testing.assert_allclose(agent.state.blocks.user_types, users, atol=1e-9)
    np.testing.assert_allclose(agent.state.blocks.item_types, items, atol=1e-9)


@pytest.mark.parametrize("explorer", ["thompson", "greedy"])
def test_what_is_expected(explorer: str) -> None:
    agent, *_ = taught(BlockModel(n_user_types=3, n_item_types=2, threshold=4, explorer=explorer, exploration=0.0))
    blocks = agent.state.blocks
    thetas = (1.0 + blocks.likes[:, :, 1]) / (2.0 + blocks.likes.sum(axis=2))
    scores = np.zeros((2000, ITEMS + 1))
    for drawn in scores:
        agent.select(3)
        drawn[:] = agent.slate.scores
    expected = blocks.item_types @ thetas.T @ blocks.user_types[3]
    np.testing.assert_allclose(agent.slate.means, expected, rtol=1e-12)
    if explorer == "greedy":
        np.testing.assert_allclose(scores, np.broadcast_to(expected, scores.shape), rtol=1e-12)
    else:
        np.testing.assert_allclose(scores.mean(axis=0), expected, atol=5 * scores.std(axis=0).max() / np.sqrt(2000))


def test_planted_types_are_found() -> None:
    agent, *_ = taught(BlockModel(n_user_types=2, n_item_types=2, threshold=4), n_ratings=2000)
    users, items = agent.state.blocks.user_types[:USERS].argmax(axis=1), agent.state.blocks.item_types[:ITEMS].argmax(axis=1)
    assert len({(kind, user % 2) for user, kind in enumerate(users)}) == 2
    assert len({(kind, item % 2) for item, kind in enumerate(items)}) == 2
