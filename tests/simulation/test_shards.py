"""A world whose users live on several shards is the same world, and a trial of it a function of its recipe."""

from dataclasses import replace

import numpy as np
import pytest

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Gaussian, Uniform
from albatross.metrics.ndcg import NDCG
from albatross.policies.alb_rs import ALBRS
from albatross.policies.item_mean import ItemMean
from albatross.policies.pts import PTS
from albatross.simulation import shards
from albatross.simulation.shards import Recipe, Shard, simulate_shards

pytestmark = pytest.mark.xdist_group("alb-rs")

SMALL = Gaussian(n_users=13, n_items=15, rank=3)


@pytest.mark.parametrize("world", [SMALL, replace(SMALL, candidates=5, fresh=True), Uniform(n_users=13, n_items=15, repeats=False)])
def test_one_shard_lives_as_an_agent_does(world: Gaussian) -> None:
    recipe = Recipe(ALBRS(rank=2), world, 150, seed=4, ndcg=None, shards=1, exchange=40)
    shard, expected = Shard(recipe, 0), simulate(ALBRS(rank=2), world, 150, seed=4)
    for start in range(0, 150, 40):
        shard.live(min(start + 40, 150))
        shard.exchange.fold([shard.exchange.take()])
    assert np.array_equal(shard.public.record.items, expected.items)
    assert shard.lived().state_id == expected.state_id
    assert simulate_shards(ALBRS(rank=2), world, 150, seed=4, shards=1).state_id == expected.state_id


@pytest.mark.parametrize("world", [SMALL, replace(SMALL, candidates=5, fresh=True), replace(SMALL, candidates=5)])
def test_the_public_is_that_of_one_machine(world: Gaussian) -> None:
    alone = simulate(ItemMean(), world, 120, seed=1)
    split = simulate_shards(ItemMean(), world, 120, seed=1, shards=4, exchange=10)
    assert np.array_equal(split.users, alone.users)
    assert np.array_equal(split.best, alone.best)
    assert not np.array_equal(split.items, alone.items)


def test_processes_make_no_difference() -> None:
    arguments = {"horizon": 90, "seed": 2, "shards": 3, "exchange": 20, "ndcg": NDCG()}
    world = Uniform(n_users=13, n_items=15, rank=3)
    done: list[int] = []
    here, elsewhere = (simulate_shards(ALBRS(rank=2), world, **arguments, jobs=jobs, progress=done.append) for jobs in (1, 2))  # type: ignore[arg-type]
    assert here.state_id == elsewhere.state_id
    for name in ("items", "rewards", "expected", "best", "ndcg", "trivial"):
        assert np.array_equal(getattr(here, name), getattr(elsewhere, name)), name
    assert here.ndcg.size == 90
    assert done == 2 * ([1] * 90)


def test_what_a_worker_cannot_do_is_said() -> None:
    with pytest.raises(InvalidInput, match="InvalidInput: horizon is 500; accepted: at most 195"):
        simulate_shards(ItemMean(), replace(SMALL, repeats=False), 500, shards=2, jobs=2)


def test_counters_are_those_of_all() -> None:
    recording = simulate_shards(ALBRS(rank=2, patience=0.0), SMALL, 60, shards=3)
    assert recording.counters == {"switches": 60}


def test_more_shards_than_users_are_no_trouble() -> None:
    assert simulate_shards(ItemMean(), replace(SMALL, n_users=2), 30, shards=5).horizon == 30


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="policy 'pts' runs on one shard"):
        simulate_shards(PTS(), SMALL, 10, shards=2)
    for wrong in ({"shards": 0}, {"exchange": 0}, {"jobs": 0}, {"horizon": 0}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} is 0; accepted: a whole number, at least 1"):
            simulate_shards(ItemMean(), SMALL, **wrong)  # type: ignore[arg-type]


def test_shards_that_exchange_learn_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards that get what others found soon find the items that everybody likes."""
    world = Uniform(n_users=40, n_items=30, rank=2)

    def regret() -> float:
        return float(np.mean([simulate_shards(ItemMean(), world, 2000, seed, shards=20).pseudo_regret.sum() for seed in range(3)]))

    told = regret()
    monkeypatch.setattr(shards, "exchange_interval", lambda _step, _most: 2000)
    assert told < 0.7 * regret()
