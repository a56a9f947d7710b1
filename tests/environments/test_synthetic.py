"""The three synthetic worlds: their moments, their candidates, their reactions."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import WORLDS, Bernoulli, Gaussian, Synthetic, Uniform
from albatross.environments.world import offered, truth_of
from albatross.policies.random import Random

pytestmark = pytest.mark.xdist_group("random")

SPREAD = 5
"""Standard errors that a sample mean may lie from its expectation."""


def close(values: NDArray[np.float64], expected: float) -> bool:
    """Whether the mean of independent values is what it should be."""
    return bool(abs(values.mean() - expected) < SPREAD * values.std() / math.sqrt(values.size))


def factors(environment: Synthetic) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    worlds = [environment.world(seed) for seed in range(10)]
    return np.concatenate([world.user_factors for world in worlds]), np.concatenate([world.item_factors for world in worlds])


def test_gaussian_factors() -> None:
    for values in factors(Gaussian()):
        assert values.shape == (2000, 5)
        assert close(values, 0.0)
        assert close(values**2, 1.0)
        assert close(values**4, 3.0)
        assert np.abs(np.corrcoef(values.T) - np.eye(5)).max() < SPREAD / math.sqrt(2000)
    users, items = factors(Gaussian(user_scale=2.0, item_scale=0.5))
    assert close(users**2, 4.0)
    assert close(items**2, 0.25)


@pytest.mark.parametrize("environment", [Uniform(), Bernoulli()], ids=["uniform", "bernoulli"])
def test_users_on_the_simplex_and_items_in_the_cube(environment: Synthetic) -> None:
    users, items = factors(environment)
    assert users.min() > 0
    np.testing.assert_allclose(users.sum(axis=1), 1.0, rtol=1e-14)
    for coordinate in users.T:  # one coordinate of a flat Dirichlet law on five: mean 1/5, second moment 1/15
        assert close(coordinate, 1 / 5)
        assert close(coordinate**2, 1 / 15)
    assert 0 <= items.min() < 0.01 < 0.99 < items.max() < 1
    assert close(items, 1 / 2)
    assert close(items**2, 1 / 3)
    means = truth_of(environment.world(0)).means
    assert 0 <= means.min() <= means.max() <= 1


def test_gaussian_noise() -> None:
    lived = simulate(Random(), Gaussian(noise=0.7), horizon=20_000, seed=2)
    noise = lived.rewards - lived.expected
    assert close(noise, 0.0)
    assert close(noise**2, 0.49)
    assert close(noise**4, 3 * 0.49**2)


def test_uniform_noise_is_not_clipped() -> None:
    lived = simulate(Random(), Uniform(width=0.8, rank=1), horizon=20_000, seed=2)
    noise = lived.rewards - lived.expected
    assert -0.4 <= noise.min() < -0.39 < 0.39 < noise.max() <= 0.4
    assert close(noise, 0.0)
    assert close(noise**2, 0.8**2 / 12)
    assert lived.rewards.min() < 0
    assert lived.rewards.max() > 1


def test_bernoulli_rewards_are_coins_with_the_mean_as_their_bias() -> None:
    lived = simulate(Random(), Bernoulli(rank=1), horizon=20_000, seed=2)
    assert set(lived.rewards) == {0.0, 1.0}
    for low in np.arange(0, 1, 0.2):
        bin_ = (low <= lived.expected) & (lived.expected < low + 0.2)
        assert bin_.sum() > 1000
        assert close(lived.rewards[bin_] - lived.expected[bin_], 0.0)


@pytest.mark.parametrize("environment", [Gaussian(noise=0.0), Uniform(width=0.0)], ids=["gaussian", "uniform"])
@pytest.mark.parametrize("candidates", [None, 3])
def test_a_world_without_noise_gives_the_mean(environment: Synthetic, candidates: int | None) -> None:
    small = type(environment)(**{**environment.parameters(), "n_users": 8, "n_items": 9, "candidates": candidates})
    lived = simulate(Random(), small, horizon=300, seed=0)
    assert (lived.rewards == lived.expected).all()
    assert (lived.regret == lived.pseudo_regret).all()


@pytest.mark.parametrize("name", WORLDS)
def test_a_seed_is_a_world(name: str) -> None:
    environment = WORLDS[name](n_users=7, n_items=6, rank=3, candidates=4)
    assert environment.name == name
    first, again, other = environment.world(1), environment.world(1), environment.world(2)
    for field in ("user_factors", "item_factors", "items"):
        assert (getattr(first, field) == getattr(again, field)).all()
        assert (getattr(first, field) != getattr(other, field)).any()


@pytest.mark.parametrize("name", WORLDS)
def test_each_user_has_candidates_of_their_own(name: str) -> None:
    environment = WORLDS[name](n_users=30, n_items=50, candidates=12)
    world = environment.world(0)
    rows = [offered(world, user) for user in range(30)]
    assert all(row.size == 12 == np.unique(row).size for row in rows)
    assert all((np.diff(row) > 0).all() for row in rows)
    assert len({row.tobytes() for row in rows}) == 30
    assert world.items.min() == 0
    assert world.items.max() == 49
    lived = simulate(Random(), environment, horizon=2000, seed=0)
    means = truth_of(world).means
    for user, item, best in zip(lived.users, lived.items, lived.best, strict=True):
        assert item in rows[user]
        assert best == means[user, rows[user]].max()
    shown = {(int(user), int(item)) for user, item in zip(lived.users, lived.items, strict=True)}
    assert len(shown) > 0.99 * 30 * 12, "and all of them are shown sooner or later"


def test_where_nothing_is_shown_twice() -> None:
    """Each user is shown each candidate once, and regret is against the best that was left."""
    for environment in (Gaussian(n_users=6, n_items=9, repeats=False), Gaussian(n_users=6, n_items=20, candidates=9, repeats=False)):
        rows = [set(offered(environment.world(3), user).tolist()) for user in range(6)]
        means = truth_of(environment.world(3)).means
        lived = simulate(Random(), environment, horizon=54, seed=3)
        for user, item, best in zip(lived.users, lived.items, lived.best, strict=True):
            assert best == max(means[user, each] for each in rows[user])
            rows[user].remove(item)
        assert not any(rows)
        assert (simulate(Random(), environment, horizon=30, seed=3).users == lived.users[:30]).all()
        with pytest.raises(InvalidInput, match="horizon is 55; accepted: at most 54"):
            simulate(Random(), environment, horizon=55, seed=3)


def test_any_shape() -> None:
    for n_users, n_items, rank in ((1, 1, 1), (1, 7, 2), (5, 1, 3), (3, 4, 9)):
        world = Gaussian(n_users=n_users, n_items=n_items, rank=rank).world(0)
        assert world.user_factors.shape == (n_users, rank)
        assert world.item_factors.shape == (n_items, rank)
        assert truth_of(world).means.shape == (n_users, n_items)
        np.testing.assert_allclose(truth_of(world).means, world.user_factors @ world.item_factors.T, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("environment", "parameters", "message"),
    [
        (Gaussian, {"noise": -0.1}, "Gaussian: noise is -0.1; accepted: a number, at least 0"),
        (Gaussian, {"n_users": 0}, "Gaussian: n_users is 0; accepted: a whole number, at least 1"),
        (Uniform, {"width": float("nan")}, "Uniform: width is nan; accepted: a number, at least 0"),
        (Bernoulli, {"rank": 0}, "Bernoulli: rank is 0; accepted: a whole number, at least 1"),
        (Bernoulli, {"n_items": 4, "candidates": 5}, "Bernoulli: candidates is 5; accepted: at most n_items, 4"),
    ],
)
def test_impossible_worlds_are_refused(environment: type[Synthetic], parameters: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        environment(**parameters)  # type: ignore[arg-type]
