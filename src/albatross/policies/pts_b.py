"""Particle Thompson sampling that also learns the variance of user vectors."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Belief, Items, Slate, believe, implements, select, suppose, update, width
from albatross.kernels.pairs import NOTHING
from albatross.kernels.particles.filtering import follow_particle, learn_by_particles, score_items
from albatross.kernels.particles.mixture import describe_mixture, follow_supposing, width_of_mixture
from albatross.kernels.particles.particles import Model, Particles, Work, new_particles, new_work, widen_unit
from albatross.kernels.particles.slots import MOST_PARTICLES, gather
from albatross.kernels.sampling import RESAMPLERS, inherit
from albatross.kernels.search.scoring import best_position


@dataclass(frozen=True)
class PTSB(Policy):
    """Particle Thompson sampling in which each particle also samples the variance of user vectors from its posterior.

    Model: as PTS, U_i ~ N(0, σ_U² I), V_j ~ N(0, σ_V² I), y ~ N(⟨U_i, V_j⟩, σ²), with 1/σ_U² ~ Gamma(shape a, rate b) unknown,
    one value per particle. After U_i and V_j each particle redraws it given its user vectors,

        1/σ_U² | U ~ Gamma(a + n k/2, rate b + Σ |U_i|²/2)

    Symbols: n_particles D, rank k, noise σ (a standard deviation), item_scale σ_V, shape a, rate b.

    Cost: that of PTS, and O(D k) per update.

    Departures from the paper: as in PTS. The sum is over the n users who have rated something: a user who has not is integrated out
    (the paper keeps a draw of each, which ties σ_U to where it started), so nothing depends on how many users there is room for.

    Reference: Kawale, Bui, Kveton, Tran-Thanh and Chawla, Efficient Thompson Sampling for Online Matrix-Factorization Recommendation,
    2015. US patent 10332015 describes the method: check it before commercial use.

    >>> from albatross import Agent
    >>> agent = Agent(PTSB(n_particles=10, rank=2), n_users=3, n_items=4, seed=0)
    >>> agent.replay([0, 1, 2] * 20, [0, 1, 2] * 20, [5.0, 4.0, 3.0] * 20)
    >>> round(agent.select(user=0, candidates=[0]).mean)
    5
    """

    n_particles: int = parameter(30, "number of particles (D)", at_least=1, at_most=MOST_PARTICLES)
    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    noise: float = parameter(0.5, "standard deviation of a rating around its mean (σ)", above=0)
    shape: float = parameter(2.0, "prior of 1/σ_U²: shape of the Gamma distribution (a)", above=0)
    rate: float = parameter(0.5, "prior of 1/σ_U²: rate of the Gamma distribution (b)", above=0)
    item_scale: float = parameter(1.0, "prior standard deviation of the item vectors (σ_V)", above=0)
    resampler: str = parameter("systematic", "how a new generation of particles is drawn", choices=tuple(RESAMPLERS))

    def settings(self) -> "Settings":
        spread = math.hypot(self.noise, math.sqrt(self.rank * self.rate / self.shape) * self.item_scale)
        return Settings(Model(self.noise, self.item_scale**-2, spread, RESAMPLERS[self.resampler]), self.shape, self.rate)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        precisions = streams("user precisions").gamma(self.shape, 1.0 / self.rate, self.n_particles)
        users = streams("user factors").standard_normal((n_users, self.n_particles, self.rank))
        items = streams("item factors").normal(0.0, self.item_scale, (n_items, self.n_particles, self.rank))
        users /= np.sqrt(precisions)[:, np.newaxis]
        return State(new_particles(precisions, users, items), np.zeros(self.n_particles), np.zeros(1, np.int64))

    def scratch(self, n_users: int, n_items: int) -> Work:
        return new_work(self.n_particles, self.rank)


class Settings(NamedTuple):
    model: Model
    shape: float
    rate: float


class State(NamedTuple):
    particles: Particles
    square_norms: Vector
    """Per particle Σ |U_i|² over the users who have rated something."""
    n_raters: NDArray[np.int64]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Work, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    particle = follow_particle(state.particles, settings.model, scratch, user, random)
    score_items(state.particles, particle, scratch, candidates, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.particles.item_factors.shape[0]
    return best_position(slate.scores, n_candidates), math.nan


@implements(suppose, State)
def choose_supposing(
    state: State,
    settings: Settings,
    scratch: Work,
    user: int,
    candidates: Items,
    items: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    if items.size == 0:
        particle = follow_particle(state.particles, settings.model, scratch, user, random)
    else:
        particle = follow_supposing(state.particles, settings.model, scratch, user, items, rewards, random)
    score_items(state.particles, particle, scratch, candidates, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.particles.item_factors.shape[0]
    return best_position(slate.scores, n_candidates), math.nan


@implements(believe, State)
def belief_about_user(state: State, settings: Settings, scratch: Work, user: int, belief: Belief) -> int:
    return describe_mixture(state.particles, settings.model, scratch, user, belief)


@implements(width, State)
def width_of_item(state: State, settings: Settings, scratch: Work, user: int, item: int, more: int) -> float:
    return width_of_mixture(state.particles, settings.model, scratch, user, item, more)


@implements(update, State)
def learn_rating(state: State, settings: Settings, scratch: Work, user: int, item: int, reward: float, random: np.random.Generator) -> None:
    particles, rank = state.particles, scratch.vectors.shape[0]
    is_new = particles.pairs.first[user] == NOTHING
    ratio = widen_unit(particles, settings.model, reward)
    for d in range(state.square_norms.size):
        state.square_norms[d] *= ratio * ratio
    learn_by_particles(particles, settings.model, scratch, user, item, reward, random)
    state.n_raters[0] += 1 if is_new else 0
    inherit(state.square_norms, scratch.ancestors, scratch.copy)
    for a in range(rank):
        for d in range(state.square_norms.size):
            # A user who was moved stands in the slots of the particles' own numbers; one without ratings did not count before.
            change = particles.user_factors[user, d, a] ** 2 if is_new else scratch.changes[a * (a + 3) // 2, d]
            state.square_norms[d] += change
    if particles.updates[1] == particles.updates[0]:
        sum_square_norms(state, scratch)
    shape = settings.shape + 0.5 * rank * state.n_raters[0]
    for d in range(state.square_norms.size):
        rate = settings.rate + 0.5 * max(state.square_norms[d], 0.0)
        particles.user_precisions[d] = random.standard_gamma(shape) / rate


@kernel
def sum_square_norms(state: State, scratch: Work) -> None:
    """Recompute the sum of norms whenever item sums are recomputed: both collect the same rounding errors."""
    particles, vectors = state.particles, scratch.vectors
    for d in range(state.square_norms.size):
        state.square_norms[d] = 0.0
    for user in range(particles.pairs.first.size):
        if particles.pairs.first[user] != NOTHING:
            gather(particles.user_factors, particles.user_slots, particles.rows, user, vectors)
            for a in range(vectors.shape[0]):
                for d in range(state.square_norms.size):
                    state.square_norms[d] += vectors[a, d] * vectors[a, d]
