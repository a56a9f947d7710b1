"""UCB1 per user against its closed form."""

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.user_ucb import UserUCB

pytestmark = pytest.mark.xdist_group("user-ucb")


def test_every_user_tries_every_item_once_before_any_is_repeated() -> None:
    recording = simulate(UserUCB(), Gaussian(n_users=3, n_items=20, rank=2), horizon=120, seed=0)
    for user in range(3):
        items = recording.items[recording.users == user]
        assert sorted(items[:20]) == list(range(20))


def test_scores_are_the_closed_form() -> None:
    random = np.random.default_rng(0)
    users, items, rewards = random.integers(3, size=200), random.integers(6, size=200), random.normal(size=200)
    agent = Agent(UserUCB(scale=0.7), n_users=4, n_items=7)
    agent.replay(users, items, rewards)
    for user in range(3):
        mine = users == user
        plays, totals = np.bincount(items[mine]), np.bincount(items[mine], rewards[mine])
        expected = totals / plays + 0.7 * np.sqrt(2 * np.log(mine.sum()) / plays)
        assert agent.select(user).item == 6
        np.testing.assert_allclose(agent.slate.scores, [*expected, np.inf], rtol=1e-12)
        np.testing.assert_allclose(agent.slate.means, [*(totals / plays), rewards[mine].mean()], rtol=1e-12)
        assert agent.select(user, [4, 1, 5]).item == [4, 1, 5][expected[[4, 1, 5]].argmax()]
    assert agent.select(3).score == np.inf


def test_nobody_learns_from_others() -> None:
    alone, together = (Agent(UserUCB(), n_users=2, n_items=5) for _ in range(2))
    alone.replay([0] * 5, range(5), [1.0, 2.0, 3.0, 2.0, 1.0])
    together.replay([1, 0, 0, 1, 0, 0, 1, 0], [3, 0, 1, 0, 2, 3, 2, 4], [9.0, 1.0, 2.0, 9.0, 3.0, 2.0, 9.0, 1.0])
    assert alone.select(0) == together.select(0)
    assert np.array_equal(alone.slate.scores, together.slate.scores)


def test_what_scratch_holds_does_not_matter() -> None:
    agent = Agent(UserUCB(), n_users=2, n_items=4)
    agent.replay([0, 0, 1], [0, 1, 2], [1.0, 2.0, 3.0])
    for candidates in (None, [3, 1], [2, 0]):
        choices = []
        for content in (-1, 0, 2):
            agent.scratch.entries[:] = content
            agent.select(0, candidates)
            choices.append(agent.slate.scores[: 4 if candidates is None else 2].tolist())
        assert choices[0] == choices[1] == choices[2]
