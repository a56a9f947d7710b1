"""Small symmetric matrices: against NumPy, and interpreted against compiled."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from albatross.kernels import linear
from albatross.kernels.compiling import program
from albatross.kernels.linear import (
    add_outer,
    diagonalize,
    dot,
    factorize,
    invert_lower,
    log_determinant,
    norm,
    packed_size,
    solve_lower,
    solve_upper,
    unpack,
)

Array = NDArray[np.float64]
RANKS = st.integers(1, 9)
SEEDS = st.integers(0, 10_000)
property_test = settings(deadline=None, derandomize=True, max_examples=60)


def unknown(rank: int) -> Array:
    """What nobody may read."""
    return np.full((rank, rank), np.nan)


def positive_definite(random: np.random.Generator, rank: int) -> Array:
    rows = random.standard_normal((int(random.integers(2 * rank)), rank)) * 10.0 ** random.uniform(-2, 2)
    return np.asarray(rows.T @ rows + 0.1 * np.eye(rank))


def lower_half(matrix: Array) -> Array:
    """The matrix with its upper triangle made unreadable: kernels read and write the lower one alone."""
    half = matrix.copy()
    half[np.triu_indices(len(matrix), 1)] = np.nan
    return half


@property_test
@given(RANKS, SEEDS)
def test_factorizing_and_solving(rank: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, right = positive_definite(random, rank), random.standard_normal(rank)
    factor, inverse, half_way, solution = unknown(rank), unknown(rank), np.full(rank, np.nan), right.copy()
    assert factorize(lower_half(matrix), factor, 0.01)
    accuracy = 1e-14 * np.linalg.cond(matrix)
    lower = np.tril(factor)
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), rtol=1e-9, atol=accuracy)
    np.testing.assert_allclose(lower @ lower.T, matrix, rtol=1e-12, atol=1e-13 * np.abs(matrix).max())

    solve_lower(factor, right, half_way)
    np.testing.assert_allclose(lower @ half_way, right, rtol=1e-9, atol=accuracy)
    solve_lower(factor, solution, solution)
    assert (solution == half_way).all(), "in place is the same"
    solve_upper(factor, solution, solution)
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(solution, expected, rtol=1e-9, atol=accuracy * np.abs(expected).max())

    invert_lower(factor, inverse)
    np.testing.assert_allclose(np.tril(inverse) @ lower, np.eye(rank), atol=accuracy)
    assert np.isnan(inverse[np.triu_indices(rank, 1)]).all()
    assert log_determinant(factor) == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-9, abs=accuracy)


SPOILED = {"negative": np.diag([1.0, -4.0, 2.0]), "not a number": np.diag([1.0, np.nan, 2.0]), "singular": np.ones((3, 3))}


@pytest.mark.parametrize("spoiled", SPOILED.values(), ids=SPOILED)
def test_a_pivot_too_small_is_raised_and_reported(spoiled: Array) -> None:
    factor = unknown(3)
    assert not factorize(spoiled, factor, 0.25)
    assert factor[1, 1] == 0.5
    assert np.isfinite(np.diag(factor)).all()


def test_a_pivot_lost_in_rounding_is_raised_and_reported() -> None:
    """A matrix of rank one, ridge and all below what a double can tell: the solution stays as small as it can be."""
    vector = np.array([1e9, 3e8, -7e8])
    matrix, factor, solution = np.outer(vector, vector) + 0.25 * np.eye(3), unknown(3), 1e9 * vector
    assert not factorize(matrix, factor, 0.125)
    assert (np.diag(factor) >= 1e-7 * np.abs(vector)).all()
    solve_lower(factor, solution, solution)
    solve_upper(factor, solution, solution)
    assert np.abs(solution).max() < 10.0
    assert solution @ vector == pytest.approx(1e9)


@property_test
@given(RANKS, SEEDS)
def test_adding_and_unpacking(rank: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, vector = positive_definite(random, rank), random.standard_normal(rank)
    added = lower_half(matrix)
    add_outer(added, vector, 2.5)
    np.testing.assert_allclose(np.tril(added), np.tril(matrix + 2.5 * np.outer(vector, vector)), rtol=1e-12, atol=1e-13)
    packed, unpacked = matrix[np.tril_indices(rank)], unknown(rank)
    assert packed.size == packed_size(rank)
    unpack(packed, 3.0, unpacked)
    np.testing.assert_array_equal(np.tril(unpacked), np.tril(matrix + 3.0 * np.eye(rank)))
    assert np.isnan(unpacked[np.triu_indices(rank, 1)]).all()


@property_test
@given(RANKS, SEEDS)
def test_products(rank: int, seed: int) -> None:
    left, right = np.random.default_rng(seed).standard_normal((2, rank))
    assert norm(left) == pytest.approx(np.linalg.norm(left), rel=1e-14)
    assert dot(left, right) == pytest.approx(left @ right, rel=1e-12, abs=1e-14)


def everything(matrix: Array, vector: Array, factor: Array, inverse: Array, solution: Array) -> tuple[float, float, float, bool]:
    """All of the module at once, so that one compilation compares it."""
    linear.add_outer(matrix, vector, 0.7)
    sound = linear.factorize(matrix, factor, 1e-3)
    linear.invert_lower(factor, inverse)
    linear.solve_lower(factor, vector, solution)
    linear.solve_upper(factor, solution, solution)
    return linear.log_determinant(factor), linear.norm(solution), linear.dot(vector, solution), sound


def test_interpreted_and_compiled_agree_bit_for_bit() -> None:
    random = np.random.default_rng(0)
    for rank in range(1, 10):
        for _ in range(20):
            inputs = (positive_definite(random, rank), random.standard_normal(rank))
            results: list[list[Any]] = []
            for function in (everything, program(everything)):
                arrays = [each.copy() for each in inputs] + [np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros(rank)]
                numbers = function(*arrays)
                results.append([np.array(numbers).tobytes(), *(array.tobytes() for array in arrays)])
            assert results[0] == results[1]


@property_test
@given(RANKS, SEEDS)
def test_axes_are_those_of_the_matrix(rank: int, seed: int) -> None:
    matrix = positive_definite(np.random.default_rng(seed), rank)
    for run in (diagonalize, program(diagonalize)):
        values, vectors = np.full(rank, np.nan), unknown(rank)
        upper = lower_half(matrix).T.copy()
        run(upper, values, vectors)
        assert np.all(np.diff(values) <= 0.0)
        assert np.allclose(values, np.linalg.eigvalsh(matrix)[::-1])
        assert np.allclose(vectors @ vectors.T, np.eye(rank))
        assert np.allclose(vectors.T @ np.diag(values) @ vectors, matrix)


def test_what_is_not_a_number_has_an_end() -> None:
    diagonalize(unknown(3), np.zeros(3), unknown(3))
