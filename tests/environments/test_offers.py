"""Worlds in which every arrival may be shown another random selection of a large catalogue."""

import numpy as np
import pytest

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian, Uniform
from albatross.environments.world import draw_offer, offered
from albatross.metrics.ndcg import NDCG
from albatross.policies.alb import ALB
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random


def test_an_offer_has_each_item_once_and_every_item_with_equal_chances() -> None:
    world = Gaussian(n_users=2, n_items=12, candidates=5, fresh=True).world(0)
    random = stream(0, "check")
    counts = np.zeros(12)
    for _ in range(2400):
        draw_offer(world, 1, random)
        offer = offered(world, 1)
        assert np.unique(offer).size == offer.size == 5
        counts[offer] += 1
    assert np.abs(counts - 1000).max() < 120


def test_every_policy_meets_the_same_offers() -> None:
    world = Gaussian(n_users=4, n_items=50, candidates=3, fresh=True)
    first, second = (simulate(policy, world, horizon=200, seed=1) for policy in (ALB(rank=2), Random()))
    np.testing.assert_array_equal(first.best, second.best)
    assert (first.items != second.items).any()
    assert np.unique(first.best).size > 4, "the best of an offer changes from visit to visit"


def test_regret_and_ranking_are_measured_against_the_offer() -> None:
    world = Uniform(n_users=3, n_items=30, candidates=6, fresh=True)
    knowing = simulate(Oracle(), world, horizon=100, seed=2, ndcg=NDCG())
    assert knowing.pseudo_regret.sum() == 0.0
    assert knowing.ndcg == pytest.approx(np.ones(100))
    guessing = simulate(Random(), world, horizon=100, seed=2)
    assert guessing.pseudo_regret.min() >= 0.0
    assert guessing.pseudo_regret.sum() > 0.0


def test_the_whole_catalogue_can_be_drawn() -> None:
    recording = simulate(Oracle(), Gaussian(n_users=3, n_items=9, candidates=9, fresh=True), horizon=50, seed=0)
    everything = simulate(Oracle(), Gaussian(n_users=3, n_items=9), horizon=50, seed=0)
    np.testing.assert_array_equal(recording.items, everything.items)


def test_fresh_candidates_need_a_number_and_repeats() -> None:
    with pytest.raises(InvalidInput, match=r"fresh is True while candidates is None.*accepted: a number of candidates"):
        Gaussian(fresh=True)
    with pytest.raises(InvalidInput, match="repeats is False"):
        Gaussian(candidates=3, fresh=True, repeats=False)
