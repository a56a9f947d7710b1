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

from albatross.kernels.alternating import REBUILD_INTERVAL, RESCUE_INTERVAL
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector, add_outer, factorize, packed_size, solve_lower, solve_upper
from albatross.kernels.operations import Items
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.sampling import (
    ESS,
    Indices,
    add_log_densities,
    add_terms,
    clear,
    draw_all,
    draw_points,
    effective_number,
    factorize_all,
    find_ancestors,
    inherit,
    normalize,
    pick,
)
from albatross.kernels.slots import Slots, gather, scatter


class Model(NamedTuple):
    """What is fixed: the noise σ, 1/σ_V², and how a new generation is drawn."""

    noise: float
    item_precision: float
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
def follow_particle(particles: Particles, model: Model, work: Work, user: int, random: np.random.Generator) -> int:
    """Choose a particle by its weight, place the user in it, draw the user's vector anew; return the particle.

    `center` is the mean of the user's vector given the particle's item vectors, `drawn` the draw.
    """
    gram, factor, vector, center, drawn = work.gram, work.factor, work.vector, work.center, work.drawn
    rank = center.size
    for d in range(work.weights.size):
        work.weights[d] = math.exp(particles.log_weights[d])
    particle = pick(work.weights, 1.0 - random.random())
    ridge = model.noise**2 * particles.user_precisions[particle]
    slots = particles.item_slots[particles.rows[particle]]
    for a in range(rank):
        center[a] = 0.0
        for b in range(a):
            gram[a, b] = 0.0
        gram[a, a] = ridge
    pairs = particles.pairs
    entry = pairs.first[user]
    while entry != NOTHING:
        item = pairs.items[entry]
        for a in range(rank):
            vector[a] = particles.item_factors[item, slots[item], a]
            center[a] += pairs.totals[entry] * vector[a]
        add_outer(gram, vector, float(pairs.plays[entry]))
        entry = pairs.following[entry]
    factorize(gram, factor, 0.5 * ridge)
    solve_lower(factor, center, center)
    for a in range(rank):
        drawn[a] = center[a] + model.noise * random.standard_normal()
    solve_upper(factor, center, center)
    solve_upper(factor, drawn, drawn)
    return particle


@kernel
def score_items(particles: Particles, particle: int, work: Work, candidates: Items, scores: Vector, means: Vector) -> None:
    """Score the candidates, or all items, by one particle's item vectors: ⟨drawn, item⟩ and its mean ⟨center, item⟩."""
    center, drawn = work.center, work.drawn
    slots = particles.item_slots[particles.rows[particle]]
    n_candidates = candidates.size if candidates.size > 0 else slots.size
    for position in range(n_candidates):
        item = np.uint32(candidates[position] if candidates.size > 0 else position)
        slot = slots[item]
        mean, score = 0.0, 0.0
        for a in range(center.size):
            coordinate = particles.item_factors[item, slot, a]
            mean += center[a] * coordinate
            score += drawn[a] * coordinate
        means[position] = mean
        scores[position] = score


@kernel
def learn_by_particles(
    particles: Particles, model: Model, work: Work, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    """Reweight, resample, and move the user and the item of one rating, in every particle."""
    weigh(particles, model, work, user, item, reward)
    resample(particles, model, work, random)
    gather(particles.item_factors, particles.item_slots, particles.rows, item, work.vectors)
    add_terms(work.sums, work.vectors, 1.0, reward)
    move_user(particles, model, work, user, random)
    remember(particles.pairs, user, item, reward)
    settle_sums(particles, work, item)
    add_terms(particles.item_sums[item], work.vectors, 1.0, reward)
    particles.updates[0] += 1
    move_item(particles, model, work, item, random)


@kernel
def weigh(particles: Particles, model: Model, work: Work, user: int, item: int, reward: float) -> None:
    """Multiply each weight with the density of the rating given the particle's item vectors, the user's vector integrated out.

    Leaves each particle's sums over the user's past ratings, and the ridges that belong to them, in the working arrays.
    """
    pairs, sums, vectors = particles.pairs, work.sums, work.vectors
    rank, n_particles = vectors.shape
    clear(sums)
    entry = pairs.first[user]
    while entry != NOTHING:
        gather(particles.item_factors, particles.item_slots, particles.rows, int(pairs.items[entry]), vectors)
        add_terms(sums, vectors, float(pairs.plays[entry]), pairs.totals[entry])
        entry = pairs.following[entry]
    for d in range(n_particles):
        work.ridges[d] = model.noise**2 * particles.user_precisions[d]
    factorize_all(sums, work.ridges, work.factors, rank)
    gather(particles.item_factors, particles.item_slots, particles.rows, item, vectors)
    add_log_densities(sums, work.factors, model.noise, reward, vectors, work.centers, particles.log_weights)
    normalize(particles.log_weights, work.weights)


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
def move_user(particles: Particles, model: Model, work: Work, user: int, random: np.random.Generator) -> None:
    """Redraw the user's vector in each particle and exchange its terms in the sums of the items the user has rated."""
    vectors, before, changes = work.vectors, work.centers, work.changes
    rank, n_particles = vectors.shape
    factorize_all(work.sums, work.ridges, work.factors, rank)
    draw_all(work.sums, work.factors, model.noise, random, vectors)
    gather(particles.user_factors, particles.user_slots, particles.rows, user, before)
    scatter(vectors, particles.user_factors, particles.user_slots, particles.rows, user)
    clear(changes)
    add_terms(changes, vectors, 1.0, 1.0)
    add_terms(changes, before, -1.0, -1.0)
    pairs = particles.pairs
    entry = pairs.first[user]
    while entry != NOTHING:
        item = int(pairs.items[entry])
        settle_sums(particles, work, item)
        for position in range(changes.shape[0]):
            times = float(pairs.plays[entry]) if position < changes.shape[0] - rank else pairs.totals[entry]
            for d in range(n_particles):
                particles.item_sums[item, position, d] += times * changes[position, d]
        entry = pairs.following[entry]


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


@kernel
def move_item(particles: Particles, model: Model, work: Work, item: int, random: np.random.Generator) -> None:
    """Redraw the item's vector in each particle; when it is time, or rounding has spoiled its sums, all sums are rebuilt before."""
    sums, updates = particles.item_sums[item], particles.updates
    for d in range(work.ridges.size):
        work.ridges[d] = model.noise**2 * model.item_precision
    effort = particles.pairs.used[0] + particles.user_factors.shape[0] + particles.item_factors.shape[0]
    due = updates[0] - updates[1] >= max(REBUILD_INTERVAL, effort)
    while due or (not factorize_all(sums, work.ridges, work.factors, work.vectors.shape[0]) and updates[0] - updates[1] >= RESCUE_INTERVAL):
        rebuild_sums(particles, work)
        due = False
    draw_all(sums, work.factors, model.noise, random, work.vectors)
    scatter(work.vectors, particles.item_factors, particles.item_slots, particles.rows, item)


@kernel
def rebuild_sums(particles: Particles, work: Work) -> None:
    """Sum the item statistics afresh from the ratings: one pass over all pairs, users and items."""
    particles.updates[1] = particles.updates[0]
    for item in range(particles.item_sums.shape[0]):
        clear(particles.item_sums[item])
        for d in range(particles.rows.size):
            particles.sum_slots[particles.rows[d], item] = d
    pairs = particles.pairs
    for user in range(pairs.first.size):
        gather(particles.user_factors, particles.user_slots, particles.rows, user, work.vectors)
        entry = pairs.first[user]
        while entry != NOTHING:
            add_terms(particles.item_sums[pairs.items[entry]], work.vectors, float(pairs.plays[entry]), pairs.totals[entry])
            entry = pairs.following[entry]
