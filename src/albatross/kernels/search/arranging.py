"""The arrangement of a large catalogue: blocks of similar items, cut first by norm and then by coordinates; and their bounds."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.search.lanes import LANES

BLOCK = 128
BAND = 32 * BLOCK
"""Size of the parts cut by norm alone: smaller parts would leave too little to cut by coordinates, larger ones would mix norms."""

SAMPLE = 64
"""Number of sampled items to choose the coordinate by which a range is cut."""

NOBODY = -1
"""This place is empty."""


class Catalogue(NamedTuple):
    current: NDArray[np.int64]
    """The number of updates up to which the arrangement is current, and the number of loose items."""
    vectors: NDArray[np.float64]
    """(n_places / LANES, rank, LANES): one coordinate of neighbouring items is contiguous, and so is what is scored together."""
    items: NDArray[np.int32]
    """The item at each place: block after block, loose items last."""
    places: NDArray[np.int32]
    """The place of each item."""
    positions: NDArray[np.int32]
    """The position of each item among the candidates."""
    keys: Vector
    """Sort keys of the items, while arranging."""
    ranges: NDArray[np.int64]
    """Ranges still to be cut, while arranging."""
    centers: Matrix
    """(rank, n_blocks)"""
    radii: Vector
    norms: Vector
    """Per block, its largest norm."""
    highest: Vector
    """Per group of LANES blocks, its largest norm."""
    results: Matrix
    """Space for the scores and means of a block, and of the centers of a group."""
    powers: NDArray[np.float64]
    """Space for two matrices."""


@kernel
def arrange(catalogue: Catalogue, item_factors: Matrix) -> None:
    """Put similar items into blocks, and measure the blocks."""
    n_items, rank = item_factors.shape
    items, places, keys, ranges = catalogue.items, catalogue.places, catalogue.keys, catalogue.ranges
    items[:] = NOBODY
    for item in range(n_items):
        items[item] = item
        keys[item] = 0.0
        for a in range(rank):
            keys[item] -= item_factors[item, a] * item_factors[item, a]
    n_ranges = 1
    ranges[0], ranges[1] = 0, n_items
    while n_ranges > 0:
        n_ranges -= 1
        start, stop = ranges[2 * n_ranges], ranges[2 * n_ranges + 1]
        if stop - start <= BLOCK:
            continue
        part = BAND if stop - start > BAND else BLOCK
        if part == BLOCK:
            _take_widest_coordinate(item_factors, items, keys, start, stop)
        middle = start + part * (-(-(stop - start) // part) // 2)
        cut(keys, items, start, stop, middle)
        ranges[2 * n_ranges], ranges[2 * n_ranges + 1] = start, middle
        ranges[2 * n_ranges + 2], ranges[2 * n_ranges + 3] = middle, stop
        n_ranges += 2
    for place in range(n_items):
        item = items[place]
        places[item] = place
        for a in range(rank):
            catalogue.vectors[place // LANES, a, place % LANES] = item_factors[item, a]
    catalogue.current[1] = 0
    _measure_blocks(catalogue, item_factors)


@kernel
def _take_widest_coordinate(item_factors: Matrix, items: NDArray[np.int32], keys: Vector, start: int, stop: int) -> None:
    """Set the keys of a range to the coordinate with the largest spread, estimated from a sample."""
    widest, extent = 0, -1.0
    for a in range(item_factors.shape[1]):
        low, high = math.inf, -math.inf
        for place in range(start, stop, max((stop - start) // SAMPLE, 1)):
            value = item_factors[items[place], a]
            if value < low:
                low = value
            if value > high:
                high = value
        if high - low > extent:
            widest, extent = a, high - low
    for place in range(start, stop):
        keys[place] = item_factors[items[place], widest]


@kernel
def cut(keys: Vector, items: NDArray[np.int32], start: int, stop: int, middle: int) -> None:
    """Exchange places until no key before `middle` is larger than one from there on (Hoare's selection)."""
    left, right = start, stop - 1
    while left < right:
        first, second, third = keys[left], keys[(left + right) // 2], keys[right]
        pivot = max(min(first, second), min(max(first, second), third))
        low, high = left, right
        while low <= high:
            while keys[low] < pivot:
                low += 1
            while keys[high] > pivot:
                high -= 1
            if low <= high:
                keys[low], keys[high] = keys[high], keys[low]
                items[low], items[high] = items[high], items[low]
                low += 1
                high -= 1
        if middle <= high:
            right = high
        elif middle >= low:
            left = low
        else:
            return


@kernel
def _measure_blocks(catalogue: Catalogue, item_factors: Matrix) -> None:
    n_items, rank = item_factors.shape
    centers = catalogue.centers
    catalogue.highest[:] = 0.0
    for block in range(-(-n_items // BLOCK)):
        members = catalogue.items[block * BLOCK : min((block + 1) * BLOCK, n_items)]
        for a in range(rank):
            low, high = math.inf, -math.inf
            for item in members:
                low, high = min(low, item_factors[item, a]), max(high, item_factors[item, a])
            centers[a, block] = 0.5 * (low + high)
        farthest, longest = 0.0, 0.0
        for item in members:
            distance, square = 0.0, 0.0
            for a in range(rank):
                difference = item_factors[item, a] - centers[a, block]
                distance += difference * difference
                square += item_factors[item, a] * item_factors[item, a]
            farthest, longest = max(farthest, distance), max(longest, square)
        catalogue.radii[block] = math.sqrt(farthest)
        catalogue.norms[block] = math.sqrt(longest)
        catalogue.highest[block // LANES] = max(catalogue.highest[block // LANES], catalogue.norms[block])
