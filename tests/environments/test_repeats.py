"""Worlds in which nothing is shown twice."""

import numpy as np
import pytest

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian, Uniform
from albatross.environments.world import arrivals
from albatross.metrics.ndcg import NDCG
from albatross.policies.alb import ALB
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random


def test_no_pair_is_shown_twice_until_all_have_been_shown() -> None:
    world = Gaussian(n_users=6, n_items=20, candidates=7, repeats=False)
    recording = simulate(ALB(rank=2), world, horizon=42, seed=1)
    shown = set(zip(recording.users.tolist(), recording.items.tolist(), strict=True))
    offered = world.world(1)
    assert shown == {(user, int(offered.items[offered.offsets[user] + place])) for user in range(6) for place in range(7)}


def test_regret_is_against_the_best_item_that_is_left() -> None:
    recording = simulate(Oracle(), Uniform(n_users=3, n_items=10, repeats=False), horizon=30, seed=0, ndcg=NDCG())
    assert recording.pseudo_regret.sum() == 0.0
    assert recording.ndcg == pytest.approx(np.ones(30))
    for user in range(3):
        assert (np.diff(recording.expected[recording.users == user]) <= 0).all()


def test_who_arrives_does_not_depend_on_the_policy() -> None:
    world = Gaussian(n_users=10, n_items=12, repeats=False)
    first, second = (simulate(policy, world, horizon=100, seed=2) for policy in (ALB(rank=2), Random()))
    np.testing.assert_array_equal(first.users, second.users)


def test_arrivals_are_uniform_over_those_who_can_still_be_served() -> None:
    world = Gaussian(n_users=4, n_items=500, repeats=False).world(0)
    counts = np.bincount(arrivals(world, stream(0, "check"), 1000), minlength=4)
    assert (np.abs(counts - 250) < 60).all()


def test_more_steps_than_there_are_pairs_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"horizon is 13.*at most 12"):
        simulate(Random(), Gaussian(n_users=3, n_items=4, repeats=False), horizon=13)
