"""A trial is a function of its recipe and its seed, and its public does not depend on the policy."""

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent, Recording, simulate
from albatross.core.asking.together import choose_supposing
from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import plain
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.environments.further import Late
from albatross.environments.synthetic import Bernoulli, Gaussian, Synthetic, Uniform
from albatross.environments.world import arrivals
from albatross.kernels.operations import ALL_ITEMS
from albatross.metrics.ndcg import NDCG
from albatross.policies.alb import ALB
from albatross.policies.mean_field import MeanField
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random
from albatross.simulation.public import CHUNK
from albatross.simulation.trial import begin

pytestmark = pytest.mark.xdist_group("alb")

POLICIES: list[Policy] = [ALB(rank=3), Random(), Oracle()]
SMALL = Gaussian(n_users=12, n_items=15, rank=3)
WORLDS: list[Synthetic] = [
    kind(n_users=12, n_items=15, rank=3, candidates=candidates) for kind in (Gaussian, Uniform, Bernoulli) for candidates in (None, 5)
]
each_world = pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"{world.name}-{world.candidates or 'all'}")


class Alternating:
    """Shows what is offered first and last, in turns."""

    def __init__(self, n_users: int, n_items: int, random: np.random.Generator) -> None:
        self.heard = 0

    def select(self, user: int, candidates: NDArray[np.int64]) -> int:
        return int(candidates[-(self.heard % 2)])

    def update(self, user: int, item: int, reward: float) -> None:
        self.heard += 1

    def scores(self, user: int, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
        return candidates.astype(float)


LIVES = """
from albatross import simulate
from albatross.environments.further import Late
from albatross.environments.synthetic import Bernoulli, Gaussian
from albatross.policies import create

for name, parameters in (("alb", {"rank": 3, "ridge": 0.01}), ("random", {})):
    for world in (Gaussian(n_users=9, n_items=135, rank=2), Bernoulli(n_users=9, n_items=20, rank=2, candidates=7)):
        lived = simulate(create(name, parameters), world, horizon=250, seed=4)
        print(name, world.name, lived.items.tobytes().hex(), lived.rewards.tobytes().hex(), lived.state_id)
"""


def lives(**environment: str) -> list[str]:
    """The trials as run in another process."""
    variables = {**os.environ, **environment}
    finished = subprocess.run([sys.executable, "-c", LIVES], env=variables, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_same_seed_same_bytes_in_any_process_interpreted_or_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    expected = lives()
    assert len(expected) == 4
    assert lives() == expected, "another process"
    assert lives(NUMBA_DISABLE_JIT="1") == expected, "interpreted"
    exec(LIVES, {})
    assert capsys.readouterr().out.splitlines() == expected, "this process"


def bytes_of(lived: Recording) -> list[Any]:
    arrays = (lived.users, lived.items, lived.rewards, lived.expected, lived.best)
    return [array.tobytes() for array in arrays] + [lived.state_id]


@each_world
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.policy_name())
def test_a_seed_is_a_life(policy: Policy, world: Synthetic) -> None:
    first, again, other = (simulate(policy, world, horizon=200, seed=seed) for seed in (3, 3, 4))
    assert bytes_of(first) == bytes_of(again)
    assert (first.users != other.users).any()
    assert (first.rewards != other.rewards).any()


@pytest.mark.parametrize("policy", [ALB(rank=3), Random(), plain(Alternating)], ids=["alb", "random", "plain"])
@pytest.mark.parametrize("ndcg", [None, NDCG(5)], ids=["", "ranked"])
def test_a_life_in_slices_is_the_same_life(policy: Policy, ndcg: NDCG | None) -> None:
    world = Bernoulli(n_users=12, n_items=15, rank=3, candidates=5) if ndcg else Late(n_users=12, n_items=15, rank=3, delay=7)
    horizon = CHUNK + 100 if isinstance(policy, Random) else 300
    whole = simulate(policy, world, horizon, seed=2, ndcg=ndcg)
    life = begin(policy, world, horizon, seed=2, ndcg=ndcg)
    for size in itertools.cycle([1, 0, 63, 8, 2_000]):
        life.advance(size)
        assert life.public.record.items[: life.done].tobytes() == whole.items[: life.done].tobytes()
        if life.done == horizon:
            break
    assert bytes_of(life.recording()) == bytes_of(whole)
    assert life.recording().ndcg.tobytes() == whole.ndcg.tobytes()
    life.advance(1)
    assert life.done == horizon


@each_world
def test_every_policy_meets_the_same_public(world: Synthetic) -> None:
    recordings = [simulate(policy, world, horizon=400, seed=1) for policy in POLICIES]
    first = recordings[0]
    for other in recordings[1:]:
        assert (other.items != first.items).any()
        assert (other.users == first.users).all()
        assert (other.best == first.best).all()
        if isinstance(world, Bernoulli):  # a mood between the two means makes one say yes and the other no, never the reverse
            higher = other.expected >= first.expected
            assert (other.rewards[higher] >= first.rewards[higher]).all()
        else:
            np.testing.assert_allclose(other.rewards - other.expected, first.rewards - first.expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("repeats", "horizon"), [(True, CHUNK + 50), (False, 150)])
def test_arrivals_reactions_and_what_a_policy_draws_have_streams_of_their_own(repeats: bool, horizon: int) -> None:
    world = replace(SMALL, repeats=repeats)
    lived = simulate(Random(), world, horizon, seed=6)
    np.testing.assert_array_equal(lived.users, arrivals(world.world(6), stream(6, "arrivals"), horizon))
    moods = stream(6, "reactions").standard_normal(horizon)
    np.testing.assert_allclose(lived.rewards - lived.expected, world.noise * moods, atol=1e-13)
    if repeats:
        np.testing.assert_array_equal(lived.items, stream(6, "exploring").random((horizon, world.n_items)).argmax(axis=1))


def test_users_arrive_uniformly() -> None:
    counts = np.bincount(simulate(Random(), Gaussian(n_users=10, n_items=2, rank=1), horizon=50_000, seed=0).users)
    assert counts.size == 10
    assert np.abs(counts - 5000).max() < 5 * np.sqrt(5000 * 0.9)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.policy_name())
@pytest.mark.parametrize("horizon", [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 300])
def test_a_shorter_life_is_the_beginning_of_a_longer_one(policy: Policy, horizon: int) -> None:
    world = Gaussian(n_users=12, n_items=15, rank=3, candidates=5)
    short, long = (simulate(policy, world, each, seed=2) for each in (horizon, 2 * CHUNK + 500))
    assert short.horizon == horizon
    for name in ("users", "items", "rewards", "expected", "best"):
        assert (getattr(short, name) == getattr(long, name)[:horizon]).all(), name


@each_world
def test_pseudo_regret_is_never_negative(world: Synthetic) -> None:
    for policy in POLICIES:
        lived = simulate(policy, world, horizon=1000, seed=0)
        assert (lived.pseudo_regret >= 0).all()
        np.testing.assert_array_equal(lived.regret, lived.best - lived.rewards)
    assert simulate(Random(), world, horizon=1000, seed=0).pseudo_regret.sum() > 0


@each_world
def test_the_oracle_regrets_nothing_but_the_noise(world: Synthetic) -> None:
    lived = simulate(Oracle(), world, horizon=1000, seed=0)
    assert not lived.pseudo_regret.any()
    noise = lived.rewards - lived.expected
    assert noise.any()
    assert lived.regret.sum() == pytest.approx(-noise.sum(), abs=1e-10)


def test_progress_is_told_of_every_step() -> None:
    told: list[int] = []
    simulate(Random(), SMALL, horizon=2 * CHUNK + 5, seed=0, progress=told.append)
    assert told == [CHUNK, CHUNK, 5]


def test_a_recording_carries_its_recipe() -> None:
    lived = simulate(Random(), SMALL, horizon=7, seed=5)
    assert (lived.policy, lived.environment, lived.seed, lived.horizon) == (Random(), "gaussian", 5, 7)
    assert lived.seconds >= 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon is 0; accepted: a whole number, at least 1"),
        ({"horizon": -5}, "horizon is -5; accepted: a whole number, at least 1"),
        ({"horizon": 2.5}, "horizon is 2.5; accepted: a whole number, at least 1"),
        ({"seed": -1}, "seed is -1; accepted: a whole number, at least 0"),
        ({"seed": 1.5}, "seed is 1.5; accepted: a whole number, at least 0"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulate(Random(), SMALL, **{"horizon": 5, **arguments})


def test_ratings_on_their_way_are_supposed_to_be_as_predicted() -> None:
    delay, policy = 7, MeanField(rank=2)
    lived = simulate(policy, Late(n_users=4, n_items=9, rank=2, delay=delay), horizon=150, seed=3)
    agent, shown = Agent(policy, 4, 9, seed=3), list(zip(lived.users.tolist(), lived.items.tolist(), lived.rewards.tolist(), strict=True))
    for step, (user, item, _) in enumerate(shown):
        pending = list(dict.fromkeys(before for other, before, _ in shown[max(step - delay, 0) : step] if other == user))
        supposed = (np.array(pending, np.int32), np.full(len(pending), np.nan))
        assert choose_supposing(agent, agent.exploring, user, ALL_ITEMS, *supposed, False, ALL_ITEMS)[0] == item
        if step >= delay:
            agent.update(*shown[step - delay])
