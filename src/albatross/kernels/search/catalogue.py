"""A large catalogue, arranged so that exactly the best item is found without scoring all items.

Similar items stand in blocks. An optimistic score is a convex function of the item's vector. With *slope* = |μ| + c |V^−½|, it changes
by at most slope × distance. So no item of a block scores more than

    score(center of the block) + slope × radius of the block        or        slope × largest norm in the block

and a block whose bound is below the best score so far is skipped. Blocks are cut by norm first, because for users without ratings the
norm decides, and then by coordinates. An item whose vector has changed moves to a few *loose* blocks, which are always scored; when
they are full, everything is arranged again. All this is scratch: it is computed from the item vectors whenever it is missing.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from albatross.kernels.compiling import OPTIONS, kernel
from albatross.kernels.linear import Matrix, Vector, norm
from albatross.kernels.operations import Items, Slate
from albatross.kernels.search.arranging import BLOCK, NOBODY, Catalogue, arrange
from albatross.kernels.search.lanes import LANES
from albatross.kernels.search.listing import enlist, least_listed
from albatross.kernels.search.scoring import score_lanes

SEARCHED_FROM = 32_768
"""From this size on, arranging a catalogue pays."""

SEARCHED_SHARE = 0.25
"""At least this share of the catalogue must be offered, or a search of the whole does not pay."""

LOOSE_SHARE = 12.0
"""Loose items per square root of the catalogue size. Arranging an item costs about 160 times as much as scoring it: this balances both."""

SQUARINGS = 5
"""tr(Mᵖ)^(1/p) is an upper bound of the largest eigenvalue of M; with p = 2⁵ it is at most a tenth too large, at rank 32."""

SAFETY = 1e-12
"""Margin for rounding, relative to slope × norm. It is much larger than the rounding error of a score."""

NEVER = -1
"""No update has this number."""


class SmallCatalogue(NamedTuple):
    """So few items that all are scored. A type of its own, so that the search is compiled only where it is used."""

    nothing: int = 0


_scanned: ContextVar[bool] = ContextVar("scanned", default=False)


@contextmanager
def scanned() -> Iterator[None]:
    """A catalogue that is made here is never searched, however large it is. Choices are the same, and the code is that of small ones."""
    before = _scanned.set(True)
    try:
        yield
    finally:
        _scanned.reset(before)


def is_worth_searching(n_items: int) -> bool:
    return n_items >= SEARCHED_FROM and not _scanned.get()


def new_catalogue(n_items: int, rank: int) -> Catalogue | SmallCatalogue:
    """A catalogue that is not arranged yet."""
    if not is_worth_searching(n_items):
        return SmallCatalogue()
    n_groups = -(-n_items // (BLOCK * LANES))
    n_loose = math.ceil(LOOSE_SHARE * math.sqrt(n_items) / BLOCK)
    n_blocks = -(-n_items // BLOCK) + n_loose
    return Catalogue(
        current=np.array([NEVER, 0]),
        vectors=np.zeros((n_blocks * BLOCK // LANES, rank, LANES)),
        items=np.full(n_blocks * BLOCK, NOBODY, np.int32),
        places=np.zeros(n_items, np.int32),
        positions=np.zeros(n_items, np.int32),
        keys=np.zeros(n_items),
        ranges=np.zeros(128, np.int64),
        centers=np.zeros((rank, n_groups * LANES)),
        radii=np.zeros(n_groups * LANES),
        norms=np.zeros(n_groups * LANES),
        highest=np.zeros(n_groups),
        results=np.zeros((4, BLOCK)),
        powers=np.zeros((2, rank, rank)),
    )


def is_large(catalogue: Catalogue | SmallCatalogue) -> bool:
    """Whether `search` and `note_change` do anything."""
    return isinstance(catalogue, Catalogue)


def search(
    catalogue: Catalogue | SmallCatalogue,
    item_factors: Matrix,
    updates: int,
    center: Vector,
    whitener: Matrix,
    radius: float,
    candidates: Items,
    slate: Slate,
) -> int:
    """`best_item` for a large catalogue."""
    assert isinstance(catalogue, Catalogue)
    return best_item(catalogue, item_factors, updates, center, whitener, radius, candidates, slate)


def note_change(catalogue: Catalogue | SmallCatalogue, item_factors: Matrix, updates: int, item: int) -> None:
    """`moved` for a large catalogue; nothing for a small one."""
    if isinstance(catalogue, Catalogue):
        moved(catalogue, item_factors, updates, item)


def note_again(catalogue: Catalogue | SmallCatalogue, item_factors: Matrix, updates: int, item: int) -> None:
    """`moved_again` for a large catalogue; nothing for a small one."""
    if isinstance(catalogue, Catalogue):
        moved_again(catalogue, item_factors, updates, item)


@overload(is_large, jit_options=OPTIONS, strict=False)
def _compiled_is_large(catalogue):  # type: ignore[no-untyped-def]
    large = catalogue.instance_class is Catalogue

    def compiled(catalogue):  # type: ignore[no-untyped-def]
        return large

    return compiled


@overload(search, jit_options=OPTIONS, strict=False)
def _compiled_search(catalogue, item_factors, updates, center, whitener, radius, candidates, slate):  # type: ignore[no-untyped-def]
    def nobody(catalogue, item_factors, updates, center, whitener, radius, candidates, slate):  # type: ignore[no-untyped-def]
        return NOBODY

    return best_item if catalogue.instance_class is Catalogue else nobody


@overload(note_change, jit_options=OPTIONS, strict=False)
def _compiled_note_change(catalogue, item_factors, updates, item):  # type: ignore[no-untyped-def]
    def ignore(catalogue, item_factors, updates, item):  # type: ignore[no-untyped-def]
        pass

    return moved if catalogue.instance_class is Catalogue else ignore


@overload(note_again, jit_options=OPTIONS, strict=False)
def _compiled_note_again(catalogue, item_factors, updates, item):  # type: ignore[no-untyped-def]
    def ignore(catalogue, item_factors, updates, item):  # type: ignore[no-untyped-def]
        pass

    return moved_again if catalogue.instance_class is Catalogue else ignore


@kernel
def best_item(
    catalogue: Catalogue,
    item_factors: Matrix,
    updates: int,
    center: Vector,
    whitener: Matrix,
    radius: float,
    candidates: Items,
    slate: Slate,
) -> int:
    """The position of the candidate with the largest ⟨center, item⟩ + radius · |whitener · item|; with ties, the first.

    Of the slate, only the places of this candidate and of those in `slate.best` are filled.
    `updates` counts the changes of the item vectors. If `moved` has missed one, everything is arranged again.
    """
    if catalogue.current[0] != updates:
        arrange(catalogue, item_factors)
        catalogue.current[0] = updates
    for position in range(candidates.size):
        catalogue.positions[candidates[position]] = position
    slate.best.fill(NOBODY)
    slope = norm(center) + radius * largest_stretch(whitener, catalogue.powers)
    bounds, means = catalogue.results[2], catalogue.results[3]
    n_fixed = -(-catalogue.places.size // BLOCK)
    best = NOBODY
    for loose in range(-(-catalogue.current[1] // BLOCK)):
        best = _better_in_block(catalogue, n_fixed + loose, center, whitener, radius, candidates, slate, best)
    for group in range(catalogue.highest.size):
        if slope * catalogue.highest[group] * (1.0 + SAFETY) < _least(slate, best):
            continue
        first = group * LANES
        score_lanes(catalogue.centers, first, center, whitener, radius, bounds, means, 0)
        for lane in range(min(LANES, n_fixed - first)):
            farthest = slope * catalogue.norms[first + lane]
            bound = min(bounds[lane] + slope * catalogue.radii[first + lane], farthest) + SAFETY * farthest
            if not bound < _least(slate, best):
                best = _better_in_block(catalogue, first + lane, center, whitener, radius, candidates, slate, best)
    return best


@kernel
def _least(slate: Slate, best: int) -> float:
    """The score that an item must reach to be wanted."""
    if slate.best.size > 0:
        return least_listed(slate)
    return -math.inf if best == NOBODY else slate.scores[best]


@kernel
def _better_in_block(
    catalogue: Catalogue, block: int, center: Vector, whitener: Matrix, radius: float, candidates: Items, slate: Slate, best: int
) -> int:
    scores, means = catalogue.results[0], catalogue.results[1]
    for start in range(0, BLOCK, LANES):
        score_lanes(catalogue.vectors[(block * BLOCK + start) // LANES], 0, center, whitener, radius, scores, means, start)
    least = _least(slate, best)
    n_better = 0
    for lane in range(BLOCK):
        n_better += scores[lane] >= least
    if n_better > 0:  # rare; the count above is quick because it has no branches
        for lane in range(BLOCK):
            item = int(catalogue.items[block * BLOCK + lane])
            if item == NOBODY or not scores[lane] >= least:
                continue
            position = catalogue.positions[item] if candidates.size > 0 else item
            if candidates.size > 0 and not (position < candidates.size and candidates[position] == item):
                continue  # the place of an item that is not a candidate may hold anything
            slate.scores[position], slate.means[position] = scores[lane], means[lane]
            if slate.best.size > 0:
                enlist(slate, position)
            largest = -math.inf if best == NOBODY else slate.scores[best]
            if best == NOBODY or scores[lane] > largest or (scores[lane] == largest and position < best):
                best = int(position)
    return best


@kernel
def moved(catalogue: Catalogue, item_factors: Matrix, updates: int, item: int) -> None:
    """Record that update number `updates` has changed the vector of this item and of no other."""
    if catalogue.current[0] != updates - 1:
        return
    n_fixed = -(-catalogue.places.size // BLOCK)
    place = catalogue.places[item]
    if place < n_fixed * BLOCK:
        catalogue.items[place] = NOBODY
        place = n_fixed * BLOCK + catalogue.current[1]
        if place == catalogue.items.size:
            catalogue.current[0] = NEVER
            return
        catalogue.current[1] += 1
        catalogue.items[place] = item
        catalogue.places[item] = place
    for a in range(item_factors.shape[1]):
        catalogue.vectors[place // LANES, a, place % LANES] = item_factors[item, a]
    catalogue.current[0] = updates


@kernel
def moved_again(catalogue: Catalogue, item_factors: Matrix, updates: int, item: int) -> None:
    """Record that the vector of this item, and of no other, has changed since update number `updates`, without another update."""
    if catalogue.current[0] == updates:
        moved(catalogue, item_factors, updates + 1, item)
        if catalogue.current[0] != NEVER:
            catalogue.current[0] = updates


@kernel
def largest_stretch(whitener: Matrix, powers: NDArray[np.float64]) -> float:
    """An upper bound, almost tight, of |whitener · x| over all x of norm 1."""
    power, square = powers[0], powers[1]
    rank = whitener.shape[0]
    for a in range(rank):
        for b in range(rank):
            power[a, b] = 0.0
            for c in range(min(a, b) + 1):
                power[a, b] += whitener[a, c] * whitener[b, c]
    logarithm = 0.0
    for squaring in range(SQUARINGS + 1):
        trace = 0.0
        for a in range(rank):
            trace += power[a, a]
        if not 0.0 < trace < math.inf:
            return trace
        logarithm += math.log(trace) / 2.0**squaring
        for a in range(rank):
            for b in range(rank):
                power[a, b] /= trace
        if squaring < SQUARINGS:
            for a in range(rank):
                for b in range(rank):
                    square[a, b] = 0.0
                    for c in range(rank):
                        square[a, b] += power[a, c] * power[c, b]
            power, square = square, power
    return math.exp(0.5 * logarithm) * (1.0 + SAFETY)
