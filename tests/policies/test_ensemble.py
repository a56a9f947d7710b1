"""Chains are separate Gibbs samplers: never weighted, never mixed, and right about a user given the items."""

import numpy as np
import pytest

from albatross import Agent
from albatross.policies.ensemble import Ensemble

pytestmark = pytest.mark.xdist_group("ensemble")

USERS, ITEMS = 6, 8


def taught(n_chains: int, n_ratings: int = 80, seed: int = 0) -> tuple[Agent, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    users, items, rewards = random.integers(USERS, size=n_ratings), random.integers(ITEMS, size=n_ratings), random.normal(size=n_ratings)
    agent = Agent(Ensemble(n_chains=n_chains, rank=2, noise=0.4), USERS, ITEMS, seed=seed)
    agent.replay(users, items, rewards)
    return agent, users, items, rewards


def test_no_chain_is_weighted_or_replaced() -> None:
    agent, *_ = taught(7)
    chains = agent.state.chains
    assert np.array_equal(chains.log_weights, np.full(7, chains.log_weights[0]))
    for slots in (chains.user_slots, chains.item_slots, chains.sum_slots):
        assert np.array_equal(slots, np.repeat(np.arange(7)[:, np.newaxis], slots.shape[1], axis=1))
    assert len(np.unique(chains.item_factors[:, :, 0])) == 7 * ITEMS


def test_sums_of_items_are_those_of_the_present_users() -> None:
    agent, users, items, rewards = taught(3)
    chains = agent.state.chains
    for item in range(ITEMS):
        vectors = chains.user_factors[users[items == item]]  # by rating, chain and coordinate
        grams = np.einsum("rda,rdb->abd", vectors, vectors)[np.tril_indices(2)]
        np.testing.assert_allclose(chains.item_sums[item, :3], grams, atol=1e-9)
        np.testing.assert_allclose(chains.item_sums[item, 3:], np.einsum("r,rda->ad", rewards[items == item], vectors), atol=1e-9)


def test_a_rating_redraws_its_item_from_its_posterior() -> None:
    """Many chains with the same user vectors: the item's vector has the mean and the covariance of a Bayesian regression."""
    agent, users, items, rewards = taught(1)
    copies = Agent(Ensemble(n_chains=1, rank=2, noise=0.4), USERS, ITEMS)
    draws = np.zeros((1500, 2))
    direct = np.zeros((1500, 2))
    for number in range(1500):
        copies.state = copies.state._replace(chains=copies.state.chains._make(_copied(part) for part in agent.state.chains))
        copies.update(2, 5, 1.0)
        users_now = copies.state.chains.user_factors[:, 0]
        rated = np.append(users[items == 5], 2)
        gram = users_now[rated].T @ users_now[rated] / 0.4**2 + np.eye(2)
        mean = np.linalg.solve(gram, users_now[rated].T @ np.append(rewards[items == 5], 1.0) / 0.4**2)
        draws[number] = copies.state.chains.item_factors[5, 0]
        direct[number] = np.linalg.cholesky(gram).T @ (draws[number] - mean)  # standard normal if the draw is right
    np.testing.assert_allclose(direct.mean(axis=0), 0.0, atol=4 / np.sqrt(1500))
    np.testing.assert_allclose(np.cov(direct.T), np.eye(2), atol=0.15)


def _copied(part: object) -> object:
    return part.copy() if isinstance(part, np.ndarray) else type(part)(*(_copied(each) for each in part))  # type: ignore[attr-defined]


def test_every_chain_is_followed_as_often() -> None:
    agent, *_ = taught(4)
    scores = {tuple(np.round(agent.slate.means, 9)) for _ in range(200) if agent.select(3)}
    assert len(scores) == 4
