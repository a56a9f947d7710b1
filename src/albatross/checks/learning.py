"""That a policy learns, and that no rewards break it."""

import numpy as np

from albatross.checks.worlds import Checkerboard, Favourite
from albatross.core.agent import Agent
from albatross.core.environment import Environment
from albatross.core.policy import Policy
from albatross.environments.world import truth_of
from albatross.policies.random import Random
from albatross.simulation.trial import simulate

EXTREMES = (0.0, 1.0, -1.0, 1e-9, 1e6, -1e6)
HORIZON = 4000


def beats_random(policy: Policy) -> None:
    """Where the answer is obvious, it is found: less than half of the regret of showing anything."""
    if policy.learns == "nothing":
        return
    world: Environment = Checkerboard() if policy.learns == "users" else Favourite()
    regret = simulate(policy, world, HORIZON, seed=0).pseudo_regret.sum()
    chance = simulate(Random(), world, HORIZON, seed=0).pseudo_regret.sum()
    assert regret < 0.5 * chance, f"regret {regret:.0f}, showing anything {chance:.0f}"


def survives_any_rewards(policy: Policy) -> None:
    """Constant, zero, tiny and huge rewards, and a mixture of them, leave scores that can be compared."""
    world = Checkerboard()
    truth = truth_of(world.world(0)) if policy.privileged else None
    for rewards in [*((extreme,) for extreme in EXTREMES), EXTREMES]:
        agent = Agent(policy, world.n_users, world.n_items, seed=0, truth=truth)
        for step in range(100):
            user = step * 7 % world.n_users
            agent.update(user, agent.select(user).item, rewards[step % len(rewards)])
        agent.select(0)
        assert np.isfinite(agent.slate.means).all(), f"after rewards {rewards} a mean is not finite"
        assert not np.isnan(agent.slate.scores).any(), f"after rewards {rewards} a score is not a number"
