"""Regressions from packed sums equal those of NumPy."""

import numpy as np
import pytest

from albatross.kernels.fitting.ridge import add_term, pack_whitener, packed_width, solve_sums
from albatross.kernels.linear import packed_size

RIDGE = 0.3


@pytest.mark.parametrize("rank", [1, 4])
def test_coefficients_and_widths_are_those_of_a_ridge_regression(rank: int) -> None:
    random = np.random.default_rng(rank)
    vectors, rewards, direction = random.normal(size=(9, rank)), random.normal(size=9), random.normal(size=rank)
    gram, moment, solution, whitener = np.zeros(packed_size(rank)), np.zeros(rank), np.zeros(rank), np.zeros(packed_size(rank))
    for vector, reward in zip(vectors, rewards, strict=True):
        add_term(gram, moment, vector, reward)
    matrix, factor = np.zeros((2, rank, rank))
    solve_sums(gram, moment, RIDGE, matrix, factor, solution)
    whole = vectors.T @ vectors + RIDGE * np.eye(rank)
    np.testing.assert_allclose(solution, np.linalg.solve(whole, vectors.T @ rewards))
    pack_whitener(factor, matrix, whitener)
    assert packed_width(whitener, direction) == pytest.approx(np.sqrt(direction @ np.linalg.solve(whole, direction)))
