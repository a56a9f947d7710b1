"""Particle Thompson sampling for matrix factorization."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Belief, Items, Slate, believe, implements, select, suppose, update, width
from albatross.kernels.particles.filtering import follow_particle, learn_by_particles, score_items
from albatross.kernels.particles.mixture import describe_mixture, follow_supposing, width_of_mixture
from albatross.kernels.particles.particles import Model, Particles, Work, new_particles, new_work, widen_unit
from albatross.kernels.particles.slots import MOST_PARTICLES
from albatross.kernels.sampling import RESAMPLERS
from albatross.kernels.search.scoring import best_position


@dataclass(frozen=True)
class PTS(Policy):
    """Thompson sampling with a particle filter; each particle is a whole factorization drawn from the posterior.

    Model: U_i ~ N(0, σ_U² I), V_j ~ N(0, σ_V² I), a rating is y ~ N(⟨U_i, V_j⟩, σ²). Given a particle's item vectors the user's is

        U_i | V ~ N(μ_i, Λ_i⁻¹)        Λ_i = I/σ_U² + Σ V_j V_jᵀ/σ²        μ_i = Λ_i⁻¹ Σ y V_j/σ²

    over the user's ratings, and the same with users and items exchanged. To select, draw a particle by its weight and U_i anew, and
    show argmax ⟨U_i, V_j⟩. After a rating each particle is weighted with its density N(⟨μ_i, V_j⟩, σ² + V_jᵀ Λ_i⁻¹ V_j) before that rating,
    a new generation is drawn, and each particle redraws first U_i and then V_j given all else.

    Symbols: n_particles D, rank k, noise σ (a standard deviation), user_scale σ_U, item_scale σ_V.

    Cost: select O(|I_i| k² + |C| k), update O(D (|I_i| k² + k³)), I_i the distinct items the user has rated and C the candidates;
    a particle that replaces another costs n + 2m copied numbers of two bytes. Memory O(D (n k + m k²)). Nothing grows with time
    or with an item's popularity: the sums of each item are kept, and when U_i is redrawn its terms in them are exchanged.

    Departures from the paper: `systematic` resampling, which loses fewer particles, is the default; the paper's is `multinomial`; `ess`
    resamples only while fewer than half of the particles count, and keeps the weights otherwise. All statistics are those of the current
    vectors. Some implementations keep sums of older vectors, which are not those of the model. After a rating of more than 1024 prior
    standard deviations the ratings are divided by a power of two, so that the largest is 4 of them: otherwise the sums overflow.

    Reference: Kawale, Bui, Kveton, Tran-Thanh and Chawla, Efficient Thompson Sampling for Online Matrix-Factorization Recommendation,
    2015. US patent 10332015 describes the method: check it before commercial use.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(PTS(n_particles=10, rank=2), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    n_particles: int = parameter(30, "number of particles (D)", at_least=1, at_most=MOST_PARTICLES)
    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    noise: float = parameter(0.5, "standard deviation of a rating around its mean (σ)", above=0)
    user_scale: float = parameter(1.0, "prior standard deviation of the user vectors (σ_U)", above=0)
    item_scale: float = parameter(1.0, "prior standard deviation of the item vectors (σ_V)", above=0)
    resampler: str = parameter("systematic", "how a new generation of particles is drawn", choices=tuple(RESAMPLERS))

    def settings(self) -> Model:
        spread = math.hypot(self.noise, math.sqrt(self.rank) * self.user_scale * self.item_scale)
        return Model(self.noise, self.item_scale**-2, spread, RESAMPLERS[self.resampler])

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        shape = (self.n_particles, self.rank)
        users = streams("user factors").normal(0.0, self.user_scale, (n_users, *shape))
        items = streams("item factors").normal(0.0, self.item_scale, (n_items, *shape))
        return State(new_particles(np.full(self.n_particles, self.user_scale**-2), users, items))

    def scratch(self, n_users: int, n_items: int) -> Work:
        return new_work(self.n_particles, self.rank)


class State(NamedTuple):
    particles: Particles


@implements(select, State)
def choose_item(
    state: State, settings: Model, scratch: Work, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    particle = follow_particle(state.particles, settings, scratch, user, random)
    score_items(state.particles, particle, scratch, candidates, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.particles.item_factors.shape[0]
    return best_position(slate.scores, n_candidates), math.nan


@implements(suppose, State)
def choose_supposing(
    state: State,
    settings: Model,
    scratch: Work,
    user: int,
    candidates: Items,
    items: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    if items.size == 0:
        particle = follow_particle(state.particles, settings, scratch, user, random)
    else:
        particle = follow_supposing(state.particles, settings, scratch, user, items, rewards, random)
    score_items(state.particles, particle, scratch, candidates, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.particles.item_factors.shape[0]
    return best_position(slate.scores, n_candidates), math.nan


@implements(believe, State)
def belief_about_user(state: State, settings: Model, scratch: Work, user: int, belief: Belief) -> int:
    return describe_mixture(state.particles, settings, scratch, user, belief)


@implements(width, State)
def width_of_item(state: State, settings: Model, scratch: Work, user: int, item: int, more: int) -> float:
    return width_of_mixture(state.particles, settings, scratch, user, item, more)


@implements(update, State)
def learn_rating(state: State, settings: Model, scratch: Work, user: int, item: int, reward: float, random: np.random.Generator) -> None:
    widen_unit(state.particles, settings, reward)
    learn_by_particles(state.particles, settings, scratch, user, item, reward, random)
