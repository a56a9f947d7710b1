"""The compatible set and the pooled bounds against a plain transcription; known classes."""

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.checks.worlds import Checkerboard
from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.policies.latent_ucb import LatentUCB, class_means

pytestmark = pytest.mark.xdist_group("latent-ucb")

USERS, ITEMS = 7, 5


def taught(policy: LatentUCB, n_ratings: int = 300) -> tuple[Agent, np.ndarray, np.ndarray]:
    """Two classes of users, who come unequally often; returns the agent, and tables of counts and of sums."""
    random = np.random.default_rng(1)
    users = random.choice(USERS, n_ratings, p=np.arange(1, USERS + 1) / 28)
    items = random.integers(ITEMS, size=n_ratings)
    rewards = (items + (users % 2) * 2) % ITEMS + random.uniform(-0.5, 0.5, n_ratings)
    agent = Agent(policy, USERS + 1, ITEMS + 1)
    agent.replay(users, items, rewards)
    plays, totals = np.zeros((USERS + 1, ITEMS + 1)), np.zeros((USERS + 1, ITEMS + 1))
    np.add.at(plays, (users, items), 1.0)
    np.add.at(totals, (users, items), rewards)
    agent.extent = np.ptp(rewards)  # type: ignore[attr-defined]
    return agent, plays, totals


def compatible(plays: np.ndarray, totals: np.ndarray, user: int, other: int, radius: float, gamma: float) -> bool:
    """As the paper has it: intervals intersect, and the other's lies in the user's, widened."""
    visits = plays.sum(axis=1)
    widening = 1.0 + max(np.sqrt(2.0 * gamma * np.log(visits[other]) / np.log(visits[user])) - 1.0, 0.0)
    for item in np.flatnonzero((plays[user] > 0) & (plays[other] > 0)):
        means = totals[[user, other], item] / plays[[user, other], item]
        widths = radius * np.sqrt(2.0 * np.log(visits[[user, other]] ** 3) / plays[[user, other], item])
        low, high = means - widths, means + widths
        if max(low) > min(high):
            return False
        if low[1] < means[0] - widening * widths[0] or high[1] > means[0] + widening * widths[0]:
            return False
    return True


@pytest.mark.parametrize("gamma", [1.0, 3.0, 30.0])  # the last so wide that only intervals that do not meet tell users apart
def test_the_compatible_set_and_the_pooled_bounds(gamma: float) -> None:
    agent, plays, totals = taught(LatentUCB(scale=0.12, imbalance=gamma))
    radius = 0.12 * agent.extent  # type: ignore[attr-defined]
    sizes = set()
    for user in range(USERS):
        agent.select(user)
        pooled = np.array([compatible(plays, totals, user, other, radius, gamma) for other in range(USERS)])
        assert np.array_equal(agent.scratch.pooled[:USERS], pooled)
        sizes.add(int(pooled.sum()))
        counts, sums = plays[:USERS][pooled].sum(axis=0), totals[:USERS][pooled].sum(axis=0)
        means = sums[:ITEMS] / counts[:ITEMS]
        np.testing.assert_allclose(agent.slate.means[:ITEMS], means, rtol=1e-12)
        bounds = means + radius * np.sqrt(2.0 * np.log(counts.sum() ** 3) / counts[:ITEMS])
        np.testing.assert_allclose(agent.slate.scores[:ITEMS], bounds, rtol=1e-12)
        assert agent.slate.scores[ITEMS] == np.inf
        assert agent.select(user, list(range(ITEMS))).item == bounds.argmax()
    assert len(sizes) > 1


def test_a_user_alone() -> None:
    agent, plays, totals = taught(LatentUCB(variant="user", scale=0.3))
    for user in (2, 6):
        agent.select(user)
        rated = np.flatnonzero(plays[user])
        widths = 0.3 * agent.extent * np.sqrt(6.0 * np.log(plays[user].sum()) / plays[user][rated])  # type: ignore[attr-defined]
        np.testing.assert_allclose(agent.slate.scores[rated], totals[user][rated] / plays[user][rated] + widths, rtol=1e-12)


def test_classes_that_are_known() -> None:
    means = np.array([[5.0, 1.0, 1.0], [1.0, 4.0, 1.0]])[np.arange(6) % 2]
    agent = Agent(LatentUCB(variant="known", n_classes=2, scale=0.1), 6, 3, truth=Truth(means, None))
    assert agent.select(1).item == 0  # both classes are admissible, and the first promises more
    agent.replay([1] * 4, [0, 1, 0, 1], [1.0, 4.0, 1.0, 4.0])
    assert (agent.select(1).item, agent.select(1).score) == (1, 4.0)
    agent.replay([2, 2, 2], [0, 0, 1], [3.0, 3.0, 2.0])
    assert agent.select(2).item == 2  # neither class has such means: what was shown least
    assert simulate(LatentUCB(variant="known", n_classes=2, scale=0.1), Checkerboard(), 500, seed=0).pseudo_regret[100:].sum() == 0.0


def test_classes_are_found_among_true_means() -> None:
    centers = np.array([[0.0, 4.0], [4.0, 0.0], [9.0, 9.0]])
    random = np.random.default_rng(0)
    found = class_means(centers[random.integers(3, size=40)] + random.normal(0.0, 0.01, (40, 2)), 3)
    np.testing.assert_allclose(found.T[np.argsort(found[0])], centers, atol=0.02)
    with pytest.raises(InvalidInput, match="synthetic"):
        class_means(np.array([[1.0, -np.inf]]), 1)
