"""An ensemble of Gibbs chains: Thompson sampling by picking one of them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.particles.filtering import follow_particle, learn_by_chains, score_items
from albatross.kernels.particles.particles import Model, Particles, Work, new_particles, new_work, widen_unit
from albatross.kernels.particles.slots import MOST_PARTICLES
from albatross.kernels.sampling import SYSTEMATIC
from albatross.kernels.search.scoring import best_position


@dataclass(frozen=True)
class Ensemble(Policy):
    """Runs many Gibbs chains over the factorization, and acts on a random one of them at each recommendation.

    Model: U_i ~ N(0, σ_U² I), V_j ~ N(0, σ_V² I), a rating is y ~ N(⟨U_i, V_j⟩, σ²). After a rating of item j by user i every chain
    takes two steps of a Gibbs sampler: it redraws U_i given its own item vectors, and then V_j given its own user vectors,

        U_i | V ~ N(μ_i, Λ_i⁻¹)        Λ_i = I/σ_U² + Σ V_j V_jᵀ/σ²        μ_i = Λ_i⁻¹ Σ y V_j/σ²

    over all ratings so far. To select, pick any chain, draw U_i anew given its item vectors, and show argmax ⟨U_i, V_j⟩.

    Symbols: n_chains D, rank k, noise σ (a standard deviation), user_scale σ_U, item_scale σ_V. Ties go to the first candidate.

    Cost: select O(|I_i| k² + |C| k), update O(D (|I_i| k² + k³)), I_i the distinct items the user has rated; memory O(D (n k + m k²)).

    Departures: this is the particle filter of PTS without weights and resampling. There, after resampling, particles share the rows that
    were not redrawn since; here chains are independent. Very large ratings are scaled as in PTS.

    Reference: Lu and Van Roy, Ensemble Sampling, 2017; the moves are those of Salakhutdinov and Mnih, Bayesian Probabilistic Matrix
    Factorization using Markov Chain Monte Carlo, 2008.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(Ensemble(n_chains=5, rank=2), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    n_chains: int = parameter(30, "number of chains (D)", at_least=1, at_most=MOST_PARTICLES)
    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    noise: float = parameter(0.5, "standard deviation of a rating around its mean (σ)", above=0)
    user_scale: float = parameter(1.0, "prior standard deviation of the user vectors (σ_U)", above=0)
    item_scale: float = parameter(1.0, "prior standard deviation of the item vectors (σ_V)", above=0)

    def settings(self) -> Model:
        spread = math.hypot(self.noise, math.sqrt(self.rank) * self.user_scale * self.item_scale)
        return Model(self.noise, self.item_scale**-2, spread, SYSTEMATIC)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        shape = (self.n_chains, self.rank)
        users = streams("user factors").normal(0.0, self.user_scale, (n_users, *shape))
        items = streams("item factors").normal(0.0, self.item_scale, (n_items, *shape))
        return State(new_particles(np.full(self.n_chains, self.user_scale**-2), users, items))

    def scratch(self, n_users: int, n_items: int) -> Work:
        return new_work(self.n_chains, self.rank)


class State(NamedTuple):
    chains: Particles


@implements(select, State)
def choose_item(
    state: State, settings: Model, scratch: Work, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    chain = follow_particle(state.chains, settings, scratch, user, random)
    score_items(state.chains, chain, scratch, candidates, slate.scores, slate.means)
    n_candidates = candidates.size if candidates.size > 0 else state.chains.item_factors.shape[0]
    return best_position(slate.scores, n_candidates), math.nan


@implements(update, State)
def learn_rating(state: State, settings: Model, scratch: Work, user: int, item: int, reward: float, random: np.random.Generator) -> None:
    widen_unit(state.chains, settings, reward)
    learn_by_chains(state.chains, settings, scratch, user, item, reward, random)
