"""A simulated shop: who comes, what is on sale, what they do, and that its truth is the truth."""

import numpy as np
import pytest

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.environments import create
from albatross.environments.shop import TRAFFIC, Shop
from albatross.environments.world import arrivals, draw_offer, truth_of
from albatross.policies.item_mean import ItemMean
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random

SMALL = Shop(n_users=60, n_items=50, candidates=20, day=40, pace=4, stock=5)


def test_who_knows_the_means_regrets_nothing_and_rewards_have_these_means() -> None:
    assert create("shop", SMALL.parameters()) == SMALL
    assert simulate(Oracle(), SMALL, horizon=400, seed=1).pseudo_regret.sum() == pytest.approx(0.0, abs=1e-9)
    guessing = simulate(Random(), SMALL, horizon=20_000, seed=1)
    assert guessing.pseudo_regret.min() >= 0.0
    assert guessing.pseudo_regret.sum() > 0.0
    difference = guessing.rewards - guessing.expected
    assert abs(difference.mean()) < 4.0 * difference.std() / np.sqrt(20_000)


def test_clicks_purchases_and_silence() -> None:
    rewards = simulate(Random(), SMALL, horizon=20_000, seed=2).rewards
    assert set(rewards.tolist()) == {0.0, 1.0, 5.0}
    clicked = rewards[rewards > 0.0]
    assert np.mean(clicked == 5.0) == pytest.approx(SMALL.buying, abs=4.0 * np.sqrt(0.16 / clicked.size))
    loud, quiet = (Shop(silent=silent).world(0) for silent in (0.0, 0.5))
    assert np.allclose(truth_of(quiet).means, 0.5 * truth_of(loud).means)


def test_the_window_moves_on_and_sold_out_items_are_back_another_day() -> None:
    world, random = SMALL.world(0), stream(0, "offers")
    offered = []
    for _ in range(10 * SMALL.day):
        draw_offer(world, 0, random)
        offered.append(world.items.tolist())
    assert {len(set(items)) for items in offered} == {20}
    assert all((item + visit // SMALL.day) % SMALL.stock > 0 for visit, items in enumerate(offered) for item in items)
    assert set(offered[0]) & set(offered[SMALL.day]) != set(offered[0]), "turnover, and other items that are sold out"
    first, second = (set(offered[visit]) for visit in (0, SMALL.day))
    assert second - first - {item for item in second if item % SMALL.stock == 0}, "items that are new"
    assert second & {item for item in range(20) if item % SMALL.stock == 0}, "items that were sold out the day before"


def test_visitors_return_at_their_hour_and_new_ones_come() -> None:
    shop = Shop(n_users=5_000)
    users = arrivals(shop.world(0), stream(0, "arrivals"), 10 * shop.day)
    morning = int(0.9 * shop.day)
    assert np.array_equal(users[:morning], np.arange(morning)), "on the first day everybody is new"
    seen, returned = set(range(shop.day)), []
    for user in users[shop.day :].tolist():
        returned.append(user in seen)
        seen.add(user)
    assert np.mean(returned) == pytest.approx(shop.returning, abs=0.03)
    hours = np.arange(users.size) % shop.day
    gaps = [np.abs(np.diff(hours[users == user])) for user in range(20)]
    assert np.median(np.concatenate(gaps)) <= 0.05 * shop.day


def test_hours_follow_the_traffic_of_a_day() -> None:
    hours = [int(Shop(day=2_000).hour_of(visit)) for visit in range(2_000)]
    assert np.allclose(np.bincount(hours, minlength=24) / 2_000, np.array(TRAFFIC) / sum(TRAFFIC), atol=0.002)


def test_items_of_a_category_are_alike() -> None:
    shop = Shop(n_items=800)
    items = shop.world(0).item_factors[:, : shop.rank]
    category = np.array([shop.category_of(item) for item in range(800)])
    within = np.mean([items[category == number].var(axis=0).sum() for number in range(shop.categories)])
    assert within < 0.6 * items.var(axis=0).sum()


def test_who_learns_sells_more() -> None:
    learned = simulate(ItemMean(shrunk=True), SMALL, horizon=4_000, seed=0).expected[2_000:].mean()
    assert learned > 1.2 * simulate(Random(), SMALL, horizon=4_000, seed=0).expected[2_000:].mean()


def test_a_shop_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Shop: candidates is None, .*accepted: a number of candidates"):
        Shop(candidates=None)
    with pytest.raises(InvalidInput, match="candidates is 45; accepted: at most 40, as some of 50 are sold out"):
        Shop(n_items=50, candidates=45, stock=5)
