"""What is told beforehand is what was asked for, and never a reward."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Need
from albatross.core.ratings import tabulated
from albatross.environments.further import Turnover
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Bernoulli, Gaussian, Synthetic
from albatross.environments.telling import informed, told
from albatross.environments.world import offered
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.policies.oracle import Oracle
from albatross.simulation.shards import simulate_shards


@dataclass(frozen=True)
class Reader(ItemMean):
    """Asks for ratings of others."""

    needs: ClassVar[tuple[Need, ...]] = (Need.RATINGS,)


def table_of(n_users: int = 9, n_items: int = 12) -> tuple[Ratings, Ratings, Ratings]:
    """The same ratings, no two of them equal, without and with a split by users and by ratings."""
    random = np.random.default_rng(0)
    users, items = np.nonzero(random.random((n_users, n_items)) < 0.6)
    table = tabulated(users, items, np.arange(users.size) / 8.0, scale=(0, 10), source="made up")
    return Ratings(table), Ratings(table, split="users"), Ratings(table, split="ratings")


@pytest.mark.parametrize("number", [1, 2])
def test_a_split_loses_nothing_and_tells_no_reward(number: int) -> None:
    every = table_of()
    whole, split = every[0].world(0), every[number]
    others = split.ratings_of_others(0)
    assert others is not None
    world = split.world(0)
    assert sorted([*world.ratings, *others.ratings]) == sorted(whole.ratings), (
        "each rating is distinct: a reward that is told would be here twice"
    )
    assert split.parameters()["n_told"] == others.ratings.size
    assert 0.3 < others.ratings.size / whole.ratings.size <= 0.55
    again = table_of()[number].ratings_of_others(5)
    assert again is not None
    assert np.array_equal(again.ratings, others.ratings), "the same at every seed"
    simulate(ItemMean(), split, horizon=50)


def test_half_of_the_users_never_arrive() -> None:
    whole, split, _ = table_of()
    others = split.ratings_of_others(0)
    assert others is not None
    assert (split.n_users, np.unique(others.users).tolist()) == (5, [0, 1, 2, 3])
    rows = {tuple(whole.world(0).ratings[whole.world(0).offsets[user] :][: whole.world(0).lengths[user]]) for user in range(9)}
    for user in range(4):
        assert tuple(others.ratings[others.users == user]) in rows, "a user is told of whole or not at all"


def test_half_of_each_user_is_told_and_a_single_rating_is_kept() -> None:
    split = Ratings(tabulated(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 2]), np.arange(4.0), scale=(0, 5), source="four"), split="ratings")
    assert [offered(split.world(0), user).size for user in range(split.n_users)] == [1, 2]


@pytest.mark.parametrize("world", [Gaussian(n_users=30, n_items=40), Bernoulli(n_users=30, n_items=40)])
def test_synthetic_worlds_tell_of_others_with_the_same_items(world: Synthetic) -> None:
    others = world.ratings_of_others(3)
    assert others.ratings.size == 30 * 20
    assert np.unique(others.users * 40 + others.items).size == others.ratings.size
    assert not np.array_equal(others.ratings, world.ratings_of_others(4).ratings)
    items = world.world(3).item_factors
    residual = total = 0.0
    for user in range(30):  # a regression on the true item vectors explains what others said
        mine = others.users == user
        features, values = items[others.items[mine]], others.ratings[mine]
        vector = np.linalg.lstsq(features, values, rcond=None)[0]
        residual += float(((values - features @ vector) ** 2).sum())
        total += float((values**2).sum())
    assert residual < 0.5 * total


def test_only_what_is_needed_is_told() -> None:
    world = Gaussian(n_users=3, n_items=4)
    assert told(ItemMean(), world, 0) is None
    truth, ratings = told(Oracle(), world, 0), told(Reader(), world, 0)
    assert truth is not None
    assert ratings is not None
    assert (truth.ratings, ratings.means.size, ratings.item_factors) == (None, 0, None)


def test_ratings_without_a_split_tell_nothing() -> None:
    with pytest.raises(InvalidInput, match=r"must be told other users' ratings, and made up keeps none apart; accepted: .* split=users"):
        simulate(Reader(), table_of()[0], horizon=10)


def test_an_agent_in_the_open_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be told other users' ratings, which only a simulated world has"):
        Agent(Reader(), 2, 3)


def test_who_wants_to_know_is_told_that_no_pair_comes_back() -> None:
    once = Gaussian(n_users=9, n_items=12, repeats=False)
    assert informed(MeanField(), once) == MeanField(returns=False)
    assert informed(ItemMean(), once) == ItemMean()
    assert informed(MeanField(returns=True), once) == MeanField(returns=True), "what a user has set stays"
    assert informed(MeanField(informed=False), once) == MeanField(informed=False)
    users, items = np.divmod(np.arange(40), 8)
    table = tabulated(users, items, np.linspace(0.0, 5.0, 40), scale=(0, 5), source="forty")
    assert informed(MeanField(), Ratings(table, repeats=False)) == MeanField(returns=False)


@pytest.mark.parametrize("world", [Gaussian(), Gaussian(candidates=7, fresh=True), Turnover()])
def test_where_pairs_may_come_back_nothing_is_told(world: Environment) -> None:
    assert informed(MeanField(), world) == MeanField()


@pytest.mark.parametrize("shards", [1, 2])
def test_a_trial_tells_it_and_its_recording_says_so(shards: int) -> None:
    once = Gaussian(n_users=15, n_items=20, rank=2, repeats=False)
    default, by_hand, untold = (
        simulate_shards(policy, once, horizon=200, shards=shards)
        for policy in (MeanField(), MeanField(returns=False), MeanField(informed=False))
    )
    assert default.policy == MeanField(returns=False)
    assert untold.policy == MeanField(informed=False)
    assert default.state_id == by_hand.state_id != untold.state_id
