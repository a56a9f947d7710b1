"""Linear algebra for small symmetric matrices, in a fixed order of operations and without allocation.

Only the lower triangle of a symmetric matrix is read or written. A *packed* matrix is its lower triangle, row by row,
in one flat array: adding multiples of packed matrices is one loop.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

RESOLUTION = 2.0**-40
"""A pivot smaller than this fraction of its diagonal element is mostly rounding error. Dividing by it would give a large random vector.
When users are fitted to items and items to users, each would make the other larger until both overflow."""


LINE = 64
"""Bytes that travel together between memory and processor, and in the widest vector register."""


def aligned_zeros(shape: tuple[int, ...], order: Literal["C", "F"] = "C") -> NDArray[np.float64]:
    """Zeros that begin where a line of memory begins, so that what is read at once comes from one line, not from two."""
    size = 8 * math.prod(shape)
    room = np.zeros(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(np.float64).reshape(shape, order=order)


def packed_size(rank: int) -> int:
    return rank * (rank + 1) // 2


@kernel
def add_outer(matrix: Matrix, vector: Vector, weight: float) -> None:
    """Matrix += weight · vector vectorᵀ"""
    for a in range(vector.size):
        scaled = weight * vector[a]
        for b in range(a + 1):
            matrix[a, b] += scaled * vector[b]


@kernel
def unpack(packed: Vector, ridge: float, matrix: Matrix) -> None:
    """Matrix = packed + ridge · I"""
    position = 0
    for a in range(matrix.shape[0]):
        for b in range(a + 1):
            matrix[a, b] = packed[position]
            position += 1
        matrix[a, a] += ridge


@kernel
def factorize(matrix: Matrix, factor: Matrix, least_pivot: float) -> bool:
    """Cholesky: factor · factorᵀ = matrix. A pivot below `least_pivot`, or lost in rounding, is raised. Returns False if that happened."""
    sound = True
    for a in range(matrix.shape[0]):
        for b in range(a):
            value = matrix[a, b]
            for c in range(b):
                value -= factor[a, c] * factor[b, c]
            factor[a, b] = value / factor[b, b]
        pivot = matrix[a, a]
        for c in range(a):
            pivot -= factor[a, c] * factor[a, c]
        least = RESOLUTION * abs(matrix[a, a])
        if not least > least_pivot:
            least = least_pivot
        if not pivot >= least:
            pivot = least
            sound = False
        factor[a, a] = math.sqrt(pivot)
    return sound


@kernel
def solve_lower(factor: Matrix, right: Vector, solution: Vector) -> None:
    """Factor · solution = right; `solution` may be `right`."""
    for a in range(right.size):
        value = right[a]
        for b in range(a):
            value -= factor[a, b] * solution[b]
        solution[a] = value / factor[a, a]


@kernel
def solve_upper(factor: Matrix, right: Vector, solution: Vector) -> None:
    """factorᵀ · solution = right; `solution` may be `right`."""
    for a in range(right.size - 1, -1, -1):
        value = right[a]
        for b in range(a + 1, right.size):
            value -= factor[b, a] * solution[b]
        solution[a] = value / factor[a, a]


@kernel
def invert_lower(factor: Matrix, inverse: Matrix) -> None:
    """Inverse = factor⁻¹, lower triangle."""
    for a in range(factor.shape[0]):
        reciprocal = 1.0 / factor[a, a]
        for b in range(a):
            value = 0.0
            for c in range(b, a):
                value += factor[a, c] * inverse[c, b]
            inverse[a, b] = -value * reciprocal
        inverse[a, a] = reciprocal


@kernel
def gram_of_columns(lower: Matrix, scale: float, product: Matrix) -> None:
    """Product = scale · lowerᵀ · lower: the inverse of a matrix from the inverse of its factor."""
    for a in range(lower.shape[0]):
        for b in range(a + 1):
            total = 0.0
            for c in range(a, lower.shape[0]):
                total += lower[c, a] * lower[c, b]
            product[a, b] = scale * total
            product[b, a] = scale * total


@kernel
def log_determinant(factor: Matrix) -> float:
    """Log det (factor · factorᵀ)"""
    total = 0.0
    for a in range(factor.shape[0]):
        total += math.log(factor[a, a])
    return 2.0 * total


@kernel
def norm(vector: Vector) -> float:
    total = 0.0
    for a in range(vector.size):
        total += vector[a] * vector[a]
    return math.sqrt(total)


@kernel
def dot(left: Vector, right: Vector) -> float:
    total = 0.0
    for a in range(left.size):
        total += left[a] * right[a]
    return total


EQUAL = 2.0**-52
"""Off-diagonal values smaller than this share of the diagonal count as zero."""
SWEEPS = 32
"""Maximum number of rounds over all pairs of coordinates: a few are enough, and NaN must not loop for ever."""


@kernel
def diagonalize(matrix: Matrix, values: Vector, vectors: Matrix) -> None:
    """Eigenvalues of a symmetric matrix, the largest first, and their unit eigenvectors as rows, by Jacobi's rotations.

    Reads the upper triangle of the matrix, and destroys it.
    """
    size = matrix.shape[0]
    for a in range(size):
        for b in range(size):
            vectors[a, b] = 1.0 if a == b else 0.0
    for _ in range(SWEEPS):
        turned = False
        for a in range(size):
            for b in range(a + 1, size):
                beside = matrix[a, b]
                if beside * beside > EQUAL * EQUAL * abs(matrix[a, a] * matrix[b, b]):
                    turned = True
                    half = 0.5 * (matrix[b, b] - matrix[a, a]) / beside
                    tangent = 1.0 / (abs(half) + math.sqrt(half * half + 1.0))
                    if half < 0.0:
                        tangent = -tangent
                    _rotate(matrix, vectors, a, b, tangent)
        if not turned:
            break
    for a in range(size):
        values[a] = matrix[a, a]
    for a in range(size):
        largest = a
        for b in range(a + 1, size):
            if values[b] > values[largest]:
                largest = b
        if largest != a:
            values[a], values[largest] = values[largest], values[a]
            for b in range(size):
                vectors[a, b], vectors[largest, b] = vectors[largest, b], vectors[a, b]


@kernel
def _rotate(matrix: Matrix, vectors: Matrix, a: int, b: int, tangent: float) -> None:
    """Rotate coordinates a and b so that their off-diagonal value becomes zero."""
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    beside = matrix[a, b]
    matrix[a, a] -= tangent * beside
    matrix[b, b] += tangent * beside
    matrix[a, b] = 0.0
    for c in range(matrix.shape[0]):
        one, other = vectors[a, c], vectors[b, c]
        vectors[a, c] = cosine * one - sine * other
        vectors[b, c] = sine * one + cosine * other
        if c < a:
            _turn(matrix, c, a, c, b, cosine, sine)
        elif a < c < b:
            _turn(matrix, a, c, c, b, cosine, sine)
        elif c > b:
            _turn(matrix, a, c, b, c, cosine, sine)


@kernel
def _turn(matrix: Matrix, a: int, b: int, c: int, d: int, cosine: float, sine: float) -> None:
    one, other = matrix[a, b], matrix[c, d]
    matrix[a, b] = cosine * one - sine * other
    matrix[c, d] = sine * one + cosine * other


@kernel
def inner(left: Vector, right: Vector) -> float:
    """The same in four sums, each of every fourth product: an addition need not wait for the one before."""
    first = second = third = fourth = 0.0
    whole = left.size - left.size % 4
    for a in range(0, whole, 4):
        first += left[a] * right[a]
        second += left[a + 1] * right[a + 1]
        third += left[a + 2] * right[a + 2]
        fourth += left[a + 3] * right[a + 3]
    for a in range(whole, left.size):
        first += left[a] * right[a]
    return (first + second) + (third + fourth)
