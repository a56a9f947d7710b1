"""Eigenvalues and eigenvectors of large symmetric matrices, with the same bits on every machine.

LAPACK chooses its order of summation by processor. This is the textbook method in one order: reflections make the matrix tridiagonal,
rotations make that diagonal (QL with implicit shifts). `linear.diagonalize` is simpler, and too slow for a thousand rows.
"""

import math

import numpy as np

from albatross.kernels.compiling import kernel, program
from albatross.kernels.linear import Matrix, Vector

EQUAL = 2.0**-52
"""Values beside the diagonal smaller than this share of it count as zero."""
SHIFTS = 64
"""Maximum number of rounds per eigenvalue: two are usual, and NaN must not loop for ever."""


def spectrum(matrix: Matrix, n_vectors: int) -> tuple[Vector, Matrix]:
    """All eigenvalues of a symmetric matrix, the smallest first, and the first so many unit eigenvectors as rows.

    >>> values, vectors = spectrum(np.array([[2.0, 1.0], [1.0, 2.0]]), 1)
    >>> values.round(9).tolist(), abs(vectors).round(3).tolist()
    ([1.0, 3.0], [[0.707, 0.707]])
    """
    size = len(matrix)
    reduced, reflections, vectors = np.array(matrix, np.float64, order="C"), np.zeros((size, size)), np.eye(size)
    values, beside, room = np.zeros(size), np.zeros(size), np.zeros(size)
    program(to_diagonal)(reduced, reflections, values, beside, room, vectors)
    order = np.argsort(values, kind="stable")
    kept = vectors[order[:n_vectors]]
    program(reflect_back)(reflections, kept)
    return values[order], kept


@kernel
def to_diagonal(matrix: Matrix, reflections: Matrix, values: Vector, beside: Vector, room: Vector, vectors: Matrix) -> None:
    """Eigenvalues in any order, and eigenvectors of the tridiagonal matrix as rows of what must be the identity."""
    tridiagonalize(matrix, reflections, values, beside, room)
    rotate(values, beside, vectors)


@kernel
def reflect_back(reflections: Matrix, vectors: Matrix) -> None:
    """From eigenvectors of the tridiagonal matrix to those of the matrix that was reflected."""
    for row in range(vectors.shape[0]):
        for column in range(vectors.shape[1] - 3, -1, -1):
            reflect(reflections[column], column + 1, vectors[row])


@kernel
def tridiagonalize(matrix: Matrix, reflections: Matrix, diagonal: Vector, beside: Vector, room: Vector) -> None:
    """H … A … H: each reflection clears a column below what is beside the diagonal. `beside[a]` is between rows a and a + 1."""
    size = diagonal.size
    for column in range(size - 1):
        vector, length = reflections[column], 0.0
        for row in range(column + 1, size):
            vector[row] = matrix[row, column]
            length += vector[row] * vector[row]
        beside[column] = vector[column + 1]
        if column == size - 2 or length == beside[column] * beside[column]:
            for row in range(column + 1, size):
                vector[row] = 0.0  # there is nothing to clear
        else:
            beside[column] = -math.copysign(math.sqrt(length), vector[column + 1])
            vector[column + 1] -= beside[column]
            scale = 1.0 / math.sqrt(length - beside[column] * matrix[column + 1, column])
            for row in range(column + 1, size):
                vector[row] *= scale  # of length √2, so that H = 1 − v vᵀ
            apply_on_both_sides(matrix, vector, column + 1, room)
    for row in range(size):
        diagonal[row] = matrix[row, row]


@kernel
def apply_on_both_sides(matrix: Matrix, vector: Vector, first: int, room: Vector) -> None:
    """H A H = A − v wᵀ − w vᵀ, w = A v − ½ (vᵀ A v) v, on the rows and columns from `first` on."""
    size, inner = vector.size, 0.0
    for column in range(first, size):
        room[column] = 0.0
    for row in range(first, size):
        for column in range(first, size):  # A v by rows, which are contiguous: A is symmetric
            room[column] += vector[row] * matrix[row, column]
    for row in range(first, size):
        inner += vector[row] * room[row]
    for row in range(first, size):
        room[row] -= 0.5 * inner * vector[row]
    for row in range(first, size):
        for column in range(first, size):
            matrix[row, column] -= vector[row] * room[column] + room[row] * vector[column]


@kernel
def reflect(reflection: Vector, first: int, vector: Vector) -> None:
    inner = 0.0
    for place in range(first, vector.size):
        inner += reflection[place] * vector[place]
    for place in range(first, vector.size):
        vector[place] -= inner * reflection[place]


@kernel
def rotate(values: Vector, beside: Vector, vectors: Matrix) -> None:
    """Make a tridiagonal matrix diagonal, value by value; the rows of `vectors` turn with it."""
    for first in range(values.size):
        for _ in range(SHIFTS):
            last = first
            while last < values.size - 1 and not abs(beside[last]) <= EQUAL * (abs(values[last]) + abs(values[last + 1])):
                last += 1
            if last == first:
                break
            rotate_block(values, beside, first, last, vectors)


@kernel
def rotate_block(values: Vector, beside: Vector, first: int, last: int, vectors: Matrix) -> None:
    """One round with a shift near the eigenvalue of the first two rows."""
    half = (values[first + 1] - values[first]) / (2.0 * beside[first])
    shifted = values[last] - values[first] + beside[first] / (half + math.copysign(math.sqrt(half * half + 1.0), half))
    sine, cosine, shift = 1.0, 1.0, 0.0
    for row in range(last - 1, first - 1, -1):
        outside, inside = sine * beside[row], cosine * beside[row]
        length = math.sqrt(outside * outside + shifted * shifted)
        beside[row + 1] = length
        if length == 0.0:  # the block has come apart here
            values[row + 1] -= shift
            beside[last] = 0.0
            return
        sine, cosine = outside / length, shifted / length
        rest = values[row + 1] - shift
        length = (values[row] - rest) * sine + 2.0 * cosine * inside
        shift = sine * length
        values[row + 1] = rest + shift
        shifted = cosine * length - inside
        for place in range(vectors.shape[1]):
            lower, upper = vectors[row, place], vectors[row + 1, place]
            vectors[row + 1, place] = sine * lower + cosine * upper
            vectors[row, place] = cosine * lower - sine * upper
    values[first] -= shift
    beside[first] = shifted
    beside[last] = 0.0
