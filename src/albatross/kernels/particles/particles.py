"""A particle filter in which each particle is a whole factorization, with shared memory.

The vectors and sums of one user or item are stored in as many *slots* as there are particles, and tables say which slot belongs
to which particle. In resampling, the first copy of a particle keeps its row of the tables; further copies overwrite the rows of
particles without copies. So a copy costs a few numbers and no vectors. A redraw is done for all particles at once: it reads
through the tables and writes each particle to the slot of its own number, so written data is never shared.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector, packed_size
from albatross.kernels.pairs import Pairs, no_pairs
from albatross.kernels.particles.slots import Slots
from albatross.kernels.sampling import ESS, Indices, draw_points, effective_number, find_ancestors, inherit, multiply

LARGEST, USUAL = 1024.0, 4.0
"""Ratings are used unscaled up to `LARGEST` prior standard deviations. Beyond that the model cannot fit: its noise would be lost in
the rounding of the sums, and numbers would grow until they overflow. Then a unit scales the largest rating so far to a `USUAL` one."""


class Model(NamedTuple):
    """Fixed parameters: the noise σ, 1/σ_V², the prior standard deviation of a rating, and the resampler."""

    noise: float
    item_precision: float
    spread: float
    resampler: int


class Particles(NamedTuple):
    log_weights: Vector
    user_precisions: Vector
    """Per particle 1/σ_U²."""
    user_factors: NDArray[np.float64]
    """U, by user, slot and coordinate."""
    item_factors: NDArray[np.float64]
    """V, by item, slot and coordinate."""
    item_sums: NDArray[np.float64]
    """Per item Σ U_i U_iᵀ over its ratings, packed, and below it Σ y U_i; the slot is the last axis."""
    rows: Indices
    """Per particle its row in the next three tables. Copies of one ancestor are neighbours here, and no whole rows are moved."""
    user_slots: Slots
    item_slots: Slots
    sum_slots: Slots
    """By row and user or item: the slot in the three arrays above."""
    pairs: Pairs
    unit: Vector
    """The divisor of ratings, an array of length 1."""
    updates: NDArray[np.int64]
    """Ratings learned from so far, and at the last rebuild of the item sums."""


def new_particles(user_precisions: Vector, users: NDArray[np.float64], items: NDArray[np.float64]) -> Particles:
    """Particles with equal weights from their initial vectors, by user or item, particle and coordinate."""
    n_items, n_particles, rank = items.shape
    own = np.arange(n_particles, dtype=np.uint16)[:, np.newaxis]
    return Particles(
        log_weights=np.full(n_particles, -math.log(n_particles)),
        user_precisions=user_precisions,
        user_factors=users,
        item_factors=items,
        item_sums=np.zeros((n_items, packed_size(rank) + rank, n_particles)),
        rows=np.arange(n_particles),
        user_slots=np.repeat(own, len(users), axis=1),
        item_slots=np.repeat(own, n_items, axis=1),
        sum_slots=np.repeat(own, n_items, axis=1),
        pairs=no_pairs(len(users)),
        unit=np.ones(1),
        updates=np.zeros(2, np.int64),
    )


class Work(NamedTuple):
    """Working arrays: for all particles (the particle is the last axis), and for the one that a selection follows."""

    weights: Vector
    points: Vector
    ancestors: Indices
    """The ancestor of each particle, in the generation before the last rating."""
    origins: Indices
    unused: Indices
    ridges: Vector
    copy: Vector
    sums: Matrix
    factors: Matrix
    vectors: Matrix
    centers: Matrix
    changes: Matrix
    """The change of a user's terms by the last move: new minus old, in the order of the sums."""
    gram: Matrix
    factor: Matrix
    vector: Vector
    center: Vector
    drawn: Vector


def new_work(n_particles: int, rank: int) -> Work:
    size, one, index = packed_size(rank), np.zeros(n_particles), np.zeros(n_particles, np.int64)
    return Work(
        one, one.copy(), index, index.copy(), index.copy(), one.copy(), one.copy(),
        np.zeros((size + rank, n_particles)), np.zeros((size, n_particles)), np.zeros((rank, n_particles)),
        np.zeros((rank, n_particles)), np.zeros((size + rank, n_particles)),
        np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros(rank), np.zeros(rank), np.zeros(rank),
    )  # fmt: skip


@kernel
def widen_unit(particles: Particles, model: Model, reward: float) -> float:
    """Enlarge the unit if the rating is far too large for the model. Returns the factor by which the users' vectors were multiplied.

    The vectors then predict the same ratings as before. A unit is a power of two, so nothing is rounded.
    """
    before = particles.unit[0]
    if abs(reward) <= (LARGEST if before == 1.0 else USUAL) * model.spread * before:
        return 1.0
    while abs(reward) > USUAL * model.spread * particles.unit[0]:
        particles.unit[0] *= 2.0
    ratio = before / particles.unit[0]
    for user in range(particles.user_factors.shape[0]):
        multiply(particles.user_factors[user], ratio)
    for item in range(particles.item_sums.shape[0]):
        multiply(particles.item_sums[item], ratio * ratio)  # products of two vectors, or of a vector and a rating
    return ratio  # type: ignore[no-any-return]


@kernel
def resample(particles: Particles, model: Model, work: Work, random: np.random.Generator) -> None:
    """Draw a new generation of equally weighted particles; with `ess`, only if the effective number is below half."""
    n_particles = work.weights.size
    if model.resampler == ESS and effective_number(work.weights) >= 0.5 * n_particles:
        for d in range(n_particles):
            work.ancestors[d] = d
        return
    draw_points(model.resampler, random, work.points)
    find_ancestors(work.weights, work.points, work.ancestors)
    for d in range(n_particles):
        particles.log_weights[d] = -math.log(n_particles)
    inherit(particles.user_precisions, work.ancestors, work.copy)
    inherit(work.ridges, work.ancestors, work.copy)
    for position in range(work.sums.shape[0]):
        inherit(work.sums[position], work.ancestors, work.copy)
    inherit_rows(particles, work)


@kernel
def inherit_rows(particles: Particles, work: Work) -> None:
    """Give each particle a row of the tables: the first copy of an ancestor gets its row, others get a copy in an unused row."""
    rows, ancestors, origins, unused = particles.rows, work.ancestors, work.origins, work.unused
    n_particles = rows.size
    n_unused, child = 0, 0
    for d in range(n_particles):
        origins[d] = rows[d]
        while child < n_particles and ancestors[child] < d:
            child += 1
        if child == n_particles or ancestors[child] > d:
            unused[n_unused] = rows[d]
            n_unused += 1
    for d in range(n_particles):
        source = origins[ancestors[d]]
        rows[d] = source
        if d > 0 and ancestors[d] == ancestors[d - 1]:
            n_unused -= 1
            target = unused[n_unused]
            rows[d] = target
            for user in range(particles.user_slots.shape[1]):
                particles.user_slots[target, user] = particles.user_slots[source, user]
            for item in range(particles.item_slots.shape[1]):
                particles.item_slots[target, item] = particles.item_slots[source, item]
                particles.sum_slots[target, item] = particles.sum_slots[source, item]


@kernel
def settle_sums(particles: Particles, work: Work, item: int) -> None:
    """Move each particle's sums of the item to the slot of its own number, so that they may be changed."""
    slots, origins = particles.sum_slots, work.origins
    settled = True
    for d in range(origins.size):
        row = particles.rows[d]
        origins[d] = slots[row, item]
        settled &= origins[d] == d
        slots[row, item] = d
    if not settled:
        for position in range(particles.item_sums.shape[1]):
            inherit(particles.item_sums[item, position], origins, work.copy)
