"""How a large catalogue is arranged: into blocks of neighbours, cut by norm first and then by coordinates, and measured."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.search.lanes import LANES

BLOCK = 128
BAND = 32 * BLOCK
"""Items cut by norm alone are this many: fewer would leave too little to cut by coordinates, more would mix norms."""

SAMPLE = 64
"""Items looked at to choose the coordinate a range is cut by."""

NOBODY = -1
"""No item stands here."""


class Catalogue(NamedTuple):
    current: NDArray[np.int64]
    """The number of updates the arrangement knows of, and how many items are loose."""
    vectors: NDArray[np.float64]
    """(n_places / LANES, rank, LANES): one coordinate of neighbours side by side, and what is looked at together in one piece."""
    items: NDArray[np.int32]
    """Which item stands at each place: block after block, the loose ones last."""
    places: NDArray[np.int32]
    """Where each item stands."""
    positions: NDArray[np.int32]
    """Where each item stands among the candidates."""
    keys: Vector
    """While arranging: what the items are cut by."""
    ranges: NDArray[np.int64]
    """While arranging: what is still to be cut."""
    centers: Matrix
    """(rank, n_blocks)"""
    radii: Vector
    norms: Vector
    """Per block, the largest norm."""
    highest: Vector
    """Per group of LANES blocks, the largest norm."""
    results: Matrix
    """Room for the scores and means of a block, and of the centers of a group."""
    powers: NDArray[np.float64]
    """Room for two matrices."""


@kernel
def arrange(catalogue: Catalogue, item_factors: Matrix) -> None:
    """Put every item into a block of its neighbours, and measure the blocks."""
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
    """The keys of a range become the coordinate in which its items seem to differ most."""
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
