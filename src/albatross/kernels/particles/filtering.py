"""The steps of particle Thompson sampling: select by one particle, and update all particles with a rating."""

import math

import numpy as np

from albatross.kernels.alternating.steps import REBUILD_INTERVAL, RESCUE_INTERVAL
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector, add_outer, factorize, solve_lower, solve_upper
from albatross.kernels.operations import Items
from albatross.kernels.pairs import NOTHING, remember
from albatross.kernels.particles.particles import Model, Particles, Work, resample, settle_sums
from albatross.kernels.particles.slots import gather, scatter
from albatross.kernels.sampling import add_log_densities, add_terms, clear, draw_all, factorize_all, normalize, pick


@kernel
def follow_particle(particles: Particles, model: Model, work: Work, user: int, random: np.random.Generator) -> int:
    """Choose a particle by its weight, compute the user's posterior in it, and draw the user's vector. Returns the particle.

    `center` is the mean of the user's vector given the particle's item vectors; `drawn` is the draw.
    """
    factor, center, drawn = work.factor, work.center, work.drawn
    particle = pick_particle(particles, work, random)
    ridge = sum_ratings(particles, model, work, user, particle)
    factorize(work.gram, factor, 0.5 * ridge)
    solve_lower(factor, center, center)
    for a in range(center.size):
        drawn[a] = center[a] + model.noise * random.standard_normal()
    solve_upper(factor, center, center)
    solve_upper(factor, drawn, drawn)
    return particle


@kernel
def pick_particle(particles: Particles, work: Work, random: np.random.Generator) -> int:
    """Choose a particle by its weight."""
    for d in range(work.weights.size):
        work.weights[d] = math.exp(particles.log_weights[d])
    return pick(work.weights, 1.0 - random.random())


@kernel
def sum_ratings(particles: Particles, model: Model, work: Work, user: int, particle: int) -> float:
    """Leave σ² Λ_i of a particle in `gram` and Σ y V_j in `center`; returns the ridge σ² / σ_U²."""
    gram, vector, center = work.gram, work.vector, work.center
    rank = center.size
    ridge = model.noise**2 * particles.user_precisions[particle]
    slots = particles.item_slots[particles.rows[particle]]
    for a in range(rank):
        center[a] = 0.0
        for b in range(a):
            gram[a, b] = 0.0
        gram[a, a] = ridge
    pairs, shrink = particles.pairs, 1.0 / particles.unit[0]
    entry = pairs.first[user]
    while entry != NOTHING:
        item = pairs.items[entry]
        for a in range(rank):
            vector[a] = particles.item_factors[item, slots[item], a]
            center[a] += shrink * pairs.totals[entry] * vector[a]
        add_outer(gram, vector, float(pairs.plays[entry]))
        entry = pairs.following[entry]
    return ridge  # type: ignore[no-any-return]


@kernel
def score_items(particles: Particles, particle: int, work: Work, candidates: Items, scores: Vector, means: Vector) -> None:
    """Score the candidates, or all items, by one particle's item vectors: ⟨drawn, item⟩ and its mean ⟨center, item⟩."""
    center, drawn, unit = work.center, work.drawn, particles.unit[0]
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
        means[position] = unit * mean
        scores[position] = unit * score


@kernel
def learn_by_particles(
    particles: Particles, model: Model, work: Work, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    """Reweight, resample, and redraw the user and the item of one rating in every particle. Call `widen_unit` first."""
    value = reward / particles.unit[0]
    weigh(particles, model, work, user, item, value)
    resample(particles, model, work, random)
    learn_moving(particles, model, work, user, item, reward, value, random)


@kernel
def learn_moving(
    particles: Particles, model: Model, work: Work, user: int, item: int, reward: float, value: float, random: np.random.Generator
) -> None:
    """Add the rating to the sums over the user's past ratings, and redraw first the user, then the item."""
    gather(particles.item_factors, particles.item_slots, particles.rows, item, work.vectors)
    add_terms(work.sums, work.vectors, 1.0, value)
    move_user(particles, model, work, user, random)
    remember(particles.pairs, user, item, reward)
    settle_sums(particles, work, item)
    add_terms(particles.item_sums[item], work.vectors, 1.0, value)
    particles.updates[0] += 1
    move_item(particles, model, work, item, random)


@kernel
def learn_by_chains(
    particles: Particles, model: Model, work: Work, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    """Redraw the user and the item of one rating in every particle, without weights. Call `widen_unit` first."""
    value = reward / particles.unit[0]
    sum_all(particles, model, work, user)
    learn_moving(particles, model, work, user, item, reward, value, random)


@kernel
def sum_all(particles: Particles, model: Model, work: Work, user: int) -> None:
    """Each particle's sums over the user's past ratings, and their ridges, into the working arrays."""
    pairs, sums, vectors = particles.pairs, work.sums, work.vectors
    shrink = 1.0 / particles.unit[0]
    clear(sums)
    entry = pairs.first[user]
    while entry != NOTHING:
        gather(particles.item_factors, particles.item_slots, particles.rows, int(pairs.items[entry]), vectors)
        add_terms(sums, vectors, float(pairs.plays[entry]), shrink * pairs.totals[entry])
        entry = pairs.following[entry]
    for d in range(vectors.shape[1]):
        work.ridges[d] = model.noise**2 * particles.user_precisions[d]


@kernel
def weigh(particles: Particles, model: Model, work: Work, user: int, item: int, value: float) -> None:
    """Multiply each weight by the density of the rating given the particle's item vectors, with the user's vector integrated out.

    Leaves the results of `sum_all`.
    """
    sums, vectors = work.sums, work.vectors
    sum_all(particles, model, work, user)
    factorize_all(sums, work.ridges, work.factors, vectors.shape[0])
    gather(particles.item_factors, particles.item_slots, particles.rows, item, vectors)
    add_log_densities(sums, work.factors, model.noise, value, vectors, work.centers, particles.log_weights)
    normalize(particles.log_weights, work.weights)


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
    pairs, shrink = particles.pairs, 1.0 / particles.unit[0]
    entry = pairs.first[user]
    while entry != NOTHING:
        item = int(pairs.items[entry])
        settle_sums(particles, work, item)
        for position in range(changes.shape[0]):
            times = float(pairs.plays[entry]) if position < changes.shape[0] - rank else shrink * pairs.totals[entry]
            for d in range(n_particles):
                particles.item_sums[item, position, d] += times * changes[position, d]
        entry = pairs.following[entry]


@kernel
def move_item(particles: Particles, model: Model, work: Work, item: int, random: np.random.Generator) -> None:
    """Redraw the item's vector in each particle. If a rebuild is due, or rounding has damaged the sums, all sums are rebuilt first."""
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
    """Recompute the item sums from the ratings: one pass over all pairs, users and items."""
    particles.updates[1] = particles.updates[0]
    for item in range(particles.item_sums.shape[0]):
        clear(particles.item_sums[item])
        for d in range(particles.rows.size):
            particles.sum_slots[particles.rows[d], item] = d
    pairs, shrink = particles.pairs, 1.0 / particles.unit[0]
    for user in range(pairs.first.size):
        gather(particles.user_factors, particles.user_slots, particles.rows, user, work.vectors)
        entry = pairs.first[user]
        while entry != NOTHING:
            sums = particles.item_sums[pairs.items[entry]]
            add_terms(sums, work.vectors, float(pairs.plays[entry]), shrink * pairs.totals[entry])
            entry = pairs.following[entry]
