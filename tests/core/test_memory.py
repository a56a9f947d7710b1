"""What a policy will take is known before it takes it."""

from pathlib import Path

import pytest

from albatross import Agent, simulate
from albatross.core import memory
from albatross.core.errors import InvalidInput
from albatross.core.memory import footprint, memory_limit, show_bytes
from albatross.core.policy import Policy
from albatross.core.state import flatten, reserve
from albatross.environments.synthetic import Gaussian
from albatross.environments.telling import told
from albatross.policies.alb import ALB
from albatross.policies.oracle import Oracle
from albatross.policies.pts import PTS
from albatross.policies.random import Random

from zoo import POLICIES


@pytest.mark.parametrize("policy", [pytest.param(policy, id=name) for name, policy in POLICIES.items()])
def test_an_estimate_is_what_an_agent_takes(policy: Policy) -> None:
    n_users, n_items = 300, 200
    truth = told(policy, Gaussian(n_users=n_users, n_items=n_items), seed=0)
    agent = Agent(policy, n_users, n_items, truth=truth)
    agent.state = reserve(agent.state, 1000)
    taken = sum(array.nbytes for _, array in flatten(agent.state))
    taken += 0 if truth is None else truth.means.nbytes
    assert taken <= footprint(policy, n_users, n_items, 1000) <= 1.2 * taken + 10_000_000


def test_what_grows_with_users_and_items_is_measured_exactly() -> None:
    policy = PTS(n_particles=10, rank=3)
    small, large = (sum(array.nbytes for _, array in flatten(Agent(policy, n, 50).state)) for n in (100, 300))
    assert footprint(policy, 300, 50) - footprint(policy, 100, 50) == large - small


def test_a_million_users_do_not_cost_users_times_items() -> None:
    estimate = footprint(ALB(rank=5), 1_000_000, 100_000, 10_000_000)
    assert estimate < 1_000_000_000
    assert footprint(Oracle(), 1_000_000, 100_000) > 1_000_000_000_000


def test_what_cannot_fit_is_refused_with_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: 10_000_000_000)
    huge = Gaussian(n_users=1_000_000, n_items=100_000, candidates=500, fresh=True)
    with pytest.raises(InvalidInput, match=r"'oracle' for 1,000,000 users and 100,000 items: would take about 1\.6 TB.*at most 10\.0 GB"):
        simulate(Oracle(), huge, horizon=10)
    with pytest.raises(InvalidInput, match=r"'pts' for 10,000,000 users and 5 items: would take about .* GB"):
        Agent(PTS(), 10_000_000, 5)
    with pytest.raises(InvalidInput, match=r"recording of 1,000,000,000 steps: would take about 64\.0 GB"):
        simulate(Random(), Gaussian(), horizon=10**9)
    with pytest.raises(InvalidInput, match=r"a world with 1,000,000,000 users and 200 items: would take about .* GB"):
        Gaussian(n_users=10**9).world(0)
    with pytest.raises(InvalidInput, match=r"n_users is 3000000000; accepted: at most 2147483647"):
        Agent(Random(), 3_000_000_000, 5)


def test_growth_beyond_memory_is_refused_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(ALB(rank=5), 10, 10)
    before = agent.state_id
    monkeypatch.setattr(memory, "memory_limit", lambda: 1_000_000_000)
    with pytest.raises(InvalidInput, match="would take about"):
        agent.grow(100_000_000, 10)
    assert (agent.state_id, agent.n_users) == (before, 10)


def test_the_limit_is_that_of_the_container_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory_limit.cache_clear()
    machine = memory_limit()
    for text, expected in (("1000000\n", 1_000_000), ("max\n", machine)):
        path = tmp_path / "memory.max"
        path.write_text(text)
        monkeypatch.setattr(memory, "CONTROL_GROUP_LIMIT", path)
        memory_limit.cache_clear()
        assert memory_limit() == min(expected, machine)
    memory_limit.cache_clear()


def test_sizes_as_people_say_them() -> None:
    assert [show_bytes(size) for size in (12, 5_000_000, 6_540_000_000_000)] == ["12 bytes", "5.0 MB", "6.5 TB"]
