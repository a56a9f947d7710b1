"""How well the items of a world can be told apart by whoever is told how they were drawn: `python -m benchmarks.known_prior`.

In the synthetic worlds whose users are alike, most of what can be learned soon is which item is best for everybody: a bandit of as many
arms as there are items. This one knows the mean and the variance that item means are drawn from, and the noise, and values each item by
Gittins' index. It knows nobody apart. Where it is no better than a simple policy with tuned parameters, a policy that is told nothing
will hardly be.
"""

import argparse

import numba
import numpy as np
from numpy.typing import NDArray

from albatross import policies, simulate
from albatross.environments import create
from albatross.kernels.gittins import worth

GITTINS = 0.4
STEPS = (5_000, 10_000, 25_000)
RIVALS = {"uniform": ("item-ucb", {"scale": 0.05}), "bernoulli": ("item-ucb", {"scale": 0.1})}


@numba.vectorize(["float64(float64)"])  # type: ignore[untyped-decorator, no-untyped-call]
def worth_of_visits(visits: float) -> float:
    return worth(visits, 1.0)


def regret_of_known_prior(name: str, seed: int) -> NDArray[np.float64]:
    world = create(name).world(seed)
    means = world.user_factors @ world.item_factors.T
    best = means.max(axis=1)
    random = np.random.default_rng(seed)
    n_users, n_items = means.shape
    prior_mean, prior_variance = 0.5, means.mean(axis=0).var()
    own = (means - means.mean(axis=0)).var()
    noise = own + (0.5**2 / 12 if name == "uniform" else 0.25 - prior_variance - own)
    precision, total = np.full(n_items, 1.0 / prior_variance), np.full(n_items, prior_mean / prior_variance)
    regret = np.empty(STEPS[-1])
    for step in range(STEPS[-1]):
        user = random.integers(n_users)
        variance = 1.0 / precision
        index = total * variance + np.sqrt(variance) * worth_of_visits((step + 3.0 * n_users) * variance / (variance + GITTINS * noise))
        item = int(index.argmax())
        mean = means[user, item]
        rating = mean + random.uniform(-0.25, 0.25) if name == "uniform" else float(random.random() < mean)
        precision[item] += 1.0 / noise
        total[item] += rating / noise
        regret[step] = best[user] - mean
    return np.asarray(np.cumsum(regret)[np.array(STEPS) - 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    print(f"Mean regret over {n_seeds} seeds at {', '.join(f'{step:,}' for step in STEPS)} steps")
    for name, (rival, parameters) in RIVALS.items():
        known = np.array([regret_of_known_prior(name, seed) for seed in range(n_seeds)])
        policy, environment = policies.create(rival, parameters), create(name)
        runs = [simulate(policy, environment, horizon=STEPS[-1], seed=seed).pseudo_regret for seed in range(n_seeds)]
        tuned = np.array([np.cumsum(run)[np.array(STEPS) - 1] for run in runs])
        for label, found in (("told the prior", known), (f"{rival} {parameters['scale']}", tuned)):
            errors = found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
            print(f"{name:10} {label:16}", *(f"{mean:7,.0f} ± {error:<4,.0f}" for mean, error in zip(found.mean(0), errors, strict=True)))


if __name__ == "__main__":
    main()
