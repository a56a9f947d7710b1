"""The regret of oracle baselines, which are given more than a policy can know: `python -m benchmarks.oracles.told`.

Every bandit here learns what it was not given by exact Bayesian regression, with the true priors of its world, and adds the value of
exploration to its predictions. The weight of that, its optimism, is chosen in hindsight. A policy that starts from nothing
will hardly do better than such a bandit.

Synthetic worlds: given the item vectors, it learns users; given the user vectors, it learns items; given neither, it knows the mean and
the variance of the items' means over all users, and does not distinguish users.
Logged ratings (`benchmarks.oracles.logged`): given all other users' ratings of an item, it learns how a user differs from them; given only
the variances of items and users, it learns both.
"""

import argparse
from collections.abc import Callable

import numpy as np

from albatross.core.environment import BERNOULLI, GAUSSIAN, World
from albatross.core.errors import InvalidInput
from albatross.environments import create
from albatross.environments.world import reaction
from albatross.kernels.mean_field.gittins import worth
from albatross.kernels.mean_field.valuing import COMING_VISITS
from benchmarks.oracles.logged import HORIZON, Array, Visits, compiled, told_others, told_variances, visits_of

STEPS = np.array([5_000, 10_000, 25_000])
OPTIMISMS = (0.5, 0.7, 1.0, 1.4)
GITTINS = 0.4
"""The weight of the noise in Gittins' index; see `albatross.kernels.mean_field.gittins`."""

Bandit = Callable[[float, int], Array]
"""From optimism and seed to the regret of each step."""


@compiled
def foretell(mean: Array, covariance: Array, vector: Array) -> tuple[float, float]:
    """Mean and variance of the inner product."""
    expected, variance = 0.0, 0.0
    for a in range(vector.size):
        expected += vector[a] * mean[a]
        for b in range(vector.size):
            variance += vector[a] * covariance[a, b] * vector[b]
    return expected, max(variance, 1e-12)


@compiled
def live_with_one_side(
    world: World, means: Array, told: Array, of_users: bool, prior: Array, covariance: Array, noise: float, optimism: float, visit: Visits
) -> Array:
    """Given the vectors of all users, or of all items, learn the other side."""
    n_users, n_items = means.shape
    n_rows, rank = n_items if of_users else n_users, told.shape[1]
    row_means, row_covariances = np.zeros((n_rows, rank)), np.zeros((n_rows, rank, rank))
    row_means[:], row_covariances[:] = prior, covariance
    best = np.array([means[user].max() for user in range(n_users)])
    regret = np.zeros(HORIZON)
    for step in range(HORIZON):
        user = visit.users[step]
        visits = COMING_VISITS * n_users + step if of_users else COMING_VISITS + step / n_users
        item, highest = 0, -np.inf
        for candidate in range(n_items):
            row, vector = (candidate, told[user]) if of_users else (user, told[candidate])
            expected, variance = foretell(row_means[row], row_covariances[row], vector)
            score = expected + optimism * np.sqrt(variance) * worth(visits * variance, variance + GITTINS * noise)
            if score > highest:
                item, highest = candidate, score
        row, vector = (item, told[user]) if of_users else (user, told[item])
        rating = reaction(world, means[user, item], visit.draws[step])
        expected, variance = foretell(row_means[row], row_covariances[row], vector)
        change = row_covariances[row] @ vector
        row_means[row] += change * (rating - expected) / (variance + noise)
        row_covariances[row] -= np.outer(change, change) / (variance + noise)
        regret[step] = best[user] - means[user, item]
    return regret


def noise_of(world: World, means: Array) -> float:
    """The variance of a rating about its mean."""
    if world.reaction == BERNOULLI:
        return float((means * (1.0 - means)).mean())
    return world.spread**2 if world.reaction == GAUSSIAN else world.spread**2 / 12.0


def told_vectors(name: str, of_users: bool) -> Bandit:
    def live(optimism: float, seed: int) -> Array:
        world = create(name).world(seed)
        told, others = (world.user_factors, world.item_factors)[:: 1 if of_users else -1]
        means = world.user_factors @ world.item_factors.T
        noise = noise_of(world, means)
        prior, covariance = others.mean(axis=0), np.cov(others.T)
        return live_with_one_side(world, means, told, of_users, prior, covariance, noise, optimism, visits_of(world, seed))

    return live


def told_prior(name: str) -> Bandit:
    """One number per item; users are treated as equal, and their differences as noise."""

    def live(optimism: float, seed: int) -> Array:
        world = create(name).world(seed)
        means = world.user_factors @ world.item_factors.T
        prior, variance = np.array([means.mean()]), np.array([[means.mean(axis=0).var()]])
        noise = float((means - means.mean(axis=0)).var()) + noise_of(world, means)
        alike = np.ones((means.shape[0], 1))
        return live_with_one_side(world, means, alike, True, prior, variance, noise, optimism, visits_of(world, seed))

    return live


BANDITS: list[tuple[str, str, Callable[[], Bandit]]] = [
    ("gaussian", "the item vectors", lambda: told_vectors("gaussian", of_users=False)),
    ("gaussian", "the user vectors", lambda: told_vectors("gaussian", of_users=True)),
    ("uniform", "the item vectors", lambda: told_vectors("uniform", of_users=False)),
    ("uniform", "the prior of items", lambda: told_prior("uniform")),
    ("bernoulli", "the item vectors", lambda: told_vectors("bernoulli", of_users=False)),
    ("bernoulli", "the prior of items", lambda: told_prior("bernoulli")),
    ("movielens-100k", "what others said", lambda: told_others("movielens-100k")),
    ("jester-2", "what others said", lambda: told_others("jester-2")),
    ("jester-2", "how much they differ", lambda: told_variances("jester-2")),
    ("book-crossing", "what others said", lambda: told_others("book-crossing")),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    seeds = range(parser.parse_args().seeds)
    print(f"| data set | told | optimism | {' | '.join(f'{step:,}' for step in STEPS)} |", "| --- " * (3 + STEPS.size) + "|", sep="\n")
    for name, told, prepare in BANDITS:
        try:
            bandit = prepare()
        except InvalidInput as error:
            print(f"{name}: {error}")
            continue
        regrets = {optimism: np.array([np.cumsum(bandit(optimism, seed))[STEPS - 1] for seed in seeds]) for optimism in OPTIMISMS}
        best = min(OPTIMISMS, key=lambda optimism: float(regrets[optimism][:, -1].mean()))
        means, errors = regrets[best].mean(axis=0), regrets[best].std(axis=0, ddof=1) / np.sqrt(len(seeds))
        figures = " | ".join(f"{mean:,.0f} ± {error:,.0f}" for mean, error in zip(means, errors, strict=True))
        print(f"| {name} | {told} | {best} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
