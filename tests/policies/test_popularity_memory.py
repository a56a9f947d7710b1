"""What popularity with memory expects, and that it stays with what scores at the top."""

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.checks.worlds import Checkerboard
from albatross.policies.popularity_memory import PopularityMemory

pytestmark = pytest.mark.xdist_group("popularity-memory")


@pytest.mark.parametrize("top", [None, 3.2])
def test_scores_are_the_closed_form(top: float | None) -> None:
    random = np.random.default_rng(0)
    users, items, rewards = random.integers(5, size=60), random.integers(14, size=60), random.normal(3.0, 1.0, 60)
    agent = Agent(PopularityMemory(top=top), n_users=6, n_items=15)
    agent.replay(users, items, rewards)
    plays, totals = np.bincount(items, minlength=15), np.bincount(items, rewards, minlength=15)
    popularity = (totals + rewards.mean()) / (plays + 1)
    hoped = np.minimum(popularity + rewards.std() / np.sqrt(1 + plays), rewards.max() if top is None else top)
    for user in range(6):
        scores, means = hoped.copy(), popularity.copy()
        for item in set(items[users == user].tolist()):
            scores[item] = means[item] = rewards[(users == user) & (items == item)].mean()
        choice = agent.select(user)
        np.testing.assert_allclose(agent.slate.scores, scores, rtol=1e-12)
        np.testing.assert_allclose(agent.slate.means, means, rtol=1e-12)
        assert choice.score == pytest.approx(scores.max())
        offered = random.choice(15, 4, replace=False)
        assert agent.select(user, offered).score == pytest.approx(scores[offered].max())


@pytest.mark.parametrize("top", [None, 4.9])
def test_a_top_rating_is_shown_for_ever(top: float | None) -> None:
    """4.9 added up many times and divided again is not 4.9, and new items hope for all of 4.9."""
    agent = Agent(PopularityMemory(top=top), n_users=3, n_items=4)
    agent.replay([1, 2, 2], [0, 0, 2], [4.9, 1.0, 4.9])
    assert agent.select(0, [1, 2]).item in (1, 2)
    agent.update(0, 3, 4.9)
    for _ in range(300):
        choice = agent.select(0)
        assert (choice.item, choice.propensity) == (3, 1.0)
        agent.update(0, choice.item, 4.9)


def test_below_the_top_it_goes_on_looking() -> None:
    agent = Agent(PopularityMemory(top=5), n_users=2, n_items=3)
    agent.replay([1, 1, 1, 0], [0, 1, 2, 0], [4.0, 5.0, 3.0, 4.0])
    assert agent.select(0).item == 1


def test_equal_ratings_alone_do_not_stop_the_search() -> None:
    agent = Agent(PopularityMemory(), n_users=1, n_items=8)
    shown = set()
    for _ in range(60):
        item = agent.select(0).item
        shown.add(item)
        agent.update(0, item, 3.0)
    assert len(shown) > 4


def test_every_user_finds_their_own_colour() -> None:
    recording = simulate(PopularityMemory(), Checkerboard(), horizon=2000, seed=0)
    assert recording.pseudo_regret[-1000:].sum() == 0.0
