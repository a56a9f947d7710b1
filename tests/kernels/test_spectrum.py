"""Eigenvalues and eigenvectors without LAPACK are those that LAPACK finds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross.kernels.fitting.spectrum import spectrum

Array = NDArray[np.float64]


def random_matrix(size: int) -> Array:
    matrix = np.random.default_rng(size).normal(size=(size, size))
    return matrix + matrix.T


def laplacian(size: int) -> Array:
    """Of a graph in several parts: its smallest eigenvalue comes more than once."""
    weights = np.triu((np.random.default_rng(size).random((size, size)) < 0.1).astype(float), 1)
    weights += weights.T
    graph: Array = np.diag(weights.sum(axis=1)) - weights
    return graph


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("make", [random_matrix, laplacian, np.zeros, np.eye], ids=["random", "graph", "zero", "one"])
def test_a_matrix_is_what_its_spectrum_makes(make: object, size: int) -> None:
    matrix = np.zeros((size, size)) if make is np.zeros else make(size)  # type: ignore[operator]
    before = matrix.copy()
    values, vectors = spectrum(matrix, size)
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-12)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(size), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ np.diag(values) @ vectors, matrix, atol=1e-12)


def test_only_the_vectors_that_are_asked_for() -> None:
    matrix = random_matrix(9)
    values, few = spectrum(matrix, 3)
    np.testing.assert_array_equal(few, spectrum(matrix, 9)[1][:3])
    assert values.size == 9
    assert spectrum(matrix, 20)[1].shape == (9, 9)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_is_no_number_ends(broken: float) -> None:
    matrix = random_matrix(6)
    matrix[2, 3] = matrix[3, 2] = broken
    with np.errstate(all="ignore"):
        assert not np.isfinite(spectrum(matrix, 6)[0]).all()
