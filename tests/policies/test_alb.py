"""ALB against Algorithm 1 as printed, and the facts its ellipsoid obeys."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_alb import Arithmetic, LiteralALB
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.state import reserve
from albatross.environments.synthetic import Gaussian
from albatross.kernels import linear
from albatross.kernels.alternating import steps as alternating
from albatross.kernels.alternating.steps import REBUILD_INTERVAL
from albatross.kernels.operations import ALL_ITEMS, select, update
from albatross.kernels.search import scoring
from albatross.policies.alb import ALB

pytestmark = pytest.mark.xdist_group("alb")

FLOAT = Arithmetic(float, math.sqrt, math.log)
EXTENDED = Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.log)
TOLERANCE = 1e-8


def relative_error(given: Any, expected: Any, least_size: float = 1e-300) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(given - np.asarray(expected)).max() / max(np.abs(expected).max(), least_size))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("restricted", [False, True], ids=["all items", "restricted"])
@pytest.mark.parametrize(
    ("policy", "binary"),
    [
        pytest.param(ALB(rank=5, ridge=0.01, noise=0.5), False, id="gaussian"),
        pytest.param(ALB(rank=3, user_ridge=0.3, item_ridge=0.05, noise=0.9, confidence=0.2, norm_bound=2.0), False, id="unequal ridges"),
        pytest.param(ALB(rank=4, ridge=1.0, noise=0.4), True, id="zeros and ones"),
    ],
)
def test_every_step_is_that_of_algorithm_1(policy: ALB, binary: bool, restricted: bool, seed: int) -> None:
    """Each step from a common state, because ALB magnifies rounding errors; half of the actions are not the policy's own."""
    random = np.random.default_rng(seed)
    n_users, n_items = 9, 14
    world = Gaussian(n_users=n_users, n_items=n_items, rank=4).world(seed)
    means = world.user_factors @ world.item_factors.T
    agent = Agent(policy, n_users, n_items, seed)
    literal = LiteralALB(agent.state.user_factors, agent.state.item_factors, policy.settings(), FLOAT)
    for step in range(250):
        user = int(random.integers(n_users))
        candidates = random.permutation(n_items)[: int(random.integers(1, n_items))].tolist() if restricted else list(range(n_items))
        choice = agent.select(user, candidates if restricted else None)
        scores = literal.scores(user, candidates)
        assert relative_error(agent.slate.scores[: len(candidates)], scores) < TOLERANCE, f"scores at step {step}"
        at_choice = scores[candidates.index(choice.item)]
        assert at_choice >= max(scores) - TOLERANCE * max(map(abs, scores)), f"choice at step {step}"

        item = choice.item if step % 2 == 0 else int(random.choice(candidates))
        reward = float(means[user, item] > 1.0) if binary else float(means[user, item] + 0.5 * random.standard_normal())
        agent.update(user, item, reward)
        literal.learn(user, item, reward)
        user_factors, item_factors = agent.state.user_factors, agent.state.item_factors
        assert relative_error(user_factors[user], literal.A[user]) < TOLERANCE, f"A at step {step}"
        # Where the terms of a sum cancel, exchanging them one by one leaves their rounding errors: hence not relative to less than 1e-6.
        assert relative_error(item_factors[item], literal.B[item], least_size=1e-6) < TOLERANCE, f"B at step {step}"
        literal.adopt(user, user_factors[user], item, item_factors[item])
        assert (user_factors == literal.A).all(), "another user's vector changed"
        assert (item_factors == literal.B).all(), "another item's vector changed"


def extended(arrays: Any) -> Any:
    """A tuple of arrays with every float replaced by a number of extended precision."""
    if isinstance(arrays, tuple):
        return type(arrays)(*map(extended, arrays))
    if isinstance(arrays, int):  # a switch, or nothing
        return arrays
    return arrays.astype(object) + mpmath.mpf(0) if arrays.dtype.kind == "f" else arrays.copy()


@pytest.mark.parametrize(("rank", "n_offered"), [(3, 10), (2, 6), (1, 10)], ids=["all items", "restricted", "rank one"])
def test_choices_are_those_of_algorithm_1_in_extended_precision(rank: int, n_offered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy's own functions, interpreted, live freely for 300 steps with numbers of 130 digits."""
    for module in (alternating, linear, scoring):
        monkeypatch.setattr(module, "math", mpmath)
    random = np.random.default_rng(0)
    n_users, n_items, steps = 12, 10, 300
    policy = ALB(rank=rank, ridge=0.01, noise=0.5)
    means = random.standard_normal((n_users, 3)) @ random.standard_normal((3, n_items))
    agent = Agent(policy, n_users, n_items)
    with mpmath.workdps(130):
        literal = LiteralALB(agent.state.user_factors, agent.state.item_factors, policy.settings(), EXTENDED)
        state, scratch, slate = (extended(each) for each in (reserve(agent.state, steps), agent.scratch, agent.slate))
        constants = policy.settings()._replace(**{name: mpmath.mpf(value) for name, value in policy.settings()._asdict().items()})
        for step in range(steps):
            user = int(random.integers(n_users))
            offered = np.sort(random.permutation(n_items)[:n_offered]).astype(np.int32)
            candidates = offered if n_offered < n_items else ALL_ITEMS
            position, _ = select(state, constants, scratch, user, candidates, slate, random)
            item = int(offered[position])
            assert item == literal.choice(user, offered.tolist()), f"choice at step {step}"
            reward = mpmath.mpf(means[user, item] + 0.5 * random.standard_normal())
            update(state, constants, scratch, user, item, reward, random)
            literal.learn(user, item, reward)
        for ours, theirs in ((state.user_factors, literal.A), (state.item_factors, literal.B)):
            assert abs(ours - np.array(theirs)).max() < mpmath.mpf("1e-60")
        assert [literal.B[item] for item in literal.j] == literal.X
        assert [literal.A[user] for user in literal.i] == literal.Z


def test_after_a_replaced_rating_the_item_is_the_regression_of_its_ratings() -> None:
    """On the users' present vectors, and the sums are those of the ratings as they are now."""
    policy = ALB(rank=3, ridge=0.5)
    random = np.random.default_rng(5)
    users, items, rewards = random.integers(6, size=80), random.integers(7, size=80), random.integers(1, 6, 80).astype(float)
    agent = Agent(policy, 6, 7)
    agent.replay(users, items, rewards)
    for step in (0, 40, 79):
        user, item = int(users[step]), int(items[step])
        agent.select(user)
        agent.replace(user, item, rewards[step], 9.0)
        rewards[step] = 9.0
        state = agent.state
        sums = np.zeros_like(state.item_moments)
        np.add.at(sums, items, rewards[:, None] * state.user_factors[users])
        np.testing.assert_allclose(state.item_moments, sums, rtol=1e-9, atol=1e-9)
        seen = state.user_factors[users[items == item]]
        fitted = np.linalg.solve(seen.T @ seen + policy.ridge * np.eye(3), sums[item])
        np.testing.assert_allclose(state.item_factors[item], fitted, rtol=1e-8)
        rated = state.item_factors[items[users == user]]
        center = np.linalg.solve(rated.T @ rated + policy.ridge * np.eye(3), rated.T @ rewards[users == user])
        np.testing.assert_allclose(agent.select(user, [item]).mean, center @ state.item_factors[item], rtol=1e-8)


N_USERS, N_ITEMS = 4, 6
policies = st.builds(
    ALB,
    rank=st.integers(2, 6),
    user_ridge=st.sampled_from([0.001, 0.01, 0.1, 1.0]),
    item_ridge=st.sampled_from([0.001, 0.01, 0.1, 1.0]),
    noise=st.just(0.0) | st.floats(0.01, 2),
    confidence=st.floats(0.001, 0.99),
    norm_bound=st.just(0.0) | st.floats(0.01, 3),
)
rewards = st.integers(-1000, 1000).map(lambda hundredths: hundredths / 100)
ratings = st.lists(st.tuples(st.integers(0, N_USERS - 1), st.integers(0, N_ITEMS - 1), rewards), max_size=60)


def agent_with(policy: ALB, past: list[tuple[int, int, float]]) -> Agent:
    agent = Agent(policy, N_USERS, N_ITEMS)
    if past:
        agent.replay(*map(np.array, zip(*past, strict=True)))
    return agent


@settings(deadline=None, derandomize=True, max_examples=100)
@given(policy=policies, past=ratings, user=st.integers(0, N_USERS - 1), reward=rewards)
def test_the_ellipsoid(policy: ALB, past: list[tuple[int, int, float]], user: int, reward: float) -> None:
    agent = agent_with(policy, past)
    choice = agent.select(user)
    center, radius = agent.scratch.center.copy(), float(agent.scratch.radius[0])
    gram = np.tril(agent.scratch.gram) + np.tril(agent.scratch.gram, -1).T
    item_factors = agent.state.item_factors[choice.item].copy()
    agent.update(user, choice.item, reward)
    user_factors = agent.state.user_factors[user]

    ridge = policy.settings().user_ridge
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] >= ridge - 1e-13 * eigenvalues[-1], "V ⪰ λ₁I"
    least_radius = policy.noise * math.sqrt(2 * math.log(1 / policy.confidence)) + math.sqrt(ridge) * policy.norm_bound
    assert radius >= least_radius * (1 - 1e-14), "c ≥ σ √(2 log 1/δ) + √λ₁ s"

    terms = np.abs(user_factors * item_factors).sum() + abs(choice.mean)
    assert user_factors @ item_factors == pytest.approx(choice.score, rel=1e-8, abs=1e-9 * terms), "⟨A_u, B_j⟩ is the score of j"
    if item_factors.any():
        offset = user_factors - center
        rounding = 1e-13 * math.sqrt(eigenvalues[-1]) * float(np.linalg.norm(center) + np.linalg.norm(user_factors))
        assert math.sqrt(offset @ gram @ offset) == pytest.approx(radius, rel=1e-6, abs=rounding), "|A_u − μ|_V = c"


@settings(deadline=None, derandomize=True, max_examples=60)
@given(policy=policies, past=ratings, user=st.integers(0, N_USERS - 1))
def test_the_ellipsoid_is_that_of_the_ratings(policy: ALB, past: list[tuple[int, int, float]], user: int) -> None:
    """V, μ and c from the ratings and the present item vectors, in the formulas of the paper."""
    agent = agent_with(policy, past)
    choice = agent.select(user)
    items = np.array([item for rater, item, _ in past if rater == user], int)
    rewards = np.array([reward for rater, _, reward in past if rater == user])
    ridge, rows = policy.settings().user_ridge, agent.state.item_factors[items]
    gram = rows.T @ rows + ridge * np.eye(policy.rank)
    center = np.linalg.solve(gram, rows.T @ rewards)
    growth = np.linalg.slogdet(gram)[1] - policy.rank * math.log(ridge)
    radius = policy.noise * math.sqrt(max(growth, 0.0) - 2 * math.log(policy.confidence)) + math.sqrt(ridge) * policy.norm_bound
    shown = agent.state.item_factors[choice.item]
    rounding = 1e-11 * float(np.linalg.cond(gram) * np.linalg.norm(center) * np.linalg.norm(shown))
    assert choice.mean == pytest.approx(center @ shown, rel=1e-8, abs=rounding)
    assert choice.bonus == pytest.approx(radius * math.sqrt(shown @ np.linalg.solve(gram, shown)), rel=1e-6, abs=rounding)


def item_sums(agent: Agent, users: NDArray[Any], items: NDArray[Any], rewards: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Per item Σ A_u A_uᵀ, packed, and Σ y A_u, from scratch."""
    rows = agent.state.user_factors[users]
    lower = np.tril_indices(rows.shape[1])
    products = (rows[:, :, np.newaxis] * rows[:, np.newaxis, :])[:, lower[0], lower[1]]
    grams, moments = np.zeros_like(agent.state.item_grams), np.zeros_like(agent.state.item_moments)
    np.add.at(grams, items, products)
    np.add.at(moments, items, rewards[:, np.newaxis] * rows)
    return grams, moments


@pytest.mark.parametrize("n_updates", [REBUILD_INTERVAL - 1, REBUILD_INTERVAL, REBUILD_INTERVAL + 1, 3 * REBUILD_INTERVAL // 2])
def test_kept_sums_are_the_sums_of_all_ratings(n_updates: int) -> None:
    """Before, at and after the rebuild of the sums."""
    random = np.random.default_rng(3)
    users, items = random.integers(15, size=n_updates), random.integers(12, size=n_updates)
    rewards = 3 + random.standard_normal(n_updates)
    agent = Agent(ALB(rank=4, ridge=0.1), 15, 12)
    agent.replay(users, items, rewards)
    grams, moments = item_sums(agent, users, items, rewards)
    assert relative_error(agent.state.item_grams, grams) < 1e-12
    assert relative_error(agent.state.item_moments, moments) < 1e-12
    item = items[-1]
    lower = np.tril_indices(4)
    gram = np.zeros((4, 4))
    gram[lower] = gram.T[lower] = grams[item]
    assert relative_error(agent.state.item_factors[item], np.linalg.solve(gram + 0.1 * np.eye(4), moments[item])) < TOLERANCE


def test_an_item_without_direction_leaves_the_user_at_the_center() -> None:
    agent = Agent(ALB(rank=3), 2, 4)
    agent.update(user=0, item=2, reward=0.0)
    assert not agent.state.item_factors[2].any(), "a first rating of exactly zero makes the item vector zero"
    agent.update(user=1, item=2, reward=5.0)
    assert not agent.state.user_factors[1].any(), "of a stranger, the center is zero"
    assert np.isfinite(agent.state.item_factors).all()


def test_of_equal_scores_the_lowest_item_wins() -> None:
    agent = Agent(ALB(rank=2), 2, 5)
    agent.replay([0] * 5, range(5), [0.0] * 5)
    assert agent.select(user=1).item == 0
    assert agent.select(user=1, candidates=[2, 3, 4]).item == 2


def test_one_ridge_sets_both_unless_each_is_given() -> None:
    assert ALB(ridge=0.3).settings()[:2] == (0.3, 0.3)
    assert ALB(ridge=0.3, user_ridge=0.1).settings()[:2] == (0.1, 0.3)
    assert ALB(ridge=0.3, item_ridge=0.2).settings()[:2] == (0.3, 0.2)


def test_scales_multiply_the_initial_vectors() -> None:
    plain, scaled = (Agent(policy, 3, 4, seed=1).state for policy in (ALB(), ALB(user_scale=10.0, item_scale=0.5)))
    assert scaled.user_factors == pytest.approx(10 * plain.user_factors)
    assert scaled.item_factors == pytest.approx(0.5 * plain.item_factors)
    assert Agent(ALB(rank=10), 300, 300).state.item_factors.std() == pytest.approx(1.0, abs=0.05)
