"""The speed of a step of ALB: against NumPy, and over time."""

import statistics
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from albatross import Agent, simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from benchmarks.measuring import Line, Quantity, cpu_seconds, medians_in_turns
from benchmarks.steps.numpy_alb import NumpyALB

POLICY = ALB(ridge=0.01, noise=0.5)
HORIZON = 25_000
LONG_HORIZON = 100_000


def step() -> Iterator[Line]:
    """A step of a whole trial (select, react, record, learn), compiled and in NumPy, in the same worlds."""
    simulate(POLICY, Gaussian(), horizon=1)  # compiles or loads
    for environment, least in ((Gaussian(n_users=200, n_items=200), 40), (Gaussian(n_users=2000, n_items=1682), 10)):
        reference, compiled = medians_in_turns(partial(_numpy_trial, environment), partial(_compiled_trial, environment), repetitions=5)
        one, other = Quantity("NumPy", reference / HORIZON), Quantity("compiled", compiled / HORIZON)
        met = one.amount >= least * other.amount
        yield Line(f"step, {environment.n_users:,} users × {environment.n_items:,} items", one, other, f"≥ {least}", met)


def _compiled_trial(environment: Gaussian, seed: int) -> float:
    """CPU seconds of one trial, including its set-up."""
    return cpu_seconds(lambda: simulate(POLICY, environment, HORIZON, seed))


def _numpy_trial(environment: Gaussian, seed: int) -> float:
    """CPU seconds of the steps of one trial of the yardstick; world and start are made beforehand."""
    world = environment.world(seed)
    means = world.user_factors @ world.item_factors.T
    random = np.random.default_rng(seed)
    users = random.integers(environment.n_users, size=HORIZON).tolist()
    noise = (environment.noise * random.standard_normal(HORIZON)).tolist()
    start = Agent(POLICY, environment.n_users, environment.n_items, seed).state
    learner = NumpyALB(POLICY, start.user_factors, start.item_factors)

    def live() -> None:
        for user, error in zip(users, noise, strict=True):
            item = learner.select(user)
            learner.update(user, item, float(means[user, item]) + error)

    return cpu_seconds(live)


def growth() -> Iterator[Line]:
    """Whether the cost of a step grows with time."""
    trials = [_fifths(seed) for seed in range(9)]
    second, last = (statistics.median(fifths[which] for fifths in trials) for which in (1, 4))
    one, other = Quantity("last fifth", last), Quantity("second fifth", second)
    yield Line(f"step, in {LONG_HORIZON:,} steps of 200 × 200", one, other, "≤ 1.2", last <= 1.2 * second)


def _fifths(seed: int) -> list[float]:
    """CPU seconds per step in each fifth of a trial, read at the ends of its chunks and interpolated in between."""
    steps, seconds = [0], [time.process_time()]

    def progress(n_steps: int) -> None:
        steps.append(steps[-1] + n_steps)
        seconds.append(time.process_time())

    simulate(POLICY, Gaussian(), LONG_HORIZON, seed, progress=progress)
    marks = np.linspace(0, LONG_HORIZON, 6)
    per_step: list[float] = (np.diff(np.interp(marks, steps, seconds)) / np.diff(marks)).tolist()
    return per_step
