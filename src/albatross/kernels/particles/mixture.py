"""The joint belief of the particles: moments of their mixture, and a draw with supposed ratings."""

import math

import numpy as np

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector, add_outer, dot, factorize, gram_of_columns, invert_lower, solve_lower, solve_upper
from albatross.kernels.operations import Belief, Items
from albatross.kernels.particles.filtering import pick_particle, sum_ratings
from albatross.kernels.particles.particles import Model, Particles, Work


@kernel
def follow_supposing(
    particles: Particles, model: Model, work: Work, user: int, items: Items, rewards: Vector, random: np.random.Generator
) -> int:
    """Like `follow_particle`, with these ratings too. A NaN rating is as predicted: it narrows the draw and leaves its mean."""
    gram, factor, vector, center, drawn = work.gram, work.factor, work.vector, work.center, work.drawn
    particle = pick_particle(particles, work, random)
    ridge = sum_ratings(particles, model, work, user, particle)
    for position in range(items.size):
        if not math.isnan(rewards[position]):
            vector_of(particles, particle, items[position], vector)
            add_outer(gram, vector, 1.0)
            for a in range(center.size):
                center[a] += rewards[position] / particles.unit[0] * vector[a]
    factorize(gram, factor, 0.5 * ridge)
    solve_lower(factor, center, center)
    solve_upper(factor, center, center)
    for position in range(items.size):
        if math.isnan(rewards[position]):
            vector_of(particles, particle, items[position], vector)
            add_outer(gram, vector, 1.0)
    factorize(gram, factor, 0.5 * ridge)
    for a in range(center.size):
        drawn[a] = model.noise * random.standard_normal()
    solve_upper(factor, drawn, drawn)
    for a in range(center.size):
        drawn[a] += center[a]
    return particle


@kernel
def vector_of(particles: Particles, particle: int, item: int, vector: Vector) -> None:
    """An item's vector in one particle."""
    slot = particles.item_slots[particles.rows[particle], item]
    for a in range(vector.size):
        vector[a] = particles.item_factors[item, slot, a]


@kernel
def place_in(particles: Particles, model: Model, work: Work, user: int, particle: int) -> None:
    """The user given a particle's item vectors: μ in `center`, the Cholesky factor of σ² Λ in `factor`."""
    ridge = sum_ratings(particles, model, work, user, particle)
    factorize(work.gram, work.factor, 0.5 * ridge)
    solve_lower(work.factor, work.center, work.center)
    solve_upper(work.factor, work.center, work.center)


@kernel
def describe_mixture(particles: Particles, model: Model, work: Work, user: int, belief: Belief) -> int:
    """Mean and covariance of the user's vector over all particles: Σ w (σ² Λ⁻¹ + μ μᵀ) − m mᵀ, m = Σ w μ."""
    rank, unit = work.center.size, particles.unit[0]
    if belief.center.size < rank:
        return rank
    center, covariance = belief.center[:rank], belief.covariance[:rank, :rank]
    center.fill(0.0)
    covariance[:] = 0.0
    belief.radius[0] = 1.0
    for particle in range(work.weights.size):
        weight = math.exp(particles.log_weights[particle])
        place_in(particles, model, work, user, particle)
        invert_lower(work.factor, work.gram)
        gram_of_columns(work.gram, (unit * model.noise) ** 2, work.factor)
        for a in range(rank):
            center[a] += weight * unit * work.center[a]
            for b in range(rank):
                covariance[a, b] += weight * (work.factor[a, b] + unit * work.center[a] * unit * work.center[b])
    for a in range(rank):
        for b in range(rank):
            covariance[a, b] -= center[a] * center[b]
    return rank


@kernel
def width_of_mixture(particles: Particles, model: Model, work: Work, user: int, item: int, more: int) -> float:
    """The standard deviation of ⟨U_i, V_j⟩ over all particles; after n more ratings, for a normal distribution, v / (1 + n v / σ²)."""
    mean, square, noise = 0.0, 0.0, model.noise**2
    for particle in range(work.weights.size):
        weight = math.exp(particles.log_weights[particle])
        place_in(particles, model, work, user, particle)
        vector_of(particles, particle, item, work.vector)
        expected = dot(work.center, work.vector)
        solve_lower(work.factor, work.vector, work.vector)
        mean += weight * expected
        square += weight * (noise * dot(work.vector, work.vector) + expected * expected)
    variance = max(square - mean * mean, 0.0)
    return particles.unit[0] * math.sqrt(variance / (1.0 + more * variance / noise))  # type: ignore[no-any-return]
