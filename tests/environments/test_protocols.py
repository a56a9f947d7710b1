"""The same data, lived through in other ways; and worlds beyond the paper's."""

import numpy as np
import pytest

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.core.ratings import tabulated
from albatross.core.streams import stream
from albatross.environments import PROTOCOLS, create, from_text
from albatross.environments.further import FURTHER, Drift, Late, RareClicks, Skewed, Stars, Turnover
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Gaussian
from albatross.environments.world import arrivals
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["gaussian", "uniform", "bernoulli"])
def test_a_protocol_says_what_comes_back_and_what_is_said(name: str, protocol: str) -> None:
    world = create(name, {"protocol": protocol, "n_users": 4, "n_items": 30})
    assert world == from_text(name, {"protocol": protocol, "n_users": "4", "n_items": "30"})
    recording = simulate(Random(), world, horizon=110, seed=0)
    pairs = set(zip(recording.users.tolist(), recording.items.tolist(), strict=True))
    assert (len(pairs) == 110) == protocol.endswith("no-repeats")
    assert set(recording.rewards.tolist()) == {0.0, 1.0} or ("clicks" not in protocol and name != "bernoulli")


def test_good_ratings_are_clicks() -> None:
    def clicks(ratings: list[float], scale: tuple[float, float] | None) -> list[float]:
        numbers = np.arange(len(ratings))
        table = tabulated(np.zeros_like(numbers), numbers, np.array(ratings), scale=scale, source="example")
        return Ratings(table, clicks=True).world(0).ratings.tolist()  # type: ignore[no-any-return]

    assert clicks([1.0, 2.0, 3.0, 4.0, 5.0], (1, 5)) == [0, 0, 0, 1, 1]
    assert clicks([7.0, 8.0, 10.0], (1, 10)) == [0, 1, 1]
    assert clicks([-3.0, 3.9, 4.1], (-10, 10)) == [0, 0, 1]
    assert clicks([20.0, 60.0, 90.0, 100.0], None) == [0, 0, 1, 1], "from the lowest to the highest there is"


def test_a_protocol_that_is_not_known_or_contradicted_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"protocol 'again'.*no-repeats"):
        create("gaussian", {"protocol": "again"})
    with pytest.raises(InvalidInput, match="protocol is 'clicks' and repeats is 'false'"):
        from_text("gaussian", {"protocol": "clicks", "repeats": "false"})


@pytest.mark.parametrize("name", [name for name in FURTHER if name != "drift"])
def test_who_knows_the_means_regrets_nothing_and_rewards_have_these_means(name: str) -> None:
    sizes = {"n_users": 20, "n_items": 60} | ({"candidates": 30} if name == "turnover" else {})
    world = create(name, sizes)
    assert simulate(Oracle(), world, horizon=400, seed=1).pseudo_regret.sum() == pytest.approx(0.0, abs=1e-9)
    guessing = simulate(Random(), world, horizon=20_000, seed=1)
    assert guessing.pseudo_regret.min() >= 0.0
    assert guessing.pseudo_regret.sum() > 0.0
    difference = guessing.rewards - guessing.expected
    assert abs(difference.mean()) < 4.0 * difference.std() / np.sqrt(20_000)


def test_users_drift_as_far_as_they_are_told_and_no_farther() -> None:
    world = Drift(n_users=2, n_items=50, step=0.3)
    recording = simulate(Random(), world, horizon=4000, seed=0)
    assert np.unique(recording.best[recording.users == 0]).size > 1000, "never the same user twice"
    still = simulate(Random(), Gaussian(n_users=2000, n_items=50), horizon=4000, seed=0)
    assert recording.best.mean() == pytest.approx(still.best.mean(), rel=0.15)
    with pytest.raises(InvalidInput, match="users change"):
        simulate(Oracle(), world, horizon=10)


def test_the_window_moves_on_by_one_item_at_a_time() -> None:
    world = Turnover(n_users=5, n_items=12, candidates=4, pace=10)
    recording = simulate(Random(), world, horizon=200, seed=0)
    first = np.arange(200) // 10
    assert ((recording.items - first) % 12 < 4).all()
    assert {(item - number) % 12 for item, number in zip(recording.items.tolist(), first.tolist(), strict=True)} == {0, 1, 2, 3}


def test_some_come_often() -> None:
    world = Skewed(n_users=100, n_items=10).world(0)
    counts = np.bincount(arrivals(world, stream(0, "check"), 20_000), minlength=100)
    share = 1.0 / (1.0 / np.arange(1, 101)).sum()
    assert counts[0] == pytest.approx(20_000 * share, rel=0.1)
    assert counts[9] == pytest.approx(20_000 * share / 10, rel=0.25)


def test_late_answers_are_heard_in_their_order_and_the_last_ones_never() -> None:
    """Nothing is known for the first 40 choices; from then on exactly what was said 40 choices ago."""
    world = Late(n_users=3, n_items=30, delay=40)
    late, soon = (simulate(ItemMean(), place, horizon=60, seed=0) for place in (world, Late(n_users=3, n_items=30, delay=0)))
    assert late.state_id != soon.state_id
    heard = np.unique(late.items[:20])
    assert not np.isin(late.items[59], heard).any(), "items that were heard of are not tried before those that were not"
    assert np.unique(soon.items[:30]).size == 30
    at_once = simulate(ItemMean(), Gaussian(n_users=3, n_items=30), horizon=60, seed=0)
    np.testing.assert_array_equal(at_once.items, soon.items)
    across = simulate(MeanField(rank=2), Late(n_users=20, n_items=20, rank=2), horizon=10_000, seed=0)
    assert across.pseudo_regret[9000:].mean() < 0.3 * across.pseudo_regret[:400].mean()


def test_stars_and_rare_clicks_are_what_they_are_called() -> None:
    stars = simulate(Random(), Stars(), horizon=5000, seed=0)
    assert set(stars.rewards.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    clicks = simulate(Random(), RareClicks(), horizon=5000, seed=0)
    assert set(clicks.rewards.tolist()) == {0.0, 1.0}
    assert 0.01 < clicks.expected.mean() < 0.08


def test_what_a_world_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="accepted: a number of candidates"):
        Turnover(repeats=False)
    with pytest.raises(InvalidInput, match="Stars: clicks is True"):
        create("stars", {"protocol": "clicks"})
    with pytest.raises(InvalidInput, match="RareClicks: clicks is False"):
        RareClicks(clicks=False)
