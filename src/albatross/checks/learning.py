"""Checks that a policy learns, and that no rewards break it."""

import numpy as np
from numpy.typing import NDArray

from albatross.checks.worlds import Checkerboard, Favourite
from albatross.core.agent import Agent
from albatross.core.environment import Environment
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.environments.telling import told
from albatross.policies.random import Random
from albatross.simulation.trial import simulate

EXTREMES = (0.0, 1.0, -1.0, 1e-9, 1e6, -1e6, 1e9, -1e9)
SCALES = ((0.0, 1e9), (-1e9, 1e9), (1.0, 5.0))
HORIZON = 4000
EXTREME_STEPS = 400
"""Enough for vectors that grow with each rating to overflow."""


def beats_random(policy: Policy) -> None:
    """On a world with an obvious answer, it has less than half of the regret of random choices."""
    if policy.learns == "nothing":
        return
    regret, chance = _regrets(policy, Checkerboard() if policy.learns == "users" else Favourite())
    assert regret < 0.5 * chance, f"regret {regret:.0f}, showing anything {chance:.0f}{_advice(policy)}"


def _regrets(policy: Policy, world: Environment) -> tuple[float, float]:
    regret, chance = (simulate(each, world, HORIZON, seed=0).pseudo_regret.sum() for each in (policy, Random()))
    return float(regret), float(chance)


def _advice(policy: Policy) -> str:
    """A hint at what the class may have to declare."""
    if policy.learns != "users":
        return ' (a policy that learns nothing declares `learns = "nothing"`)'
    regret, chance = _regrets(policy, Favourite())
    if regret < 0.5 * chance:
        return '. It finds what everybody likes and not what one user likes: then the class declares `learns = "crowd"`'
    return ' (a policy that learns nothing declares `learns = "nothing"`)'


def survives_any_rewards(policy: Policy) -> None:
    """After constant, zero, tiny, huge and mixed rewards, and scales up to 10⁹, scores are still comparable numbers."""
    random = stream(0, "check")
    for extreme in EXTREMES:
        _survives(policy, np.full(100, extreme), f"rewards of {extreme:g}")
    _survives(policy, np.resize(EXTREMES, 100), f"rewards {EXTREMES} by turns")
    for low, high in SCALES:
        _survives(policy, random.uniform(low, high, EXTREME_STEPS), f"rewards from {low:g} to {high:g}")
        _survives(policy, random.choice([low, high], EXTREME_STEPS), f"rewards of {low:g} or {high:g}")
    _survives(policy, random.choice(EXTREMES, EXTREME_STEPS), f"rewards {EXTREMES} at random")


def _survives(policy: Policy, rewards: NDArray[np.float64], given: str) -> None:
    world = Checkerboard()
    agent = Agent(policy, world.n_users, world.n_items, seed=0, truth=told(policy, world, seed=0))
    for step, reward in enumerate(rewards):
        user = step * 7 % world.n_users
        agent.update(user, agent.select(user).item, float(reward))
    for user in range(world.n_users):
        agent.recommend(user, 1)  # a ranking looks at all candidates, where a choice need not
        assert np.isfinite(agent.slate.means).all(), f"after {given} a mean is not finite"
        assert not np.isnan(agent.slate.scores).any(), f"after {given} a score is not a number"
