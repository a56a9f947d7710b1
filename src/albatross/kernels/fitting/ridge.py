"""Ridge regressions stored as packed sums: adding a rating, the coefficients, and the width of a prediction.

With the sums gram = Σ x xᵀ and moment = Σ y x, the coefficients are (ridge · I + gram)⁻¹ moment. The width of a prediction for z is
|W z|, W the *whitener*: the inverse of the Cholesky factor of ridge · I + gram.
"""

import math

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector, factorize, invert_lower, solve_lower, solve_upper, unpack


@kernel
def add_term(gram: Vector, moment: Vector, vector: Vector, reward: float) -> None:
    """Gram += x xᵀ, packed; moment += y x"""
    position = 0
    for a in range(vector.size):
        for b in range(a + 1):
            gram[position] += vector[a] * vector[b]
            position += 1
        moment[a] += reward * vector[a]


@kernel
def factorize_sums(gram: Vector, ridge: float, matrix: Matrix, factor: Matrix) -> None:
    """Factor = the Cholesky factor of ridge · I + gram; `matrix` is working space."""
    unpack(gram, ridge, matrix)
    factorize(matrix, factor, ridge)


@kernel
def solve_sums(gram: Vector, moment: Vector, ridge: float, matrix: Matrix, factor: Matrix, solution: Vector) -> None:
    """Solution = (ridge · I + gram)⁻¹ moment; leaves the Cholesky factor in `factor`. `matrix` is working space."""
    factorize_sums(gram, ridge, matrix, factor)
    solve_lower(factor, moment, solution)
    solve_upper(factor, solution, solution)


@kernel
def pack_whitener(factor: Matrix, inverse: Matrix, whitener: Vector) -> None:
    """Whitener = the inverse of the factor, packed; `inverse` is working space."""
    invert_lower(factor, inverse)
    position = 0
    for a in range(factor.shape[0]):
        for b in range(a + 1):
            whitener[position] = inverse[a, b]
            position += 1


@kernel
def packed_width(whitener: Vector, vector: Vector) -> float:
    """|W vector|"""
    square, entry = 0.0, 0
    for a in range(vector.size):
        projection = 0.0
        for b in range(a + 1):
            projection += whitener[entry] * vector[b]
            entry += 1
        square += projection * projection
    return math.sqrt(square)
