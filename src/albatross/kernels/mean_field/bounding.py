"""An upper bound of mean-field's score per block of items.

**The bound.** The score is f(m, v_u, v_i) = m + e / √(1 + (e / (top − m))²), e² a sum of non-negative terms that grow with v_u and v_i.

1. f grows with e, obviously, and with m: with L = top − m > 0, f = top − L + e L / √(e² + L²), whose derivative by L is
   (e² / (e² + L²))^(3/2) − 1 ≤ 0. For L ≤ 0, f = m, which is its limit at L = 0.
2. w(v, s², N)² grows with v (`gittins.worth` is a rational function of √N whose derivative has positive coefficients alone, and
   N v / (v + 0.8 s²) grows with v).

So f at upper bounds of m, v_u and v_i is an upper bound of f. For an item with numbers r = (x, o, C), x = (f, 1), |r − c| ≤ h each,
a user with mean (a, o_u), whitener W and y = (a, 1):

    m = o_u + ⟨y, (f, o)⟩ ≤ o_u + ⟨y, c⟩ + ⟨|y|, h⟩
    √v_u / s = |W x| ≤ |W c| + Σ_j |W e_j| h_j                      by the triangle inequality
    v_i = ⟨y yᵀ, C⟩ ≤ ⟨y yᵀ, c⟩ + ⟨|y yᵀ|, h⟩                        because it is linear in C

Computed values differ from these by rounding. With E = E[|z|²] of an item, z = (f, 1, o), and ŷ = (a, o_u, 1): m is a sum of terms
whose sizes sum to at most |ŷ| √E, |W x| to at most √(Σ |W e_j|²) √E, and v_i is the difference of a second moment and m², both sums of
terms that sum to at most |ŷ|² E. `SAFETY` times these exceeds the rounding error of the additions, up to thousands of terms.
"""

import math
from typing import Any

from albatross.kernels.compiling import kernel
from albatross.kernels.mean_field.gittins import bonus
from albatross.kernels.mean_field.shelving import ARRANGED, BLOCK
from albatross.kernels.mean_field.valuing import Scales, square_of
from albatross.kernels.search.catalogue import SAFETY
from albatross.kernels.search.lanes import LANES
from albatross.kernels.search.scoring import project_lanes, score_lanes


@kernel
def _weigh_bounds(state: Any, scratch: Any) -> None:
    """Weights for the numbers of a block that bound the scores of its items for this user."""
    work, shelves = scratch.room.work, scratch.room.shelves
    size = work.mean.size
    rank = size - 1
    toward, spreading = shelves.toward, shelves.spreading
    for a in range(size):
        toward[a] = work.mean[a]
        square = 0.0
        for b in range(a, size):
            square += work.whitener[b, a] * work.whitener[b, a]
        shelves.stretches[a] = math.sqrt(square)
    toward[rank] = 0.0  # the origin has the user's offset
    toward[size] = 1.0
    place = 0
    for a in range(size):
        left = work.mean[a] if a < rank else 1.0
        for b in range(a + 1):
            right = work.mean[b] if b < rank else 1.0
            spreading[place] = left * right if a == b else 2.0 * left * right
            place += 1
    for a in range(toward.size):
        shelves.away[a] = abs(toward[a])
    for place in range(spreading.size):
        shelves.outspread[place] = abs(spreading[place])


@kernel
def bound_blocks(state: Any, scratch: Any, scales: Scales) -> None:
    """An upper bound of the scores per block, except for items that the user has rated."""
    work, shelves, results = scratch.room.work, scratch.room.shelves, scratch.room.shelves.results
    n_blocks = -(-shelves.counts[ARRANGED] // BLOCK)
    _weigh_bounds(state, scratch)
    own = shelves.toward.size
    length = stretch = 0.0
    for a in range(own):
        length += shelves.toward[a] * shelves.toward[a]
    for a in range(own - 1):
        stretch += shelves.stretches[a] * shelves.stretches[a]
    radius = math.sqrt(state.figures[0].noise)
    means, roots, variances, reaches = results[0], results[1], results[2], results[3]
    for group in range(-(-n_blocks // LANES)):
        centers, farthest = shelves.centers[group], shelves.reaches[group]
        score_lanes(centers, 0, work.mean, work.whitener, 1.0, roots, means, 0)
        for lane in range(LANES):
            roots[lane] -= means[lane]
        project_lanes(farthest, 0, shelves.stretches, reaches, 0)
        for lane in range(LANES):
            roots[lane] += reaches[lane]
        project_lanes(centers, 0, shelves.toward, means, 0)
        project_lanes(farthest, 0, shelves.away, reaches, 0)
        for lane in range(LANES):
            means[lane] += reaches[lane]
        project_lanes(centers[own:], 0, shelves.spreading, variances, 0)
        project_lanes(farthest[own:], 0, shelves.outspread, reaches, 0)
        for lane in range(LANES):
            size = max(shelves.sizes[group, lane], 0.0)
            terms = math.sqrt(length * size)
            mean = means[lane] + SAFETY * terms
            root = roots[lane] + SAFETY * (math.sqrt(stretch * size) + terms + terms / radius)
            variance = variances[lane] + reaches[lane] + SAFETY * length * size
            mean += scales.origin + SAFETY * abs(scales.origin)
            square = square_of(scales, root * root, max(variance, 0.0) * scales.inverse_noise)
            gain = bonus(square, scales.top - mean)
            shelves.bounds[group * LANES + lane] = mean + gain + SAFETY * (abs(mean) + gain)
