"""The speed of the rivals: PTS against NumPy, NMF-Bandit against ALB."""

from collections.abc import Iterator
from functools import partial

from albatross import simulate
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from albatross.policies.nmf_bandit import NMFBandit
from albatross.policies.pts import PTS
from benchmarks.measuring import Line, Quantity, cpu_seconds, medians_in_turns
from benchmarks.steps.pts_reference import BatchedNumpyPTS, NumpyPTS, seconds_of_steps

MOVIELENS_SIZED = Gaussian(n_users=943, n_items=1682)
N_STEPS = 1_000


def pts_step() -> Iterator[Line]:
    """A thousand steps of PTS with 30 particles, all of 1,682 items being candidates, compiled and in NumPy."""
    policy = PTS()
    simulate(policy, MOVIELENS_SIZED, horizon=1)  # compiles or loads
    for name, yardstick, least in (("one by one", NumpyPTS, 60), ("batched", BatchedNumpyPTS, None)):
        measured = medians_in_turns(
            lambda seed, yardstick=yardstick: seconds_of_steps(yardstick, policy, MOVIELENS_SIZED, N_STEPS, seed),  # type: ignore[misc]
            lambda seed: simulate(policy, MOVIELENS_SIZED, N_STEPS, seed).seconds,
            repetitions=3,
        )
        one, other = Quantity("NumPy", measured[0]), Quantity("compiled", measured[1])
        target, met = ("–", None) if least is None else (f"≥ {least}", one.amount >= least * other.amount)
        yield Line(f"PTS, 1,000 steps; NumPy {name}", one, other, target, met)
        if least is not None:
            yield Line("the same, on its own", other, Quantity("limit", 0.15), "≤ 1", other.amount <= 0.15)


def nmf_trial() -> Iterator[Line]:
    """A trial of NMF-Bandit against one of ALB, 200 × 200, 25,000 steps."""
    one, other = NMFBandit(exploration=2.0, set_size=25), ALB(ridge=0.01, noise=0.5)
    for policy in (one, other):
        simulate(policy, Gaussian(), horizon=1)
    nmf, alb = medians_in_turns(partial(_trial, one), partial(_trial, other), repetitions=7)
    yield Line("trial, 200 × 200, 25,000 steps", Quantity("NMF-Bandit", nmf), Quantity("ALB", alb), "≤ 3", nmf <= 3 * alb)


def _trial(policy: Policy, seed: int) -> float:
    return cpu_seconds(lambda: simulate(policy, Gaussian(), 25_000, seed))
