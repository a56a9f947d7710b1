"""A filter of particles, each a whole factorization, that share what they have in common.

The vectors and sums of one user or item stand in as many *slots* as there are particles, and tables say which slot belongs
to which particle. Who is copied into the next generation keeps its row of the tables; its further offspring overwrite the rows of those who
have none, so a copy costs a few numbers and no vectors. Whatever is redrawn is redrawn for all particles at once: it is read
through the tables and written with each particle in the slot of its own number, so nothing that is written is ever shared.
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
"""Ratings are taken as they are up to `LARGEST` prior standard deviations. Beyond, the model cannot be meant: its noise would be lost in
the rounding of the sums, and numbers would grow until they overflow. Then a unit makes the largest rating so far a `USUAL` one."""


class Model(NamedTuple):
    """What is fixed: the noise σ, 1/σ_V², the prior standard deviation of a rating, and how a new generation is drawn."""

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
    """Per particle its row in the next three tables: relatives stay neighbours without moving whole rows."""
    user_slots: Slots
    item_slots: Slots
    sum_slots: Slots
    """By row and user or item: the slot in the three arrays above."""
    pairs: Pairs
    unit: Vector
    """What ratings are divided by, an array of length 1."""
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
    """Working arrays: for all particles, the particle last, and for the one that a selection follows."""

    weights: Vector
    points: Vector
    ancestors: Indices
    """Of which particle of the generation before the last rating each one is a copy."""
    origins: Indices
    unused: Indices
    ridges: Vector
    copy: Vector
    sums: Matrix
    factors: Matrix
    vectors: Matrix
    centers: Matrix
    changes: Matrix
    """What the last move of a user changed in the terms of that user: new minus old, in the order of the sums."""
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
    """Make the unit larger if the rating is far too large for the model; returns what the users' vectors were multiplied with.

    Then the vectors predict the same ratings as before. A unit is a power of two, so this rounds nothing.
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
        multiply(particles.item_sums[item], ratio * ratio)  # of vectors twice, or of a vector and a rating
    return ratio  # type: ignore[no-any-return]


@kernel
def resample(particles: Particles, model: Model, work: Work, random: np.random.Generator) -> None:
    """Draw a new generation of equally weighted particles; with `ess` only if fewer than half of them count."""
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
    """Give each particle a row of the tables: its ancestor's own to one, a copy in an unused row to the others."""
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
    """Bring each particle's sums of the item into the slot of its own number, so that they may be changed."""
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
