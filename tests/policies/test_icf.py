"""Against Bayesian regression in NumPy, on forced choices."""

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.environment import OtherRatings, Truth
from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.policies.icf import ICF, SWEEPS

pytestmark = pytest.mark.xdist_group("icf")

Array = NDArray[np.float64]

N_USERS, N_ITEMS, RANK = 4, 9, 3


def others(n_ratings: int = 120, n_users: int = 15) -> OtherRatings:
    random = np.random.default_rng(2)
    users, items = random.integers(n_users, size=n_ratings), random.integers(N_ITEMS - 1, size=n_ratings)
    means = random.normal(size=(n_users, RANK)) @ random.normal(size=(RANK, N_ITEMS))
    return OtherRatings(users.astype(np.int32), items.astype(np.int32), means[users, items] + 0.3 * random.normal(size=n_ratings))


def agent_of(policy: ICF) -> Agent:
    return Agent(policy, N_USERS, N_ITEMS, seed=5, truth=Truth(ratings=others()) if policy.asks() else None)


def posterior(vectors: Array, rewards: Array, noise: float, scale: float) -> tuple[Array, Array]:
    """Mean and covariance of coefficients with a normal prior."""
    precision = vectors.T @ vectors / noise**2 + np.eye(vectors.shape[1]) / scale**2
    covariance = np.linalg.inv(precision)
    return np.asarray(covariance @ vectors.T @ rewards / noise**2), np.asarray(covariance)


def offline_items(policy: ICF) -> tuple[Array, Array]:
    """Means and covariances of the item vectors given what others said."""
    users, items, ratings = others()
    means = stream(5, "icf items").normal(size=(items.max() + 1, RANK))
    people = np.zeros((users.max() + 1, RANK))
    covariances = np.tile(policy.item_scale**2 * np.eye(RANK), (N_ITEMS, 1, 1))
    for _ in range(SWEEPS):
        for user in range(len(people)):
            mine = users == user
            people[user], _ = posterior(means[items[mine]], ratings[mine], policy.noise, policy.user_scale)
        for item in range(len(means)):
            mine = items == item
            means[item], covariances[item] = posterior(people[users[mine]], ratings[mine], policy.noise, policy.item_scale)
    return np.vstack([means, np.zeros((N_ITEMS - len(means), RANK))]), covariances


def some_ratings(n_ratings: int = 60) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    random = np.random.default_rng(3)
    return random.integers(N_USERS, size=n_ratings), random.integers(N_ITEMS, size=n_ratings), random.normal(3.0, 1.0, n_ratings)


def test_items_are_what_others_said() -> None:
    policy = ICF(rank=RANK, noise=0.4, user_scale=0.8, item_scale=1.3)
    means, covariances = offline_items(policy)
    state = agent_of(policy).state
    np.testing.assert_allclose(state.item_factors, means, atol=1e-9)
    whiteners = np.zeros((N_ITEMS, RANK, RANK))
    whiteners[:, *np.tril_indices(RANK)] = state.item_whiteners
    np.testing.assert_allclose(0.4**2 * whiteners.transpose(0, 2, 1) @ whiteners, covariances, atol=1e-9)


@pytest.mark.parametrize("strategy", ["ucb", "glm-ucb", "epsilon-greedy"])
def test_users_are_bayesian_regressions(strategy: str) -> None:
    policy = ICF(strategy=strategy, rank=RANK, exploration=0.7, noise=0.4, user_scale=0.8)
    agent = agent_of(policy)
    users, items, rewards = some_ratings()
    agent.replay(users, items, rewards)
    features = agent.state.item_factors
    for user in range(N_USERS):
        mean, covariance = posterior(features[items[users == user]], rewards[users == user], 0.4, 0.8)
        width = np.sqrt(np.einsum("ia,ab,ib->i", features, covariance, features))
        expected = features @ mean
        scores = {
            "ucb": expected + 0.7 * width,
            "glm-ucb": 1.0 / (1.0 + np.exp(-expected)) + 0.7 * np.sqrt(np.log((users == user).sum() + 1)) * width,
            "epsilon-greedy": expected,
        }[strategy]
        agent.select(user)
        np.testing.assert_allclose(agent.slate.means, expected, atol=1e-9)
        np.testing.assert_allclose(agent.slate.scores, scores, atol=1e-9)


def test_thompson_scores_have_the_moments_of_two_independent_draws() -> None:
    policy = ICF(strategy="ts", rank=RANK, noise=0.4, user_scale=0.8)
    agent = agent_of(policy)
    users, items, rewards = some_ratings(8)
    agent.replay(users, items, rewards)
    features, (_, psi) = agent.state.item_factors, offline_items(policy)
    mean, covariance = posterior(features[items[users == 0]], rewards[users == 0], 0.4, 0.8)
    draws = np.empty((4000, N_ITEMS))
    for number in range(len(draws)):
        agent.select(0)
        draws[number] = agent.slate.scores
    variance = np.einsum("ia,ab,ib->i", features, covariance, features) + np.einsum("a,iab,b->i", mean, psi, mean)
    variance += np.einsum("ab,iba->i", covariance, psi)
    assert np.abs((draws.mean(axis=0) - features @ mean) / np.sqrt(variance / len(draws))).max() < 4
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.12)


def test_items_learned_online_regress_on_the_users_of_the_moment() -> None:
    policy = ICF(items="online", rank=RANK, noise=0.4, user_scale=0.8, item_scale=1.3)
    assert policy.needs == ()
    agent = agent_of(policy)
    features = 1.3 * stream(5, "icf items").normal(size=(N_ITEMS, RANK))
    shown: list[list[Array]] = [[] for _ in range(N_USERS)]
    met: list[list[Array]] = [[] for _ in range(N_ITEMS)]
    users, items, rewards = some_ratings()
    for step, (user, item) in enumerate(zip(users, items, strict=True)):
        shown[user].append(features[item].copy())
        mine = users[: step + 1] == user
        mean, _ = posterior(np.array(shown[user]), rewards[: step + 1][mine], 0.4, 0.8)
        met[item].append(mean)
        features[item], _ = posterior(np.array(met[item]), rewards[: step + 1][items[: step + 1] == item], 0.4, 1.3)
    agent.replay(users, items, rewards)
    np.testing.assert_allclose(agent.state.item_factors, features, atol=1e-8)


def test_epsilon_is_a_probability() -> None:
    with pytest.raises(InvalidInput, match="exploration is 2, the probability to explore; accepted: at most 1"):
        ICF(strategy="epsilon-greedy", exploration=2.0)
    agent = agent_of(ICF(strategy="epsilon-greedy", rank=RANK, exploration=0.3))
    agent.replay(*some_ratings())
    choices = [agent.select(0) for _ in range(2000)]
    best = int(agent.slate.scores.argmax())
    assert {choice.propensity for choice in choices} == {0.3 / N_ITEMS, 0.3 / N_ITEMS + 0.7}
    assert 0.7 < np.mean([choice.item == best for choice in choices]) < 0.77
