"""Optimistic scores of many items at once: mean + radius · width.

Work goes over blocks of items with one coordinate of many items contiguous in memory, so the compiler uses the
machine's vector units over items while each item's own sum keeps its order: the same bits on any vector width.
"""

import math

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items

BLOCK = 128
"""Items per block: at rank 8 the coordinates and sums of a block fill a quarter of a 32 KiB first-level cache."""


@kernel
def optimistic_scores(
    item_factors: Matrix, candidates: Items, center: Vector, whitener: Matrix, radius: float, block: Matrix, scores: Vector, means: Vector
) -> None:
    """Score the candidates, or all items: mean = ⟨center, item⟩, score = mean + radius · |whitener · item|.

    `item_factors` has shape (n_items, rank) in Fortran order; `block` is scratch of shape (rank + 2, BLOCK).
    """
    coordinates = item_factors.T
    rank = center.size
    n_candidates = candidates.size if candidates.size > 0 else coordinates.shape[1]
    for start in range(0, n_candidates, BLOCK):
        length = min(BLOCK, n_candidates - start)
        source, origin = coordinates, start
        if candidates.size > 0:
            _gather(coordinates, candidates[start : start + length], block)
            source, origin = block, 0
        _score_block(source, origin, length, start, center, whitener, radius, block[rank], block[rank + 1], scores, means)


@kernel
def plain_scores(item_factors: Matrix, candidates: Items, center: Vector, block: Matrix, scores: Vector) -> None:
    """Score the candidates, or all items: ⟨center, item⟩."""
    coordinates = item_factors.T
    n_candidates = candidates.size if candidates.size > 0 else coordinates.shape[1]
    for start in range(0, n_candidates, BLOCK):
        length = min(BLOCK, n_candidates - start)
        source, origin = coordinates, start
        if candidates.size > 0:
            _gather(coordinates, candidates[start : start + length], block)
            source, origin = block, 0
        _project(source, origin, center, center.size, scores[start : start + length])


@kernel
def _gather(coordinates: Matrix, chosen: Items, block: Matrix) -> None:
    """Copy the coordinates of the chosen items side by side."""
    for a in range(coordinates.shape[0]):
        row = coordinates[a]
        gathered = block[a]
        for offset in range(chosen.size):
            gathered[offset] = row[np.uint32(chosen[offset])]  # unsigned: no test for an index from the end


@kernel
def _score_block(
    coordinates: Matrix, start: int, length: int, target: int, center: Vector, whitener: Matrix, radius: float,
    projection: Vector, squares: Vector, scores: Vector, means: Vector,
) -> None:  # fmt: skip
    mean = means[target : target + length]
    score = scores[target : target + length]
    square = squares[:length]
    projected = projection[:length]
    _project(coordinates, start, center, center.size, mean)
    for offset in range(length):
        square[offset] = 0.0
    for a in range(center.size):
        _project(coordinates, start, whitener[a], a + 1, projected)
        for offset in range(length):
            square[offset] += projected[offset] * projected[offset]
    for offset in range(length):
        score[offset] = mean[offset] + radius * math.sqrt(square[offset])


@kernel
def _project(coordinates: Matrix, start: int, weights: Vector, rank: int, result: Vector) -> None:
    """Result = Σ weights[a] · coordinates[a], in the order of a; up to four terms at a time, so that sums stay in registers."""
    length = result.size
    first = coordinates[0, start : start + length]
    weight = weights[0]
    if rank % 2 == 1:
        for offset in range(length):
            result[offset] = weight * first[offset]
        a = 1
    else:
        second = coordinates[1, start : start + length]
        weight_2 = weights[1]
        for offset in range(length):
            result[offset] = weight * first[offset] + weight_2 * second[offset]
        a = 2
    while a < rank:
        first = coordinates[a, start : start + length]
        second = coordinates[a + 1, start : start + length]
        weight, weight_2 = weights[a], weights[a + 1]
        if a + 3 < rank:
            third = coordinates[a + 2, start : start + length]
            fourth = coordinates[a + 3, start : start + length]
            weight_3, weight_4 = weights[a + 2], weights[a + 3]
            for offset in range(length):
                pair = (result[offset] + weight * first[offset]) + weight_2 * second[offset]
                result[offset] = (pair + weight_3 * third[offset]) + weight_4 * fourth[offset]
            a += 4
        else:
            for offset in range(length):
                result[offset] = (result[offset] + weight * first[offset]) + weight_2 * second[offset]
            a += 2


@kernel
def best_position(scores: Vector, length: int) -> int:
    """The position of the largest of the first scores; of equals, the first."""
    best = 0
    for position in range(1, length):
        if scores[position] > scores[best]:
            best = position
    return best


def scoring_block(rank: int) -> Matrix:
    return np.zeros((rank + 2, BLOCK))
