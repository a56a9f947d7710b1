"""The time of a step of each policy at the size of MovieLens 100K, beside its limit.

Run it twice: a process that has just compiled a policy runs it slower than one that loads the machine code.
"""

from collections.abc import Iterator

from albatross import environments, policies, simulate
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.policies.knn_bandit import KNNBandit
from benchmarks.measuring import Line, Quantity
from benchmarks.steps.trials import HORIZON

LIMIT = 40e-6
"""Seconds a step."""

LIMITS = {
    "epsilon-als": 80e-6,  # fits the whole factorization again after every 50 ratings, by design
    "knn-bandit, 10 neighbours": 70e-6,  # the nearest ten are known only when all have been drawn
}
"""Policies with their own limit, each with its reason."""

PROTOCOLS = ("repeats", "no-repeats")


def steps() -> Iterator[Line]:
    """A step of a trial of 25,000: the quickest of two seeds, because other load on the machine should not count."""
    for name in policies.names():
        yield from _steps(name, policies.create(name))
    yield from _steps("knn-bandit, 10 neighbours", KNNBandit(n_neighbors=10))


def _steps(name: str, policy: Policy) -> Iterator[Line]:
    limit = LIMITS.get(name, LIMIT)
    for protocol in PROTOCOLS:
        environment = _world(policy, protocol)
        simulate(policy, environment, horizon=1)  # compiles or loads
        seconds = min(simulate(policy, environment, HORIZON, seed).seconds for seed in (0, 1)) / HORIZON
        yield Line.at_most(f"{name}, {protocol}", Quantity("step", seconds), Quantity("limit", limit), 1.0)


def _world(policy: Policy, protocol: str) -> Environment:
    """MovieLens 100K; if it is missing, or cannot give what the policy needs, a synthetic world of its size."""
    if not policy.needs:
        try:
            return environments.create("movielens-100k", {"protocol": protocol})
        except (InvalidInput, OSError):
            pass
    return environments.create("gaussian", {"n_users": 943, "n_items": 1682, "candidates": 106, "protocol": protocol})
