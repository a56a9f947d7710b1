"""The smallest models there are: one item, and vectors of length one."""

from dataclasses import replace

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.core.policy import Policy
from albatross.environments.synthetic import Uniform
from albatross.environments.telling import told

from zoo import POLICIES

EXAMPLES = [pytest.param(policy, id=name, marks=pytest.mark.xdist_group(name)) for name, policy in POLICIES.items()]
RANKED = [example for example in EXAMPLES if "rank" in POLICIES[str(example.id)].parameters()]


@pytest.mark.parametrize("policy", EXAMPLES)
def test_a_catalogue_of_one_item(policy: Policy) -> None:
    recording = simulate(policy, Uniform(n_users=3, n_items=1, rank=2), horizon=100)
    assert recording.pseudo_regret.tolist() == [0.0] * 100


@pytest.mark.parametrize("policy", RANKED)
def test_vectors_of_length_one(policy: Policy) -> None:
    smallest = replace(policy, rank=1)  # type: ignore[call-arg]
    world = Uniform(n_users=5, n_items=20, rank=1)
    recording = simulate(smallest, world, horizon=300)
    agent = Agent(smallest, 5, 20, seed=0, truth=told(smallest, world, seed=0))
    agent.replay(recording.users, recording.items, recording.rewards)
    assert agent.state_id == recording.state_id
    assert np.isfinite([choice.mean for choice in agent.recommend(0, 20)]).all()
