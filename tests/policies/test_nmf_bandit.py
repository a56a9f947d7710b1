"""How often and with what NMF-Bandit explores, and its fits against a plain transcription."""

import math
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from albatross import Agent, simulate
from albatross.core.errors import InvalidInput
from albatross.core.state import reserve
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian
from albatross.kernels.operations import update
from albatross.policies.nmf_bandit import FIRST_ROUNDS, LEAST, NEXT_ROUNDS, REFIT_INTERVAL, RIDGE, SWEEPS, NMFBandit

pytestmark = pytest.mark.xdist_group("nmf-bandit")

Array = NDArray[np.float64]
Ratings = tuple[NDArray[np.int64], NDArray[np.int64], Array]

EXPLORES_ONLY = NMFBandit(rank=2, exploration=2, set_size=2, data="explore-only")


def some_ratings(n_ratings: int, n_users: int = 8, n_items: int = 10, lift: float = 0.0) -> Ratings:
    random = np.random.default_rng(1)
    users, items = random.integers(n_users, size=n_ratings), random.integers(n_items, size=n_ratings)
    means = random.random((n_users, 2)) @ random.random((n_items, 2)).T
    return users, items, means[users, items] + lift


def chances(agent: Agent, user: int, candidates: list[int]) -> dict[int, float]:
    """How probable a choice is that explores: S and R_u are one box of tickets."""
    drawn = [item for item in [*np.flatnonzero(agent.state.shared), *agent.state.own[user]] if item in candidates]
    return {item: drawn.count(item) / len(drawn) for item in candidates} if drawn else dict.fromkeys(candidates, 1 / len(candidates))


@pytest.mark.parametrize("schedule", ["nobeta", "theory"])
def test_explores_as_often_as_predicted(schedule: str) -> None:
    """About a (1 + ln(T/a)) times: 711 of 25,000 at a = 110."""
    horizon, n_users = 25_000, 2
    policy = NMFBandit(rank=5, exploration=2, set_size=25, schedule=schedule, data="explore-only")
    certain = 110 * (n_users if schedule == "theory" else 1)
    agent = Agent(policy, n_users, n_items=5, seed=0)
    agent.replay(np.arange(horizon) % 2, np.arange(horizon) % 5, np.ones(horizon))
    explored = agent.state.pairs.plays.sum()
    probabilities = np.minimum(1.0, certain / np.arange(1, horizon + 1))
    spread = math.sqrt((probabilities * (1 - probabilities)).sum())
    assert probabilities.sum() == pytest.approx(certain * (1 + math.log(horizon / certain)), rel=0.01)
    assert abs(explored - probabilities.sum()) < 3 * spread


def test_fits_what_was_explored_and_nothing_else() -> None:
    """What `select` drew by chance is what `update` remembers, and it is fitted before the estimates decide."""
    agent = Agent(EXPLORES_ONLY, n_users=5, n_items=12, seed=0)
    exploited = 0
    for step in range(300):
        user, known, before = step % 5, agent.state.pairs.plays.sum(), agent.exploring.bit_generator.state
        choice = agent.select(user)
        explored = agent.exploring.bit_generator.state != before
        exploited += not explored
        waiting = agent.state.counts[1]
        assert explored or (waiting == 0 and choice.score == agent.slate.scores.max())
        agent.update(user, choice.item, 1.0 + choice.item % 3)
        assert agent.state.pairs.plays.sum() == known + explored
    assert 100 < exploited < 290


def test_explores_among_the_candidates_that_are_in_a_set() -> None:
    agent = Agent(NMFBandit(set_size=3), n_users=4, n_items=30, seed=2)
    shared, own = set(np.flatnonzero(agent.state.shared).tolist()), set(agent.state.own[1].tolist())
    assert len(shared) == 6
    assert len(own) == 3
    assert shared & own, "an item in both sets has two tickets; this seed has one"
    others = sorted(set(range(30)) - shared - own)
    offers = {
        "whole catalogue": list(range(30)),
        "some of both": [*others[:5], *(shared & own), *sorted(shared - own)[:2], *sorted(own - shared)[:1]],
        "own alone": [*others[:5], *sorted(own - shared)],
        "shared alone": [*sorted(shared - own), *others[:5]],
        "neither": others[:6],
    }
    for name, candidates in offers.items():
        expected = chances(agent, 1, candidates)
        choices = [agent.select(1, None if name == "whole catalogue" else candidates) for _ in range(400)]
        counts = {item: sum(choice.item == item for choice in choices) for item in candidates}
        possible = [item for item in candidates if expected[item] > 0]
        assert sum(counts[item] for item in possible) == 400, name
        assert chisquare([counts[item] for item in possible], [400 * expected[item] for item in possible]).pvalue > 1e-3, name
        assert all(choice.propensity == pytest.approx(expected[choice.item]) for choice in choices), name


def test_propensity_is_the_frequency_over_coins() -> None:
    agent = Agent(NMFBandit(rank=2, exploration=1, set_size=2), n_users=3, n_items=8, seed=0)
    agent.replay(*some_ratings(12, 3, 8))
    coins = np.random.default_rng(0).random(3000)
    propensities: dict[int, float] = {}
    counts = dict.fromkeys(range(8), 0)
    for coin in coins:
        agent.state.coin[0] = coin
        choice = agent.select(0)
        counts[choice.item] += 1
        assert propensities.setdefault(choice.item, choice.propensity) == choice.propensity
    assert sum(propensities.values()) == pytest.approx(1.0)
    assert chisquare([counts[item] for item in propensities], [3000 * chance for chance in propensities.values()]).pvalue > 1e-3


def test_the_propensity_of_the_best_item_counts_its_tickets() -> None:
    """Where the whole catalogue is offered, tickets are only counted; where every item is named, they are handed out."""
    agent = Agent(NMFBandit(rank=2, exploration=1, set_size=3), n_users=12, n_items=8, seed=0)
    agent.replay(*some_ratings(60, 12, 8))
    agent.state.coin[0] = 0.999
    choices = [agent.select(user) for user in range(12)]
    assert any(choice.item in agent.state.own[user] for user, choice in enumerate(choices)), "no best item has a ticket of its user's own"
    assert any(choice.item not in agent.state.own[user] for user, choice in enumerate(choices))
    for user, choice in enumerate(choices):
        named = agent.select(user, list(range(8)))
        assert named.item == choice.item
        assert named.propensity == pytest.approx(choice.propensity, rel=1e-12)


def test_every_item_is_in_equally_many_hands() -> None:
    own = Agent(NMFBandit(set_size=5), n_users=100, n_items=20, seed=0).state.own
    assert np.bincount(own.ravel()).tolist() == [25] * 20
    assert all(len(set(hand.tolist())) == 5 for hand in own)


def test_growth_leaves_old_sets_and_lets_new_users_explore_new_items() -> None:
    agent = Agent(NMFBandit(set_size=5), n_users=10, n_items=3, seed=0)
    before = agent.state
    agent.grow(200, 60)
    assert np.array_equal(agent.state.own[:10], before.own)
    assert np.array_equal(agent.state.shared[:3], before.shared)
    assert agent.state.shared[3:].any()
    assert set(agent.state.own[10:].ravel().tolist()) == set(range(60))


def descend(vectors: Array, ratings: Array, start: Array) -> Array:
    """Coordinate descent for one row, as in a textbook."""
    solution = start.copy()
    for _ in range(SWEEPS):
        for a in range(len(solution)):
            rest = ratings - np.delete(vectors, a, 1) @ np.delete(solution, a)
            solution[a] = max(float(vectors[:, a] @ rest) / float(vectors[:, a] @ vectors[:, a] + RIDGE), LEAST)
    return solution


def plain_fit(ratings: Ratings, factors: list[Array], n_rounds: int) -> None:
    users, items, rewards = ratings
    target = rewards - min(0.0, rewards.min())
    for _ in range(n_rounds):
        for side, (own, other) in enumerate([(users, items), (items, users)]):
            for row in range(len(factors[side])):
                mine = own == row
                factors[side][row] = descend(factors[1 - side][other[mine]], target[mine], factors[side][row])


@pytest.mark.parametrize("lift", [0.0, -3.0], ids=["positive", "negative"])
def test_fits_equal_a_plain_transcription(lift: float) -> None:
    """One user and one item without ratings among them; more users than are solved side by side at once."""
    n_users, n_items = 70, 11
    agent = Agent(NMFBandit(rank=3), n_users, n_items, seed=4)
    factors = [agent.state.user_factors.copy(), agent.state.item_factors.copy()]
    ratings = some_ratings(2 * REFIT_INTERVAL, n_users - 1, n_items - 1, lift)
    for n_ratings, n_rounds in ((REFIT_INTERVAL, FIRST_ROUNDS), (2 * REFIT_INTERVAL, NEXT_ROUNDS)):
        seen = (ratings[0][:n_ratings], ratings[1][:n_ratings], ratings[2][:n_ratings])
        agent.replay(*(column[n_ratings - REFIT_INTERVAL :] for column in seen))
        plain_fit(seen, factors, n_rounds)
        np.testing.assert_allclose(agent.state.user_factors, factors[0], atol=1e-9)
        np.testing.assert_allclose(agent.state.item_factors, factors[1], atol=1e-9)
        agent.select(2)
        np.testing.assert_allclose(agent.slate.means, factors[1] @ factors[0][2] + min(0.0, seen[2].min()), atol=1e-9)


@pytest.mark.parametrize("lift", [0.0, -7.0], ids=["positive", "negative"])
@pytest.mark.parametrize("solver", ["anchors", "hottopixx"])
def test_pure_users_explain_a_separable_world(solver: str, lift: float) -> None:
    """Everybody has rated everything; users are mixtures of three, so each rating follows from their shares, shifted or not."""
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(3), 20)
    shares[[4, 9, 11]] = np.eye(3)
    means = shares @ (5 * random.random((3, 16)) + 1) + lift
    agent = Agent(NMFBandit(rank=3, set_size=8, solver=solver), 20, 16, seed=0)
    users, items = np.divmod(np.arange(320), 16)
    agent.replay(np.tile(users, 5), np.tile(items, 5), np.tile(means.ravel(), 5))
    np.testing.assert_allclose(agent.state.user_factors.sum(axis=1), 1.0)
    for user in range(20):
        agent.select(user)
        np.testing.assert_allclose(agent.slate.means, means[user], atol=0.1)


@pytest.mark.parametrize("solver", ["masked", "anchors", "hottopixx"])
def test_compiled_equals_interpreted(solver: str) -> None:
    policy = NMFBandit(rank=2, set_size=3, solver=solver, data="explore-only")
    users, items, rewards = some_ratings(55, 6, 7)
    compiled, interpreted = (Agent(policy, 6, 7, seed=3) for _ in range(2))
    compiled.replay(users, items, rewards)
    interpreted.state = reserve(interpreted.state, users.size)
    for user, item, reward in zip(users, items, rewards, strict=True):
        update(interpreted.state, interpreted.settings, interpreted.scratch, user, item, reward, interpreted.learning)
    assert compiled.state_id == interpreted.state_id
    assert compiled.state.counts[2] > 0, "nothing was fitted"


def test_hottopixx_refuses_what_would_take_hours() -> None:
    policy = NMFBandit(set_size=25, solver="hottopixx")
    policy.init(40, 200, lambda purpose: stream(0, purpose), None)
    with pytest.raises(InvalidInput, match=r"200 users and 50 shared items .* 2000000 coefficients .* at most 100000"):
        policy.init(200, 200, lambda purpose: stream(0, purpose), None)


def test_hottopixx_without_scipy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    Agent(NMFBandit(), 3, 4)
    with pytest.raises(InvalidInput, match=r"pip install 'scipy>=1.14'"):
        Agent(NMFBandit(solver="hottopixx"), 3, 4)


def test_mean_pseudo_regret() -> None:
    """One seed says little; the mean of ten lies here for every correct implementation."""
    policy = NMFBandit(exploration=2, set_size=25)
    totals = [simulate(policy, Gaussian(), horizon=25_000, seed=seed).pseudo_regret.sum() for seed in range(10)]
    assert 33_000 <= np.mean(totals) <= 42_000
