"""Whole trials of 25,000 steps: their time, the share of compiled code, and where it goes."""

import time
from collections.abc import Iterator

import numpy as np

from albatross import environments, policies, simulate
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from albatross.policies.pts import PTS
from benchmarks.measuring import Line, Quantity
from benchmarks.steps.stepping import Watched

HORIZON = 25_000
ALIKE = Gaussian(n_users=943, n_items=1682, candidates=106)
"""As many users, items and ratings as MovieLens 100K has."""

MOST_OUTSIDE = 0.15
"""The share of a trial that may be spent outside compiled code."""


def movielens() -> Environment | None:
    """MovieLens 100K, if it is on this machine: benchmarks download nothing."""
    try:
        return environments.create("movielens-100k")
    except (InvalidInput, OSError):
        return None


def targets() -> Iterator[Line]:
    """Trials against limits in seconds: the quickest of some, because other load on the machine should not count."""
    logged = movielens()
    if logged is not None:
        yield from _against_limit("MovieLens 100K", ALB(), logged, limit=0.06, repetitions=15)
    yield from _against_limit("200 × 200, all items", ALB(ridge=0.01, noise=0.5), Gaussian(), limit=0.09, repetitions=15)
    if logged is not None:
        yield from _against_limit("MovieLens 100K", PTS(n_particles=30, noise=0.5), logged, limit=2.5, repetitions=3)


def _against_limit(where: str, policy: Policy, environment: Environment, limit: float, repetitions: int) -> Iterator[Line]:
    simulate(policy, environment, horizon=1)  # compiles or loads
    name = policy.policy_name().upper()
    seconds, compiled = [], []
    for seed in range(repetitions):
        began = time.thread_time()
        recording = simulate(policy, environment, HORIZON, seed)
        seconds.append(time.thread_time() - began)
        compiled.append(recording.seconds)
    yield Line.at_most(f"{name} trial, {where}", Quantity("trial", min(seconds)), Quantity("limit", limit), 1.0)
    outside = np.subtract(seconds, compiled)
    one, other = Quantity("outside kernels", float(np.median(outside))), Quantity("trial", float(np.median(seconds)))
    yield Line.at_most("of it, medians", one, other, MOST_OUTSIDE)


def profiles() -> Iterator[Line]:
    """For each policy at MovieLens 100K, the share of `select` in the time of a step."""
    logged = movielens()
    for name in policies.names():
        policy = policies.create(name)
        # OFUL needs item vectors, which logged ratings do not have.
        environment = ALIKE if logged is None or name == "oful" else logged
        Watched(policy, environment).live(1)  # compiles or loads
        trials = [Watched(policy, environment).live(HORIZON) for _ in range(3)]
        select, update = (float(np.min([getattr(trial, part) for trial in trials], axis=0).mean()) for part in ("select", "update"))
        yield Line(f"{name}, {environment.name}", Quantity("select", select), Quantity("both", select + update))
