"""What is compared for speed does the same."""

import numpy as np
import pytest

from albatross import Agent
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from benchmarks import numpy_alb


@pytest.mark.xdist_group("alb")
@pytest.mark.parametrize("rebuild_interval", [4096, 30], ids=["as measured", "summing afresh often"])
def test_the_numpy_yardstick_is_the_policy(rebuild_interval: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both learn the same ratings, half of them of items that neither would have chosen."""
    monkeypatch.setattr(numpy_alb, "REBUILD_INTERVAL", rebuild_interval)
    random = np.random.default_rng(0)
    environment = Gaussian(n_users=20, n_items=30)
    world = environment.world(0)
    means = world.user_factors @ world.item_factors.T
    policy = ALB(ridge=1.0, noise=0.5)  # a small ridge magnifies rounding errors more within these steps
    agent = Agent(policy, environment.n_users, environment.n_items)
    yardstick = numpy_alb.NumpyALB(policy, agent.state.user_factors, agent.state.item_factors)
    for step in range(300):
        user = int(random.integers(environment.n_users))
        choice, chosen = agent.select(user), yardstick.select(user)
        assert yardstick.scores == pytest.approx(agent.slate.scores, rel=1e-8, abs=1e-8), f"scores at step {step}"
        assert yardstick.scores[choice.item] == pytest.approx(yardstick.scores[chosen], rel=1e-8), f"choice at step {step}"
        item = choice.item if step % 2 == 0 else int(random.integers(environment.n_items))
        reward = float(means[user, item] + 0.5 * random.standard_normal())
        agent.update(user, item, reward)
        yardstick.update(user, item, reward)
        assert yardstick.user_factors == pytest.approx(agent.state.user_factors, rel=1e-8, abs=1e-8), f"users at step {step}"
        assert yardstick.item_factors == pytest.approx(agent.state.item_factors, rel=1e-8, abs=1e-8), f"items at step {step}"
