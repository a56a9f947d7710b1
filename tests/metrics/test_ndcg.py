"""NDCG against a direct computation, and in a trial."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.core.ratings import RatingTable
from albatross.core.vocabulary import Vocabulary
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Gaussian, Uniform
from albatross.kernels.compiling import program
from albatross.metrics.ndcg import NDCG, discounted_gain
from albatross.policies.alb import ALB
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random
from albatross.simulation.loop import live

rankings = st.lists(
    st.tuples(st.integers(-3, 3), st.floats(0, 10)),  # few different scores, so that ties are frequent
    min_size=1,
    max_size=12,
)


def direct(scores: list[float], relevances: list[float], depth: int, exponential: bool) -> float:
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:depth]
    gains = [2 ** relevances[index] - 1 if exponential else relevances[index] for index in order]
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


@given(rankings, st.integers(1, 6), st.booleans())
def test_discounted_gain_is_that_of_sorting(ranking: list[tuple[int, float]], depth: int, exponential: bool) -> None:
    scores, relevances = [float(score) for score, _ in ranking], [relevance for _, relevance in ranking]
    ruler = NDCG(depth=depth, gain="exponential" if exponential else "linear").ruler(len(ranking))
    ruler.relevances[:] = relevances
    found = discounted_gain(np.array(scores), len(scores), ruler)
    assert found == pytest.approx(direct(scores, relevances, depth, exponential))
    ideal = discounted_gain(ruler.relevances, len(scores), ruler)
    assert ideal == pytest.approx(direct(relevances, relevances, depth, exponential))
    assert found <= ideal * (1 + 1e-12)


def test_the_oracle_ranks_perfectly_and_chance_does_not() -> None:
    world = Uniform(n_users=10, n_items=30, candidates=8)
    assert simulate(Oracle(), world, horizon=300, ndcg=NDCG()).ndcg == pytest.approx(np.ones(300))
    chance = simulate(Random(), world, horizon=300, ndcg=NDCG()).ndcg
    assert ((chance > 0) & (chance <= 1)).all()
    assert chance.mean() < 0.95


def test_measuring_changes_nothing_else() -> None:
    world = Uniform(n_users=10, n_items=30)
    measured, plain = (simulate(ALB(), world, horizon=500, ndcg=ndcg) for ndcg in (NDCG(), None))
    assert measured.state_id == plain.state_id
    assert plain.ndcg.size == 0
    np.testing.assert_allclose(measured.average_ndcg[-1], measured.ndcg.mean())


def logged(ratings: list[list[float]], low: float | None) -> Ratings:
    users = np.repeat(np.arange(len(ratings)), [len(row) for row in ratings]).astype(np.int32)
    items = np.concatenate([np.arange(len(row)) for row in ratings]).astype(np.int32)
    names = Vocabulary(str(number) for number in range(max(map(len, ratings))))
    people = Vocabulary(str(number) for number in range(len(ratings)))
    scale = None if low is None else (low, 10.0)
    return Ratings(RatingTable(users, items, np.concatenate(ratings), people, names, "small", scale))


def test_ratings_are_shifted_to_the_bottom_of_the_scale_for_relevance_alone() -> None:
    world = logged([[-10.0, 10.0]], low=-10.0)
    recording = simulate(Random(), world, horizon=200, ndcg=NDCG())
    right, wrong = 1.0, (1 / math.log2(3)) / 1.0
    assert set(np.round(recording.ndcg, 12)) == {right, round(wrong, 12)}
    assert set(recording.rewards) == {-10.0, 10.0}


def test_every_kind_of_world_runs_the_same_machine_code() -> None:
    for world in (
        logged([[-10.0, 10.0]], low=-10),
        logged([[1.0, 2.0]], low=None),
        Uniform(n_users=2, n_items=3),
        Gaussian(n_users=2, n_items=3),
    ):
        simulate(Random(), world, horizon=5, ndcg=None if isinstance(world, Gaussian) else NDCG())
    assert len(program(live).signatures) == 1  # type: ignore[attr-defined]


def test_one_candidate_and_no_relevance_are_trivial_and_counted() -> None:
    recording = simulate(Random(), logged([[3.0], [0.0, 0.0], [1.0, 2.0]], low=None), horizon=300, ndcg=NDCG())
    assert recording.trivial.tolist() == [bool(user < 2) for user in recording.users]
    assert recording.ndcg[recording.trivial].tolist() == [1.0] * int(recording.trivial.sum())


def test_where_means_have_no_floor_it_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no floor"):
        simulate(ALB(), Gaussian(), horizon=10, ndcg=NDCG())
