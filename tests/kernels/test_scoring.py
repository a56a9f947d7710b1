"""Scores of many items: against NumPy, at the borders of blocks, and interpreted against compiled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross.kernels.compiling import program
from albatross.kernels.operations import ALL_ITEMS, Items
from albatross.kernels.search.scoring import BLOCK, best_position, optimistic_scores, scoring_block

Array = NDArray[np.float64]
SIZES = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 300]
RADIUS = 0.7


class Case(NamedTuple):
    item_factors: Array
    center: Array
    whitener: Array


def case(n_items: int, rank: int) -> Case:
    random = np.random.default_rng([n_items, rank])
    whitener = np.tril(random.standard_normal((rank, rank)))
    whitener[np.triu_indices(rank, 1)] = np.nan  # only the lower triangle may be read
    return Case(np.asfortranarray(random.standard_normal((n_items, rank))), random.standard_normal(rank), whitener)


def scored(given: Case, candidates: Items, compiled: bool = True) -> tuple[Array, Array]:
    n_candidates = candidates.size or len(given.item_factors)
    scores, means = np.full(n_candidates, np.nan), np.full(n_candidates, np.nan)
    block = scoring_block(given.center.size)
    block[:] = np.nan  # what a former call left there must not matter
    function = program(optimistic_scores) if compiled else optimistic_scores
    function(given.item_factors, candidates, given.center, given.whitener, RADIUS, block, scores, means)
    return scores, means


@pytest.mark.parametrize("rank", range(2, 10))
@pytest.mark.parametrize("n_items", SIZES[1:])
def test_against_numpy(n_items: int, rank: int) -> None:
    given = case(n_items, rank)
    scores, means = scored(given, ALL_ITEMS)
    expected_means = given.item_factors @ given.center
    expected_widths = np.linalg.norm(given.item_factors @ np.tril(given.whitener).T, axis=1)
    np.testing.assert_allclose(means, expected_means, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(scores, expected_means + RADIUS * expected_widths, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "candidates",
    [range(300), range(7, 250), [*range(40), *range(41, 100), *range(103, 300)], range(299, -1, -1), [*range(20, 36), *range(16)]],
    ids=["all", "part", "gaps", "backwards", "turned"],
)
def test_candidates_side_by_side_score_as_any_others(candidates: Sequence[int]) -> None:
    given, chosen = case(300, 5), np.array(candidates, np.int32)
    for found, expected in zip(scored(given, chosen), scored(given, ALL_ITEMS), strict=True):
        assert found.tobytes() == expected[chosen].tobytes()


@pytest.mark.parametrize("n_candidates", SIZES)
def test_an_item_scores_the_same_wherever_it_stands(n_candidates: int) -> None:
    given = case(300, 5)
    all_scores, all_means = scored(given, ALL_ITEMS)
    candidates = np.random.default_rng(n_candidates).permutation(300)[:n_candidates].astype(np.int32)
    scores, means = scored(given, candidates)
    assert scores.tobytes() == all_scores[candidates].tobytes()
    assert means.tobytes() == all_means[candidates].tobytes()


@pytest.mark.parametrize("n_items", SIZES[1:])
@pytest.mark.parametrize("restricted", [False, True], ids=["all items", "restricted"])
def test_interpreted_and_compiled_agree_bit_for_bit(n_items: int, restricted: bool) -> None:
    for rank in (2, 3, 4, 5, 8, 9):
        given = case(n_items, rank)
        candidates = np.arange(n_items - 1, -1, -1, dtype=np.int32) if restricted else ALL_ITEMS
        compiled, interpreted = (scored(given, candidates, each) for each in (True, False))
        assert [part.tobytes() for part in compiled] == [part.tobytes() for part in interpreted]


def test_rank_one_and_a_single_item() -> None:
    """Interpreted: here an array is in C and in Fortran order at once, another type to the compiler."""
    for given in (case(BLOCK + 1, 1), case(1, 4)):
        expected = given.item_factors @ given.center
        widths = np.linalg.norm(given.item_factors @ np.tril(given.whitener).T, axis=1)
        scores, means = scored(given, ALL_ITEMS, compiled=False)
        np.testing.assert_allclose(means, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(scores, expected + RADIUS * widths, rtol=1e-12, atol=1e-13)


def test_nothing_beyond_the_candidates_is_written() -> None:
    given = case(300, 3)
    scores, means = np.full(300, -1.0), np.full(300, -1.0)
    candidates = np.arange(130, dtype=np.int32)
    optimistic_scores(given.item_factors, candidates, given.center, given.whitener, RADIUS, scoring_block(3), scores, means)
    assert (scores[130:] == -1).all()
    assert (means[130:] == -1).all()


def test_the_best_position() -> None:
    assert best_position(np.array([1.0, 3.0, 2.0]), 3) == 1
    assert best_position(np.array([2.0, 2.0, 2.0]), 3) == 0, "of equals, the first"
    assert best_position(np.array([1.0, 3.0, 2.0, 3.0]), 4) == 1, "the same where they are better than what was best before"
    assert best_position(np.array([1.0, 2.0, 9.0]), 2) == 1, "only so many are looked at"
    assert best_position(np.array([-np.inf, -5.0]), 2) == 1
