"""Constrained least squares against SciPy and against the conditions of optimality; anchors against planted ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from albatross.core.state import reserve
from albatross.kernels.fitting.hottopixx import solve_programme
from albatross.kernels.fitting.nonnegative import (
    fill_table,
    nonnegative_least_squares,
    simplex_least_squares,
    successive_projections,
    table,
)
from albatross.kernels.pairs import no_pairs, remember

Array = NDArray[np.float64]


def equations_of(vectors: Array, ratings: Array) -> Array:
    gram = vectors.T @ vectors
    return np.concatenate([gram[np.tril_indices(len(gram))], vectors.T @ ratings])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 6), n_ratings=st.integers(0, 12), ridge=st.sampled_from([0.1, 1.0]))
def test_nonnegative_least_squares_equals_that_of_scipy(seed: int, rank: int, n_ratings: int, ridge: float) -> None:
    random = np.random.default_rng(seed)
    problems = [(random.normal(size=(n_ratings, rank)), random.normal(size=n_ratings)) for _ in range(3)]
    equations = np.array([equations_of(*problem) for problem in problems])
    coordinates = random.random((rank, 5))
    untouched = coordinates[:, [0, 4]].copy()
    nonnegative_least_squares(equations, ridge, 0.0, 1000, coordinates, 1, np.full((equations.shape[1] + 1, 4), np.nan))
    for (vectors, ratings), solution in zip(problems, coordinates[:, 1:4].T, strict=True):
        ridged = np.concatenate([vectors, np.sqrt(ridge) * np.eye(rank)])
        expected, _ = nnls(ridged, np.append(ratings, np.zeros(rank)))
        np.testing.assert_allclose(solution, expected, atol=1e-7)
    assert np.array_equal(coordinates[:, [0, 4]], untouched), "solved rows that were not asked for"


def test_no_coordinate_falls_below_the_least() -> None:
    equations = np.array([equations_of(np.ones((1, 2)), np.array([-3.0]))])
    coordinates = np.ones((2, 1))
    nonnegative_least_squares(equations, 0.1, 0.25, 3, coordinates, 0, np.zeros((6, 1)))
    assert coordinates.tolist() == [[0.25], [0.25]]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 6), degenerate=st.booleans())
def test_simplex_least_squares_is_optimal(seed: int, rank: int, degenerate: bool) -> None:
    """No share could be moved to a better corner; where corners nearly coincide, not to one that is much better."""
    random = np.random.default_rng(seed)
    n_ratings = int(random.integers(1, rank + 1)) if degenerate else rank + 20
    vectors, ratings = random.normal(size=(n_ratings, rank)), 2.0 * random.normal(size=n_ratings)
    gram, solution = vectors.T @ vectors, np.full(rank, np.nan)
    simplex_least_squares(gram, vectors.T @ ratings, solution)
    assert (solution >= 0.0).all()
    assert solution.sum() == pytest.approx(1.0)
    slope = gram @ solution - vectors.T @ ratings
    assert slope @ solution <= slope.min() + (0.01 if degenerate else 1e-8)


def test_empty_cells_are_filled_with_the_mean_of_their_column() -> None:
    """Items 1 and 3 are the columns; nobody has rated the third one chosen, for which there is no column left."""
    pairs = reserve(no_pairs(3), 9)
    for user, item, rating in [(0, 1, 2.0), (0, 1, 4.0), (2, 1, 5.0), (1, 3, -1.0), (1, 0, 9.0)]:
        remember(pairs, user, item, rating)
    filled = table(n_users=3, n_columns=2, n_items=5, rank=1)
    fill_table(pairs, -1.0, np.array([False, True, False, True, True]), filled)
    assert filled.cells.tolist() == [[4.0, 0.0], [5.0, 0.0], [6.0, 0.0]]


def separable(seed: int, n_rows: int = 30, n_columns: int = 12, rank: int = 4) -> tuple[Array, set[int]]:
    """Rows that are mixtures of a few planted ones."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.ones(rank), n_rows)
    planted = random.choice(n_rows, rank, replace=False)
    shares[planted] = np.eye(rank)
    return shares @ random.random((rank, n_columns)), set(planted.tolist())


def projected(matrix: Array, n_anchors: int) -> list[int]:
    anchors = np.full(n_anchors, -1)
    successive_projections(matrix, np.full((n_anchors, matrix.shape[1]), np.nan), np.full(len(matrix), np.nan), anchors)
    return anchors.tolist()


@pytest.mark.parametrize("find", [projected, solve_programme], ids=["successive projections", "hottopixx"])
@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_planted_anchors_are_found(find: Any, noise: float, seed: int) -> None:
    matrix, planted = separable(seed)
    disturbed = matrix + noise * np.random.default_rng(seed).normal(size=matrix.shape)
    assert set(find(disturbed, len(planted))) == planted


def test_hottopixx_takes_the_first_of_rows_that_are_the_same() -> None:
    matrix, planted = separable(0)
    found = solve_programme(np.concatenate([matrix, matrix, matrix]), len(planted))
    assert set(found.tolist()) == planted


def test_hottopixx_does_not_depend_on_the_unit() -> None:
    matrix, planted = separable(1)
    for unit in (1e-6, 1e6):
        assert set(solve_programme(unit * matrix, len(planted)).tolist()) == planted


def test_more_anchors_than_rows_repeat_them() -> None:
    matrix = np.eye(2)
    assert set(solve_programme(matrix, 4).tolist()) == {0, 1}
    assert set(projected(matrix, 4)) == {0, 1}
