"""Particle Thompson sampling against a slow direct transcription, its conditional laws, and its figures on synthetic worlds."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from albatross import Agent, checks, simulate
from albatross.checks.worlds import Checkerboard
from albatross.core.policy import Policy
from albatross.core.state import flatten
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian, Synthetic, Uniform
from albatross.kernels.alternating.steps import REBUILD_INTERVAL, RESCUE_INTERVAL
from albatross.kernels.particles.particles import widen_unit
from albatross.policies.pts import PTS
from albatross.policies.pts_b import PTSB
from albatross.policies.random import Random
from benchmarks.steps.pts_reference import BatchedNumpyPTS, NumpyPTS

pytestmark = pytest.mark.xdist_group("pts")

Array = NDArray[Any]

N_USERS, N_ITEMS = 6, 5


class Transcription:
    """The algorithm word for word: dense tables, whole copies of particles, statistics from all ratings at every step.

    It draws from the stream in the same order as the policy: the new generation, the user's vectors, the item's, the precisions.
    """

    def __init__(self, policy: PTS | PTSB, state: Any, random: np.random.Generator) -> None:
        self.policy = policy
        self.random = random
        start = state.particles
        self.users = np.moveaxis(start.user_factors, 1, 0).copy()
        self.items = np.moveaxis(start.item_factors, 1, 0).copy()
        self.precisions = start.user_precisions.copy()
        self.weights = np.full(policy.n_particles, 1 / policy.n_particles)
        self.plays = np.zeros((self.users.shape[1], self.items.shape[1]))
        self.totals = np.zeros_like(self.plays)

    def posterior(self, vectors: Array, plays: Array, totals: Array, prior: float) -> tuple[Array, Array]:
        """Mean and precision of coefficients, given the ratings at each of these regressors."""
        scaled = 1 / self.policy.noise**2
        precision = prior * np.eye(vectors.shape[1]) + scaled * (vectors.T * plays) @ vectors
        return np.linalg.solve(precision, scaled * totals @ vectors), precision

    def user_posterior(self, particle: int, user: int) -> tuple[Array, Array]:
        return self.posterior(self.items[particle], self.plays[user], self.totals[user], self.precisions[particle])

    def draw(self, mean: Array, precision: Array) -> Array:
        factor = np.linalg.cholesky(precision)
        return np.asarray(mean + np.linalg.solve(factor.T, self.random.standard_normal(mean.size)))

    def ancestors(self) -> Array:
        count = self.policy.n_particles
        if self.policy.resampler == "multinomial":
            gaps = -np.log(1 - self.random.random(count + 1))
            points = np.cumsum(gaps)[:-1] / gaps.sum()
        else:
            points = (np.arange(count) + 1 - self.random.random()) / count
        return np.asarray(np.searchsorted(np.cumsum(self.weights), points))

    def update(self, user: int, item: int, reward: float) -> None:
        density = []
        for d, items in enumerate(self.items):
            mean, precision = self.user_posterior(d, user)
            spread = self.policy.noise**2 + items[item] @ np.linalg.solve(precision, items[item])
            density.append(stats.norm.logpdf(reward, mean @ items[item], np.sqrt(spread)))
        logs = np.log(self.weights) + density
        self.weights = np.exp(logs - np.logaddexp.reduce(logs))
        if self.policy.resampler != "ess" or 1 / np.sum(self.weights**2) < self.policy.n_particles / 2:
            ancestors = self.ancestors()
            self.users, self.items, self.precisions = self.users[ancestors], self.items[ancestors], self.precisions[ancestors]
            self.weights = np.full_like(self.weights, 1 / self.weights.size)
        self.plays[user, item] += 1
        self.totals[user, item] += reward
        for d in range(len(self.users)):
            self.users[d, user] = self.draw(*self.user_posterior(d, user))
        for d in range(len(self.items)):
            law = self.posterior(self.users[d], self.plays[:, item], self.totals[:, item], self.policy.item_scale**-2)
            self.items[d, item] = self.draw(*law)
        if isinstance(self.policy, PTSB):
            seen = self.plays.sum(axis=1) > 0
            shape = self.policy.shape + seen.sum() * self.policy.rank / 2
            squares = (self.users[:, seen] ** 2).sum(axis=(1, 2))
            self.precisions = np.array([self.random.standard_gamma(shape) / (self.policy.rate + square / 2) for square in squares])


def whole_particles(state: Any) -> tuple[Array, Array]:
    """User and item vectors by particle: what the tables of slots stand for."""
    inner = state.particles
    users = inner.user_factors[np.arange(inner.user_slots.shape[1]), inner.user_slots[inner.rows]]
    items = inner.item_factors[np.arange(inner.item_slots.shape[1]), inner.item_slots[inner.rows]]
    return users, items


def summed_directly(state: Any) -> Array:
    """The item sums by particle, from all ratings and the present user vectors."""
    users, items = whole_particles(state)
    pairs, rank = state.particles.pairs, users.shape[2]
    rows, columns = np.tril_indices(rank)
    sums = np.zeros((*items.shape[:2], rows.size + rank))
    for user, entry in enumerate(pairs.first):
        while entry >= 0:
            vectors = users[:, user]
            plays, total = pairs.plays[entry], pairs.totals[entry] / state.particles.unit[0]
            terms = np.hstack([plays * vectors[:, rows] * vectors[:, columns], total * vectors])
            sums[:, pairs.items[entry]] += terms
            entry = pairs.following[entry]
    return sums


def kept_sums(state: Any) -> Array:
    inner = state.particles
    return np.asarray(inner.item_sums[np.arange(inner.sum_slots.shape[1]), :, inner.sum_slots[inner.rows]])


def ratings(n_steps: int, n_users: int = N_USERS, n_items: int = N_ITEMS, seed: int = 0) -> tuple[Array, Array, Array]:
    random = stream(seed, "ratings")
    users, items = random.integers(n_users, size=n_steps), random.integers(n_items, size=n_steps)
    truth = random.normal(size=(n_users, 2)) @ random.normal(size=(2, n_items))
    return users, items, truth[users, items] + random.normal(0.0, 0.3, n_steps)


VARIANTS: list[PTS | PTSB] = [
    PTS(n_particles=7, rank=3, noise=0.3),
    PTS(n_particles=7, rank=3, noise=0.3, user_scale=2.0, item_scale=0.5, resampler="multinomial"),
    PTS(n_particles=7, rank=3, noise=0.3, resampler="ess"),
    PTSB(n_particles=7, rank=3, noise=0.3),
    PTSB(n_particles=7, rank=3, noise=0.3, item_scale=0.5, resampler="multinomial"),
    PTSB(n_particles=7, rank=3, noise=0.3, shape=3.0, rate=2.0, resampler="ess"),
]
BOTH = [pytest.param(variant, id=f"{variant.policy_name()}-{variant.resampler}") for variant in VARIANTS]


@pytest.mark.parametrize("policy", BOTH)
def test_agrees_with_the_direct_transcription_on_forced_ratings(policy: PTS | PTSB) -> None:
    agent = Agent(policy, N_USERS, N_ITEMS, seed=1)
    slow = Transcription(policy, agent.state, stream(1, "learning"))
    generations = set()
    for user, item, reward in zip(*ratings(80), strict=True):
        agent.update(int(user), int(item), float(reward))
        slow.update(user, item, reward)
        users, items = whole_particles(agent.state)
        np.testing.assert_allclose(users, slow.users, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(items, slow.items, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(np.exp(agent.state.particles.log_weights), slow.weights, rtol=1e-6)
        np.testing.assert_allclose(agent.state.particles.user_precisions, slow.precisions, rtol=1e-6)
        generations.add(len(np.unique(agent.scratch.ancestors)))
    assert min(generations) < policy.n_particles, "no particle was ever replaced: the test shows nothing"
    np.testing.assert_allclose(kept_sums(agent.state), summed_directly(agent.state), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("policy", BOTH)
def test_a_selection_follows_one_particle_with_a_fresh_draw_of_the_user(policy: PTS | PTSB) -> None:
    agent = Agent(policy, N_USERS, N_ITEMS, seed=2)
    slow = Transcription(policy, agent.state, stream(2, "learning"))
    for user, item, reward in zip(*ratings(30), strict=True):
        agent.update(int(user), int(item), float(reward))
        slow.update(user, item, reward)
    slow.random = stream(2, "exploring")
    for user in range(N_USERS):
        choice = agent.select(user)
        particle = int(np.searchsorted(np.cumsum(slow.weights), 1 - slow.random.random()))
        mean, precision = slow.user_posterior(particle, user)
        scores = slow.items[particle] @ slow.draw(mean, precision)
        np.testing.assert_allclose(agent.slate.scores, scores, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(agent.slate.means, slow.items[particle] @ mean, rtol=1e-6, atol=1e-6)
        assert choice.item == np.argmax(scores)
        assert np.isnan(choice.propensity)


def test_with_one_particle_the_user_has_the_posterior_of_bayesian_linear_regression() -> None:
    policy = PTS(n_particles=1, rank=3, noise=0.7, user_scale=1.5)
    agent = Agent(policy, N_USERS, N_ITEMS, seed=3)
    users, items, rewards = ratings(60)
    agent.replay(users, items, rewards)
    regressors = whole_particles(agent.state)[1][0][items[users == 2]]
    covariance = np.linalg.inv(np.eye(3) / policy.user_scale**2 + regressors.T @ regressors / policy.noise**2)
    mean = covariance @ regressors.T @ rewards[users == 2] / policy.noise**2
    draws = []
    for _ in range(4000):
        agent.select(2)
        np.testing.assert_allclose(agent.scratch.center, mean, rtol=1e-9)
        draws.append(agent.scratch.drawn.copy())
    whitened = (np.array(draws) - mean) @ np.linalg.cholesky(np.linalg.inv(covariance))
    assert stats.kstest(whitened.ravel(), "norm").pvalue > 0.01
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(3), atol=0.08)


def test_ratings_that_say_nothing_leave_equal_weights() -> None:
    agent = Agent(PTS(n_particles=9, rank=3, noise=1e8, resampler="ess"), N_USERS, N_ITEMS)
    agent.replay(*ratings(50))
    np.testing.assert_allclose(np.exp(agent.state.particles.log_weights), 1 / 9, rtol=1e-9)


def test_weights_are_the_predictive_density_found_by_simulation() -> None:
    policy = PTS(n_particles=5, rank=2, noise=0.8, resampler="ess")
    agent = Agent(policy, N_USERS, N_ITEMS, seed=4)
    agent.replay(*ratings(12))
    slow = Transcription(policy, agent.state, stream(0, "simulation"))
    slow.users, slow.items = whole_particles(agent.state)
    for user, item, reward in zip(*ratings(12), strict=True):
        slow.plays[user, item] += 1
        slow.totals[user, item] += reward
    before = agent.state.particles.log_weights.copy()
    densities = []
    for particle in range(5):
        mean, precision = slow.user_posterior(particle, 1)
        vectors = slow.random.multivariate_normal(mean, np.linalg.inv(precision), 400_000)
        densities.append(stats.norm.pdf(1.2, vectors @ slow.items[particle][3], policy.noise).mean())
    agent.update(1, 3, 1.2)
    gained = np.exp(agent.state.particles.log_weights - before)
    np.testing.assert_allclose(gained / gained.sum(), np.array(densities) / sum(densities), rtol=0.01)


@pytest.mark.parametrize("policy", [PTS(n_particles=6, rank=3, resampler="multinomial"), PTSB(n_particles=6, rank=3)], ids=["pts", "pts-b"])
def test_kept_sums_do_not_drift(policy: Policy) -> None:
    agent = Agent(policy, N_USERS, N_ITEMS)
    users, items, rewards = ratings(REBUILD_INTERVAL)
    agent.replay(users[:-1], items[:-1], rewards[:-1])
    assert agent.state.particles.updates.tolist() == [users.size - 1, 0]
    np.testing.assert_allclose(kept_sums(agent.state), summed_directly(agent.state), rtol=1e-8, atol=1e-8)
    agent.state.particles.item_sums[:] += 1e-3
    if isinstance(policy, PTSB):
        agent.state.square_norms[:] += 1e-3
    agent.replay(users[-1:], items[-1:], rewards[-1:])
    assert agent.state.particles.updates.tolist() == [users.size, users.size]
    np.testing.assert_allclose(kept_sums(agent.state), summed_directly(agent.state), rtol=1e-13, atol=1e-13)
    if isinstance(policy, PTSB):
        np.testing.assert_allclose(agent.state.square_norms, (whole_particles(agent.state)[0] ** 2).sum(axis=(1, 2)), rtol=1e-13)


def test_spoiled_sums_are_rebuilt_at_once() -> None:
    agent = Agent(PTS(n_particles=6, rank=3), N_USERS, N_ITEMS)
    n_ratings = RESCUE_INTERVAL
    agent.replay(*ratings(n_ratings))
    agent.state.particles.item_sums[2] = -1.0
    agent.update(0, 2, 1.0)
    assert agent.state.particles.updates.tolist() == [n_ratings + 1, n_ratings + 1]
    np.testing.assert_allclose(kept_sums(agent.state), summed_directly(agent.state), rtol=1e-12, atol=1e-12)


def test_the_spread_of_users_is_drawn_from_its_conditional_law() -> None:
    policy = PTSB(n_particles=3000, rank=2, shape=3.0, rate=0.7)
    agent = Agent(policy, N_USERS, N_ITEMS)
    agent.replay([0, 1, 1, 4], [0, 1, 2, 2], [1.0, -1.0, 0.5, 2.0])
    squares = (whole_particles(agent.state)[0][:, [0, 1, 4]] ** 2).sum(axis=(1, 2))
    scaled = agent.state.particles.user_precisions * (policy.rate + squares / 2)
    assert stats.kstest(scaled, stats.gamma(policy.shape + 3 * 2 / 2).cdf).pvalue > 0.01
    assert abs(stats.spearmanr(scaled, squares).statistic) < 0.05


@pytest.mark.parametrize("policy", BOTH)
def test_learning_goes_on_after_growth(policy: PTS | PTSB) -> None:
    agent = Agent(policy, N_USERS, N_ITEMS, seed=5)
    past = ratings(40)
    agent.replay(*past)
    before = whole_particles(agent.state)
    agent.grow(2 * N_USERS, 3 * N_ITEMS)
    after = whole_particles(agent.state)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new[:, : old.shape[1]], old)
        assert np.unique(new[:, old.shape[1] :]).size == new[:, old.shape[1] :].size, "particles share the start of a newcomer"
    slow = Transcription(policy, agent.state, agent.learning)
    slow.users, slow.items = after
    slow.weights = np.exp(agent.state.particles.log_weights)
    np.add.at(slow.plays, past[:2], 1.0)
    np.add.at(slow.totals, past[:2], past[2])
    more = ratings(40, 2 * N_USERS, 3 * N_ITEMS, seed=1)
    streams = agent.learning.bit_generator.state
    agent.replay(*more)
    slow.random.bit_generator.state = streams
    for user, item, reward in zip(*more, strict=True):
        slow.update(user, item, reward)
    np.testing.assert_allclose(whole_particles(agent.state)[0], slow.users, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole_particles(agent.state)[1], slow.items, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("yardstick", [NumpyPTS, BatchedNumpyPTS])
def test_what_is_compared_for_speed_does_the_same(yardstick: type[NumpyPTS]) -> None:
    policy = PTS(n_particles=7, rank=3, noise=0.3, user_scale=2.0, item_scale=0.5)
    agent, slow = Agent(policy, N_USERS, N_ITEMS, seed=6), yardstick(policy, N_USERS, N_ITEMS, seed=6)
    for user, item, reward in zip(*ratings(60), strict=True):
        assert agent.select(int(user)).item == slow.select(user)
        np.testing.assert_allclose(agent.slate.scores, slow.scores, rtol=1e-6, atol=1e-6)
        agent.update(int(user), int(item), float(reward))
        slow.update(user, item, reward)
        np.testing.assert_allclose(whole_particles(agent.state)[1], slow.items, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("resampler", ["multinomial", "ess"])
def test_the_other_resamplers_obey_the_contract(resampler: str) -> None:
    checks.run(PTS(n_particles=10, rank=3, resampler=resampler))


@pytest.mark.parametrize(
    ("world", "least", "most"),
    [
        # Ten worlds of the Gaussian kind leave an uncertainty of 1,600; statistics kept with past vectors cost 50,000.
        pytest.param(Gaussian(), 24_000, 33_000, id="gaussian"),
        pytest.param(Uniform(), 4_600, 5_600, id="uniform"),
    ],
)
def test_regret_on_the_synthetic_worlds_of_the_paper(world: Synthetic, least: float, most: float) -> None:
    regrets = [simulate(PTS(), world, horizon=25_000, seed=seed).pseudo_regret.sum() for seed in range(10)]
    assert least < np.mean(regrets) < most


@pytest.mark.parametrize("policy", [PTS(n_particles=10, rank=3), PTSB(n_particles=10, rank=3)])
@pytest.mark.parametrize("scale", [2e8, -2e8])
def test_ratings_of_any_size_are_learned_from(policy: Policy, scale: float) -> None:
    """Up to 1e9, and all below zero: a tenth of the regret of showing anything, and every number finite."""
    world = Checkerboard(scale=scale)
    regret = simulate(policy, world, horizon=4000, seed=0).pseudo_regret.sum()
    assert regret < 0.1 * simulate(Random(), world, horizon=4000, seed=0).pseudo_regret.sum()
    agent, random = Agent(policy, 30, 20), np.random.default_rng(0)
    agent.replay(random.integers(30, size=3000), random.integers(20, size=3000), random.choice([0.0, 5.0 * scale], 3000))
    for name, array in flatten(agent.state):
        assert np.isfinite(array).all(), name
    agent.select(0)
    assert np.abs(agent.slate.means).max() < 10.0 * abs(scale)


@pytest.mark.parametrize("policy", [PTS(n_particles=8, rank=2), PTSB(n_particles=8, rank=2)])
def test_a_rating_far_too_large_changes_the_unit(policy: Policy) -> None:
    """And with it what is predicted in units, so that the same ratings are predicted."""
    agent = Agent(policy, N_USERS, N_ITEMS)
    agent.replay(*ratings(40))
    particles = agent.state.particles
    assert particles.unit[0] == 1.0
    users, items = whole_particles(agent.state)
    settings: Any = agent.settings
    model = settings if isinstance(policy, PTS) else settings.model
    ratio = widen_unit(particles, model, -3e7)
    assert 2.0 * model.spread < 3e7 * ratio <= 4.0 * model.spread
    assert particles.unit[0] == 1.0 / ratio
    np.testing.assert_array_equal(particles.unit[0] * whole_particles(agent.state)[0], users)
    np.testing.assert_array_equal(whole_particles(agent.state)[1], items)
    np.testing.assert_allclose(kept_sums(agent.state), summed_directly(agent.state), rtol=1e-6, atol=1e-9 * ratio**2)
    assert widen_unit(particles, model, 3e7) == 1.0
