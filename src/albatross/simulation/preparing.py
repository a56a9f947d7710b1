"""Compiles a policy for its first trial, in two processes."""

import json

import numpy as np

from albatross.core.agent import Agent, learn
from albatross.core.environment import Environment
from albatross.core.policy import Policy
from albatross.kernels.building.beside import Beside, usable_cores
from albatross.kernels.compiling import is_wanted
from albatross.metrics.ndcg import NDCG
from albatross.policies import create
from albatross.simulation.loop import Loop, learn_nothing
from albatross.simulation.public import Public

PACKAGE = create.__module__
SIZES = (3, 4)
"""Users and items: more than one, because to Numba an array with one row is of another type."""


def prepare(policy: Policy, environment: Environment, ndcg: NDCG | None = None) -> None:
    """If nothing of this policy is compiled yet, another process compiles how it learns.

    Meanwhile this one compiles how it chooses, and the loop of a trial. Only for a policy of this package that is told nothing of the
    world: others are compiled when they are run.
    """
    if not type(policy).__module__.startswith(f"{PACKAGE}.") or policy.asks() or usable_cores() == 1:
        return
    agent = Agent(policy, environment.n_users, environment.n_items)
    if is_wanted(learn, type(agent.state)):
        with Beside(learn_aside, json.dumps([policy.policy_name(), policy.parameters()]).encode(), True) as helper:
            everybody = np.arange(environment.n_users, dtype=np.int32)
            Loop(agent, Public(environment, 1, 0, ndcg), everybody, ndcg is not None, learn_nothing)
            helper.wait()


def learn_aside(task: bytes) -> None:
    """The work of the other process."""
    name, parameters = json.loads(task)
    Agent(create(name, parameters), *SIZES).update(0, 0, 0.0)
