"""Facts of rarely switching."""

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.core.state import reserve
from albatross.environments.synthetic import Bernoulli, Gaussian, Synthetic, Uniform
from albatross.kernels.operations import ALL_ITEMS
from albatross.kernels.search.catalogue import SEARCHED_FROM
from albatross.policies.alb import ALB
from albatross.policies.alb_rs import ALBRS, choose_item, is_due, learn_rating

pytestmark = pytest.mark.xdist_group("alb-rs")


@pytest.mark.parametrize("world", [Gaussian(), Uniform(candidates=30), Bernoulli()])
def test_without_patience_it_is_alb_bit_for_bit(world: Synthetic) -> None:
    for seed in range(3):
        alb = simulate(ALB(ridge=0.1, noise=0.5), world, horizon=5000, seed=seed)
        rarely = simulate(ALBRS(ridge=0.1, noise=0.5, patience=0.0), world, horizon=5000, seed=seed)
        assert alb.items.tobytes() == rarely.items.tobytes()


def lived(patience: float) -> Agent:
    recording = simulate(ALBRS(ridge=0.01, noise=0.5, patience=patience), Gaussian(), horizon=10_000, seed=0)
    agent = Agent(ALBRS(ridge=0.01, noise=0.5, patience=patience), 200, 200, seed=0)
    agent.replay(recording.users, recording.items, recording.rewards)
    assert agent.state_id == recording.state_id
    return agent


def test_more_patience_means_fewer_switches() -> None:
    switches = [int(lived(patience).state.switches[0]) for patience in (0.0, 0.1, 1.0)]
    assert switches[0] == 10_000
    assert switches[0] > switches[1] > switches[2] >= 200  # each of the users is placed at least once


def test_between_switches_the_user_stays_and_the_inverse_counts_what_was_shown() -> None:
    agent = Agent(ALBRS(rank=3, ridge=0.5, patience=1e6), n_users=1, n_items=6, seed=1)
    agent.update(0, agent.select(0).item, 2.0)
    placed = agent.state.user_factors[0].copy()
    precision = np.linalg.inv(agent.state.user_inverses[0])
    for reward in (1.0, -2.0, 3.0):
        choice = agent.select(0)
        shown = agent.state.item_factors[choice.item].copy()
        assert choice.score == pytest.approx(placed @ shown)
        agent.update(0, choice.item, reward)
        precision += np.outer(shown, shown)
        np.testing.assert_array_equal(agent.state.user_factors[0], placed)
        np.testing.assert_allclose(np.linalg.inv(agent.state.user_inverses[0]), precision, rtol=1e-9)
    assert agent.state.switches[0] == 1
    first = 0.5 * np.eye(3)
    assert agent.state.user_growth[0] == pytest.approx(np.linalg.slogdet(precision)[1] - np.linalg.slogdet(first)[1])


@pytest.mark.parametrize("n_items", [6, SEARCHED_FROM])
def test_between_switches_the_mean_is_expected_and_the_score_hoped_for(n_items: int) -> None:
    """Interpreted, because a large catalogue takes longer to compile than to search."""
    agent = Agent(ALBRS(rank=3, ridge=0.5, patience=1.0), n_users=1, n_items=n_items, seed=1)
    state, settings = reserve(agent.state, 4), ALBRS(rank=3, ridge=0.5, patience=1.0).settings()
    for item in range(4):
        learn_rating(state, settings, agent.scratch, 0, item, 2.0, agent.learning)
    assert not is_due(state, settings, 0)
    slate = agent.slate._replace(whole=False)
    best, _ = choose_item(state, settings, agent.scratch, 0, ALL_ITEMS, slate, agent.exploring)
    assert slate.means[best] == pytest.approx(state.user_centers[0] @ state.item_factors[best])
    assert slate.scores[best] == pytest.approx((state.item_factors @ state.user_factors[0]).max())
    assert slate.means[best] < slate.scores[best] - 0.1
