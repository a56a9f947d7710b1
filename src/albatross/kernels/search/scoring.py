"""Scores of many items at once: the mean, or optimistic: mean + radius · width.

Items are processed side by side by the machine's vector units, with one coordinate of many items contiguous in memory.
"""

import math

import numpy as np
from numba.extending import overload

from albatross.kernels.compiling import OPTIONS, kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items
from albatross.kernels.search.lanes import LANES, emit_columns, emit_measures, emit_projection, emit_scores

BLOCK = 128
"""Scores that are checked together in the search for the largest."""


@kernel
def optimistic_scores(
    item_factors: Matrix, candidates: Items, center: Vector, whitener: Matrix, radius: float, block: Matrix, scores: Vector, means: Vector
) -> None:
    """Score the candidates, or all items: mean = ⟨center, item⟩, score = mean + radius · |whitener · item|.

    `item_factors` has shape (n_items, rank) in Fortran order; `whitener` is lower triangular; `block` comes from `scoring_block`.
    """
    coordinates = item_factors.T
    rank = center.size
    n_candidates = candidates.size if candidates.size > 0 else coordinates.shape[1]
    if n_candidates < LANES:
        _gather_few(coordinates, candidates, n_candidates, block)
        score_lanes(block, 0, center, whitener, radius, block[rank], block[rank + 1], 0)
        for lane in range(n_candidates):
            scores[lane] = block[rank, lane]
            means[lane] = block[rank + 1, lane]
        return
    for start in range(0, n_candidates, LANES):
        group = min(start, n_candidates - LANES)  # the last group may begin earlier and score some items again
        first = group if candidates.size == 0 else neighbours(candidates, group)
        if first >= 0:
            score_lanes(coordinates, first, center, whitener, radius, scores, means, group)
        else:
            _gather(coordinates, candidates[group : group + LANES], block)
            score_lanes(block, 0, center, whitener, radius, scores, means, group)


@kernel
def plain_scores(item_factors: Matrix, candidates: Items, center: Vector, block: Matrix, scores: Vector) -> None:
    """Score the candidates, or all items: ⟨center, item⟩."""
    coordinates = item_factors.T
    rank = center.size
    n_candidates = candidates.size if candidates.size > 0 else coordinates.shape[1]
    if n_candidates < LANES:
        _gather_few(coordinates, candidates, n_candidates, block)
        project_lanes(block, 0, center, block[rank], 0)
        for lane in range(n_candidates):
            scores[lane] = block[rank, lane]
        return
    for start in range(0, n_candidates, LANES):
        group = min(start, n_candidates - LANES)
        first = group if candidates.size == 0 else neighbours(candidates, group)
        if first >= 0:
            project_lanes(coordinates, first, center, scores, group)
        else:
            _gather(coordinates, candidates[group : group + LANES], block)
            project_lanes(block, 0, center, scores, group)


@kernel
def neighbours(candidates: Items, start: int) -> int:
    """The candidate at `start`, if it and the following ones, LANES in all, are contiguous in the catalogue; else −1.

    Then nothing has to be gathered.
    """
    first = np.int64(candidates[start])
    apart = np.int64(0)
    for lane in range(LANES):
        apart |= candidates[start + lane] - first - lane
    return first if apart == 0 else -1  # type: ignore[return-value]


@kernel
def _gather(coordinates: Matrix, candidates: Items, block: Matrix) -> None:
    """Copy the coordinates of LANES candidates side by side, one coordinate after the other."""
    for a in range(coordinates.shape[0]):
        row, target = coordinates[a], block[a]
        for lane in range(LANES):
            target[lane] = row[np.uint32(candidates[lane])]  # unsigned: no check for negative indices


@kernel
def _gather_few(coordinates: Matrix, candidates: Items, n_candidates: int, block: Matrix) -> None:
    """The same for fewer candidates or items than there are lanes; the other lanes are zero."""
    for a in range(coordinates.shape[0]):
        for lane in range(n_candidates):
            block[a, lane] = coordinates[a, candidates[lane] if candidates.size > 0 else lane]
        for lane in range(n_candidates, LANES):
            block[a, lane] = 0.0


def project_lanes(coordinates: Matrix, start: int, weights: Vector, result: Vector, target: int) -> None:
    """Result = Σ weights[a] · coordinates[a], in the order of a, for the LANES items from `start` on."""
    for lane in range(LANES):
        total = 0.0
        for a in range(weights.size):
            total += weights[a] * coordinates[a, start + lane]
        result[target + lane] = total


def score_lanes(
    coordinates: Matrix, start: int, center: Vector, whitener: Matrix, radius: float, scores: Vector, means: Vector, target: int
) -> None:
    """Mean and optimistic score of the LANES items from `start` on. Only the lower triangle of the whitener is used."""
    for lane in range(LANES):
        square = 0.0
        for a in range(center.size):
            projection = 0.0
            for b in range(a + 1):
                projection += whitener[a, b] * coordinates[b, start + lane]
            square += projection * projection
        mean = 0.0
        for a in range(center.size):
            mean += center[a] * coordinates[a, start + lane]
        means[target + lane] = mean
        scores[target + lane] = mean + radius * math.sqrt(square)


def measure_lanes(
    coordinates: Matrix,
    start: int,
    center: Vector,
    whitener: Matrix,
    weights: Vector,
    squares: Vector,
    means: Vector,
    seconds: Vector,
    target: int,
) -> None:
    """Of the LANES items from `start` on, given as packed moments of (f, 1, o), one coordinate after the other.

    With x = (f, 1) the means of the first: squares = |whitener · x|², or −1 where the one is zero; means = ⟨center, f⟩ + o, but for the
    last number of the center; seconds = Σ weights · coordinates, where no product with the one has a weight.
    """
    size, packed = center.size, weights.size
    one = size * (size - 1) // 2
    for lane in range(start, start + LANES):
        square = mean = second = 0.0
        for a in range(size):
            projection = 0.0
            for b in range(a + 1):
                projection += whitener[a, b] * coordinates[one + b, lane]
            square += projection * projection
        for a in range(size - 1):
            mean += center[a] * coordinates[one + a, lane]
        for a in range(packed):
            second += weights[a] * coordinates[a, lane]
        place = target + lane - start
        squares[place] = square if coordinates[one + size - 1, lane] > 0.0 else -1.0
        means[place] = mean + coordinates[packed - 2, lane]
        seconds[place] = second


def turn_lanes(rows: Matrix, numbers: Items, start: int, block: Matrix) -> None:
    """Copy the rows with these LANES numbers side by side: column after column, a lane per row."""
    for lane in range(LANES):
        for column in range(rows.shape[1]):
            block[column, lane] = rows[numbers[start + lane], column]


@overload(project_lanes, jit_options=OPTIONS, strict=False)
def _compiled_project_lanes(coordinates, start, weights, result, target):  # type: ignore[no-untyped-def]
    if coordinates.layout != "C":  # a single item, or vectors of length one: Numba cannot tell rows from columns
        return project_lanes

    def compiled(coordinates, start, weights, result, target):  # type: ignore[no-untyped-def]
        emit_projection(coordinates, start, weights, result, target)

    return compiled


@overload(score_lanes, jit_options=OPTIONS, strict=False)
def _compiled_score_lanes(coordinates, start, center, whitener, radius, scores, means, target):  # type: ignore[no-untyped-def]
    if coordinates.layout != "C":
        return score_lanes

    def compiled(coordinates, start, center, whitener, radius, scores, means, target):  # type: ignore[no-untyped-def]
        emit_scores(coordinates, start, center, whitener, radius, scores, means, target)

    return compiled


@overload(measure_lanes, jit_options=OPTIONS, strict=False)
def _compiled_measure_lanes(coordinates, start, center, whitener, weights, squares, means, seconds, target):  # type: ignore[no-untyped-def]
    if coordinates.layout != "C":
        return measure_lanes

    def compiled(coordinates, start, center, whitener, weights, squares, means, seconds, target):  # type: ignore[no-untyped-def]
        emit_measures(coordinates, start, center, whitener, weights, squares, means, seconds, target)

    return compiled


@overload(turn_lanes, jit_options=OPTIONS, strict=False)
def _compiled_turn_lanes(rows, numbers, start, block):  # type: ignore[no-untyped-def]
    def compiled(rows, numbers, start, block):  # type: ignore[no-untyped-def]
        emit_columns(rows, numbers, start, block)

    return compiled


@kernel
def best_position(scores: Vector, length: int) -> int:
    """The position of the largest of the first `length` scores; with ties, the first."""
    best = 0
    for start in range(0, length, BLOCK):
        part = scores[start : min(start + BLOCK, length)]
        n_better = 0
        for position in range(part.size):
            n_better += part[position] > scores[best]
        if n_better > 0:  # rare; the count above is quick because it has no branches
            largest = scores[best]
            for position in range(part.size):
                score = part[position]
                if score > largest:
                    best = start + position
                    largest = score
    return best


def scoring_block(rank: int) -> Matrix:
    """Space to gather the coordinates of a few items, and for their scores and means."""
    return np.zeros((rank + 2, LANES))
