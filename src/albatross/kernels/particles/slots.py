"""Rows that many particles share: the slots of users and items, read and written for all particles at once."""

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix
from albatross.kernels.sampling import Indices

Slots = NDArray[np.uint16]
"""By particle and user or item: the slot of the particle's row."""

MOST_PARTICLES = 2**16 - 1
"""A slot number takes two bytes: then the tables of 30 particles of a small catalogue fit in a second-level cache."""


@kernel
def gather(factors: NDArray[np.float64], slots: Slots, rows: Indices, index: int, vectors: Matrix) -> None:
    """Read the vectors of one user or item, for each particle its own, into `vectors` of shape (rank, n_particles)."""
    for d in range(vectors.shape[1]):
        slot = slots[rows[d], index]
        for a in range(vectors.shape[0]):
            vectors[a, d] = factors[index, slot, a]


@kernel
def scatter(vectors: Matrix, factors: NDArray[np.float64], slots: Slots, rows: Indices, index: int) -> None:
    """Write new vectors of one user or item, each particle's in the slot of its own number."""
    for d in range(vectors.shape[1]):
        slots[rows[d], index] = d
        for a in range(vectors.shape[0]):
            factors[index, d, a] = vectors[a, d]
