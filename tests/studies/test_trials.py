"""What a trial keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albatross import simulate
from albatross.environments.synthetic import Bernoulli, Gaussian
from albatross.metrics.ndcg import NDCG
from albatross.policies.mean_field import MeanField
from albatross.policies.random import Random
from albatross.studies.trials import Trial, checkpoints, run

WORLD = Gaussian(n_users=6, n_items=5, rank=2)


@given(st.integers(1, 10**9))
def test_checkpoints_are_evenly_spaced_and_end_at_the_horizon(horizon: int) -> None:
    steps = checkpoints(horizon)
    gaps = np.diff(steps, prepend=0)
    assert steps[-1] == horizon
    assert steps.size == min(horizon, 100)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1


def test_curves_are_sums_up_to_the_checkpoints() -> None:
    result = run(Trial(Random(), WORLD, horizon=250, seed=3))
    recording = simulate(Random(), WORLD, horizon=250, seed=3)
    for number, step in enumerate(result.checkpoints):
        assert result.regret[number] == pytest.approx(recording.regret[:step].sum())
        assert result.pseudo_regret[number] == pytest.approx(recording.pseudo_regret[:step].sum())
    assert result.state_id == recording.state_id
    assert result.ndcg.size == 0


def test_rankings_are_measured_where_asked() -> None:
    world = Bernoulli(n_users=6, n_items=5, rank=2)
    result = run(Trial(Random(), world, horizon=250, seed=3, ndcg=NDCG(depth=2)))
    recording = simulate(Random(), world, horizon=250, seed=3, ndcg=NDCG(depth=2))
    assert result.ndcg[-1] == pytest.approx(recording.ndcg.mean())
    assert result.ndcg.size == result.checkpoints.size
    assert result.trivial == recording.trivial.mean()


def test_progress_adds_up_to_the_horizon() -> None:
    done: list[int] = []
    run(Trial(Random(), WORLD, horizon=10_000, seed=0), done.append)
    assert sum(done) == 10_000
    assert len(done) > 1


def test_a_recipe_says_all_that_matters() -> None:
    trial = Trial(Random(), WORLD, horizon=10, seed=0)
    others = [
        Trial(Random(), Gaussian(n_users=6, n_items=5, rank=3), horizon=10, seed=0),
        Trial(Random(), WORLD, horizon=11, seed=0),
        Trial(Random(), WORLD, horizon=10, seed=1),
        Trial(Random(), WORLD, horizon=10, seed=0, ndcg=NDCG()),
    ]
    assert trial.recipe() == Trial(Random(), WORLD, horizon=10, seed=0, dataset="under another name").recipe()
    for other in others:
        assert trial.recipe() != other.recipe()


def test_a_recipe_says_what_the_policy_is_told() -> None:
    once = Gaussian(n_users=6, n_items=5, rank=2, repeats=False)
    told, by_hand, untold = (Trial(policy, once, 10, 0) for policy in (MeanField(), MeanField(returns=False), MeanField(informed=False)))
    assert told.recipe()["parameters"]["returns"] is False
    assert told.recipe() == by_hand.recipe() != untold.recipe()


def test_the_protocol_is_said() -> None:
    assert Trial(Random(), WORLD, 10, 0).protocol() == "with repeats"
    assert Trial(Random(), Gaussian(repeats=False), 10, 0).protocol() == "without repeats"
