"""Agreement counts, shares and coins against a plain transcription, on forced choices."""

import numpy as np
import pytest

from albatross import Agent
from albatross.core.streams import stream
from albatross.policies.collaborative_greedy import CollaborativeGreedy

pytestmark = pytest.mark.xdist_group("collaborative-greedy")

USERS, ITEMS = 6, 10


class Transcription:
    """The paper's rule with tables of users × items, one user per step."""

    def __init__(self, policy: CollaborativeGreedy, seed: int) -> None:
        self.policy = policy
        self.rated = np.zeros((USERS, ITEMS))
        self.liked = np.zeros((USERS, ITEMS))
        self.joint = np.zeros((USERS, ITEMS))
        self.coin, self.random = 1.0, stream(seed, "learning")
        self.order = np.argsort(stream(seed, "order of items").random(ITEMS))

    def purpose(self, user: int) -> str:
        alone = max((self.rated.sum(axis=1) > 0).sum(), 1) ** -self.policy.decay
        together = (1.0 + self.rated[user].sum()) ** -self.policy.decay
        return "alone" if self.coin < alone else "together" if self.coin < alone + together else "greedy"

    def shares(self, user: int) -> np.ndarray:
        overlap = (self.joint != 0).astype(float) @ (self.joint[user] != 0)
        neighbors = self.joint @ self.joint[user] >= self.policy.agreement * overlap
        plays = self.rated[neighbors].sum(axis=0)
        return np.where(plays > 0, self.liked[neighbors].sum(axis=0) / np.maximum(plays, 1), 0.5)

    def learn(self, user: int, item: int, liked: bool) -> None:
        if self.purpose(user) == "together" and not self.rated[user, item]:
            self.joint[user, item] = 1 if liked else -1
        self.rated[user, item] += 1
        self.liked[user, item] += liked
        self.coin = self.random.random()


@pytest.mark.parametrize("variant", ["norepeat", "repeat"])
@pytest.mark.parametrize("agreement", [0.0, 0.5])
def test_forced_choices_agree_with_a_transcription(variant: str, agreement: float) -> None:
    policy = CollaborativeGreedy(threshold=4, agreement=agreement, decay=0.3, variant=variant)
    agent, paper = Agent(policy, USERS, ITEMS, seed=2), Transcription(policy, seed=2)
    random = np.random.default_rng(0)
    purposes = []
    for _ in range(150):
        user, item = int(random.integers(USERS)), int(random.integers(ITEMS))
        choice = agent.select(user)
        rated, shares = paper.rated[user] > 0, paper.shares(user)
        np.testing.assert_array_equal(agent.slate.means, shares)
        np.testing.assert_array_equal(agent.slate.scores, shares - 2.0 * rated if variant == "norepeat" else shares)
        purposes.append("greedy" if rated.all() else paper.purpose(user))
        if purposes[-1] == "greedy":
            assert choice.score == agent.slate.scores.max()
        elif purposes[-1] == "together":
            assert choice.item == next(item for item in paper.order if not rated[item])
        else:
            assert not rated[choice.item]
            assert choice.propensity == pytest.approx(1.0 / (~rated).sum())
        reward = float(random.integers(1, 6))
        agent.update(user, item, reward)
        paper.learn(user, item, reward >= 4)
    assert {"alone", "together", "greedy"} == set(purposes)


def test_agreement_is_counted_over_joint_exploration_alone() -> None:
    policy = CollaborativeGreedy(threshold=4, decay=0.3)
    agent, paper = Agent(policy, USERS, ITEMS, seed=1), Transcription(policy, seed=1)
    random = np.random.default_rng(3)
    for _ in range(80):
        user, item, reward = int(random.integers(USERS)), int(random.integers(ITEMS)), float(random.integers(1, 6))
        agent.update(user, item, reward)
        paper.learn(user, item, reward >= 4)
    assert 0 < (paper.joint != 0).sum() < (paper.rated > 0).sum()
    for user in range(USERS):
        agent.select(user)
        np.testing.assert_array_equal(agent.scratch.accord, paper.joint @ paper.joint[user])
        np.testing.assert_array_equal(agent.scratch.overlap, (paper.joint != 0).astype(float) @ (paper.joint[user] != 0))


def test_nothing_is_shown_twice_while_something_is_left() -> None:
    agent = Agent(CollaborativeGreedy(threshold=4), 2, ITEMS, seed=0)
    shown = []
    for _ in range(ITEMS):
        shown.append(agent.select(0).item)
        agent.update(0, shown[-1], 5.0)
    assert sorted(shown) == list(range(ITEMS))
    assert 0 <= agent.select(0).item < ITEMS
