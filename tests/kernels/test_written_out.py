"""What is written out instruction by instruction comes to the same bits as the loops."""

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross.kernels.compiling import program
from albatross.kernels.mean_field.moments import Regression, add_moments, certain, describe, fit, no_regression, partner_weights
from albatross.kernels.mean_field.partners import sum_partners, tell_partners
from albatross.kernels.mean_field.side_by_side import may_reach, value_lanes
from albatross.kernels.mean_field.valuing import Reach, Scales
from albatross.kernels.pairs import Pairs, no_pairs, remember
from albatross.kernels.search.lanes import LANES
from albatross.kernels.search.scoring import measure_lanes, turn_lanes

Array = NDArray[np.float64]


def weighed(work: Regression, weights: Array) -> None:
    certain(work.mean, work.moments)
    partner_weights(work.moments, work.mean.size, weights)


@pytest.mark.parametrize("rank", [1, 4, 5, 6])
def test_weights_compiled_are_weights_interpreted(rank: int) -> None:
    outcomes = []
    for function in (weighed, program(weighed)):
        work = no_regression(rank)
        work.mean[:] = np.random.default_rng(rank).normal(size=rank + 1)
        weights = np.full(work.moments.size, np.nan)
        function(work, weights)
        outcomes.append((work.moments.tobytes(), weights.tobytes()))
    assert outcomes[0] == outcomes[1]


def learned(work: Regression, rows: Array, variance: Array) -> None:
    for row in range(rows.shape[0]):
        add_moments(work.sums, work.rights, rows[row], 0.5 + row, 1.5 - row)
    fit(work, work.sums, work.rights, variance, 0.3, 0.7)
    describe(work, 0.7)


@pytest.mark.parametrize("rank", [1, 4, 5, 6, 12])
@pytest.mark.parametrize("spoiled", [False, True], ids=["sound", "spoiled"])
def test_a_fit_compiled_is_a_fit_interpreted(rank: int, spoiled: bool) -> None:
    random = np.random.default_rng(rank)
    people, variance = random.normal(size=(4, rank + 2)), random.uniform(0.5, 2.0, rank + 1)
    people[:, rank] = 1.0
    rows = np.array([np.outer(person, person)[np.tril_indices(rank + 2)] for person in people])
    if spoiled:  # not a sum of squares: a pivot is raised
        rows[:, (rank + 1) * (rank + 2) // 2 - 1] = -1.0
    compiled, interpreted = no_regression(rank), no_regression(rank)
    program(learned)(compiled, rows, variance)
    learned(interpreted, rows, variance)
    for name in ("sums", "rights", "mean", "moments"):
        assert getattr(compiled, name).tobytes() == getattr(interpreted, name).tobytes(), name
    assert np.tril(compiled.whitener).tobytes() == np.tril(interpreted.whitener).tobytes()


def walked(pairs: Pairs, rows: Array, clicks: float, sums: Array, rights: Array, work: Regression) -> float:
    chain = pairs.first[1], pairs.following, pairs.items, pairs.plays, pairs.totals
    squares = sum_partners(*chain, rows, 0.3, 0.2, clicks, work.sums, work.rights)
    tell_partners(*chain, work.sums, 0.3, 0.2, sums, rights)
    return squares


@pytest.mark.parametrize("rank", [1, 4, 5, 6, 12])
@pytest.mark.parametrize("n_items", [0, 1, 7])
@pytest.mark.parametrize("clicks", [0.0, 0.2])
def test_a_walk_over_partners_compiled_is_a_walk_interpreted(rank: int, n_items: int, clicks: float) -> None:
    random = np.random.default_rng(rank)
    packed = (rank + 2) * (rank + 3) // 2
    following, items, plays = np.zeros((3, 40), np.int32)
    pairs = no_pairs(2)._replace(following=following, items=items, plays=plays, totals=np.zeros(40))
    for number in range(3 * n_items):  # in turns with another user, so that chains have gaps
        remember(pairs, number % 2, (5 * number) % n_items, random.normal())
    rows = random.normal(size=(n_items, packed))
    outcomes = []
    for function in (walked, program(walked)):
        sums, rights, work = np.ones((n_items, packed)), np.ones((n_items, rank + 1)), no_regression(rank)
        work.sums.fill(np.nan)  # what was there before does not count
        squares = function(pairs, rows, clicks, sums, rights, work)
        outcomes.append((squares, sums.tobytes(), rights.tobytes(), work.sums.tobytes(), work.rights.tobytes()))
    assert outcomes[0] == outcomes[1]


def looked_at(
    rows: Array,
    numbers: NDArray[np.int32],
    block: Array,
    center: Array,
    whitener: Array,
    weights: Array,
    scales: Scales,
    reach: Reach,
    results: Array,
    least: float,
) -> int:
    turn_lanes(rows, numbers, 2, block)
    measure_lanes(block, 0, center, whitener, weights, results[0], results[1], results[2], 0)
    for kind in range(3):
        for lane in range(LANES):
            results[4 + kind, lane] = results[kind, lane]
    reaching = may_reach(scales, reach, results[0], results[2], results[1], 0, least)
    for lane in range(LANES):
        results[4, lane] = abs(results[4, lane])
    value_lanes(scales, results[4], results[6], results[5], results[3])
    return reaching


@pytest.mark.parametrize("rank", [1, 4, 5, 6])
def test_items_side_by_side_compiled_are_items_interpreted(rank: int) -> None:
    random = np.random.default_rng(rank)
    size, packed = rank + 1, (rank + 2) * (rank + 3) // 2
    rows = random.normal(size=(40, packed))
    rows[:, size * (size + 1) // 2 - 1] = 1.0  # met
    rows[::3] = 0.0
    weights = random.normal(size=packed)
    one = size * (size - 1) // 2
    weights[one : one + size] = weights[packed - 2] = 0.0
    numbers = random.integers(40, size=LANES + 5).astype(np.int32)
    scales, reach = Scales(0.5, 4.0, 2.0, 10.0, 500.0, 0.1, 0.3, 0.2, 0.0, 0.0, 0.0), Reach(1.0, 2.0)
    outcomes: list[tuple[int, bytes, Array]] = []
    for function in (looked_at, program(looked_at)):
        block, results = np.full((packed, LANES), np.nan), np.full((8, LANES), np.nan)
        user = random.normal(size=size) if not outcomes else outcomes[0][2]
        whitener = np.tril(np.outer(user, user))
        reaching = function(rows, numbers, block, user, whitener, weights, scales, reach, results, 2.0)
        outcomes.append((reaching, block.tobytes() + results[:7].tobytes(), user))
    assert outcomes[0][0] == outcomes[1][0]
    assert 0 < outcomes[0][0] < 2**LANES - 1
    assert outcomes[0][1] == outcomes[1][1]
