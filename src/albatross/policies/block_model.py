"""Types of users and types of items: a surrogate of Dabeer's adaptive collaborative filtering."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.counting import any_best
from albatross.kernels.fitting.blocks import Blocks, Room, learn_like
from albatross.kernels.likes import is_like, no_average
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import no_pairs
from albatross.kernels.sampling import pick

THOMPSON, GREEDY = range(2)
EXPLORERS = {"thompson": THOMPSON, "greedy": GREEDY}
FIRST_ODDS = 2.0
"""Prior odds of one random type against each other type: with equal priors, all types would stay equal."""


@dataclass(frozen=True)
class BlockModel(Policy):
    """Sorts users and items into a few types each, and shows items of the types that users of this type like.

    Model: user u has a type g_u out of K_u, item i a type h_i out of K_h, all equally likely, and u likes i with probability θ_gh, uniform
    a priori. The posterior is approximated by a product: q_u over types of users, q_i over types of items, and θ_gh ~ Beta(1 + a_gh, 1 +
    b_gh) with a and b the expected numbers of likes and of other ratings. A rating refits its user, and then its item, by

        q_u(g) ∝ exp Σ_i Σ_h q_i(h) (R_ui E log θ_gh + (N_ui − R_ui) E log (1 − θ_gh))

    over the items u rated N_ui times and liked R_ui times; the same for items. The mean of an item is Σ q_u(g) q_i(h) E θ_gh.

    Symbols: n_user_types K_u, n_item_types K_h, both known beforehand; `threshold` the least rating that is a like. `thompson` draws a type
    for the user and for every candidate, and θ, and shows the largest; `greedy` shows the largest expectation, with probability ε any item.
    Ties are broken at random.

    Cost: select O(|C| (K_u + K_h)), update O(|I_u| (K_u + K_h) + K_u K_h); memory O((n + m) (K_u + K_h) + distinct pairs).

    Types that start equal would stay equal. So one random type of each user and item is twice as likely a priori.

    Departures from the paper: this is not Dabeer's algorithm but a surrogate with the same information. Dabeer plans in a Markov decision
    process. This policy has the same model of types, with known numbers of types, and explores as above.

    Reference: Dabeer, Adaptive Collaborating Filtering: The Low Noise Regime, 2013, for the model; Beal, Variational Algorithms for
    Approximate Bayesian Inference, 2003, for the updates.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Bernoulli
    >>> recording = simulate(BlockModel(), Bernoulli(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.7 * recording.pseudo_regret[:100].mean())
    True
    """

    needs: ClassVar[tuple[Need, ...]] = (Need.CLASSES,)

    n_user_types: int = parameter(5, "number of types of users (K_u)", at_least=1)
    n_item_types: int = parameter(5, "number of types of items (K_h)", at_least=1)
    threshold: float | None = parameter(None, "least rating that is a like; none: what is above the mean of all ratings so far")
    explorer: str = parameter("greedy", "how it explores", choices=tuple(EXPLORERS))
    exploration: float = parameter(0.05, "probability of a random item with the greedy explorer (ε)", at_least=0, at_most=1)

    def settings(self) -> "Settings":
        threshold = math.nan if self.threshold is None else self.threshold
        return Settings(EXPLORERS[self.explorer], self.exploration, threshold)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        users = first_types(streams("types of users"), n_users, self.n_user_types)
        items = first_types(streams("types of items"), n_items, self.n_item_types)
        blocks = Blocks(
            user_types=users,
            item_types=items,
            user_guesses=np.log(users),
            item_guesses=np.log(items),
            item_sums=np.zeros((n_items, self.n_user_types, 2)),
            likes=np.zeros((self.n_user_types, self.n_item_types, 2)),
            pairs=no_pairs(n_users),
        )
        return State(blocks, no_average())

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        shape = (self.n_user_types, self.n_item_types)
        room = Room(np.zeros((*shape, 2)), np.zeros((self.n_item_types, 2)), np.zeros(max(shape)))
        return Scratch(room, np.zeros(shape), np.zeros(self.n_item_types))


def first_types(random: np.random.Generator, n_rows: int, n_types: int) -> Matrix:
    """Probabilities that favour one type each."""
    odds = np.ones((n_rows, n_types))
    odds[np.arange(n_rows), random.integers(n_types, size=n_rows)] = FIRST_ODDS
    odds /= odds.sum(axis=1, keepdims=True)
    return odds


class Settings(NamedTuple):
    explorer: int
    exploration: float
    threshold: float


class State(NamedTuple):
    blocks: Blocks
    average: Vector
    """The mean and the number of all ratings."""


class Scratch(NamedTuple):
    room: Room
    drawn: NDArray[np.float64]
    """θ as drawn."""
    liking: Vector
    """Per type of item: how much the user is expected to like it."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    blocks, liking, drawn = state.blocks, scratch.liking, scratch.drawn
    n_user_types, n_item_types = drawn.shape
    for h in range(n_item_types):
        liking[h] = 0.0
        for g in range(n_user_types):
            others, likes = max(blocks.likes[g, h, 0], 0.0), max(blocks.likes[g, h, 1], 0.0)
            liking[h] += blocks.user_types[user, g] * (1.0 + likes) / (2.0 + likes + others)
            if settings.explorer == THOMPSON:
                drawn[g, h] = random.beta(1.0 + likes, 1.0 + others)
    kind = pick(blocks.user_types[user], 1.0 - random.random()) if settings.explorer == THOMPSON else 0
    n_candidates = candidates.size if candidates.size > 0 else blocks.item_types.shape[0]
    for position in range(n_candidates):
        types = blocks.item_types[candidates[position] if candidates.size > 0 else position]
        mean = 0.0
        for h in range(n_item_types):
            mean += types[h] * liking[h]
        slate.means[position] = slate.scores[position] = mean
        if settings.explorer == THOMPSON:
            slate.scores[position] = drawn[kind, pick(types, 1.0 - random.random())]
    best, share = any_best(slate.scores, n_candidates, random)
    if settings.explorer == THOMPSON:
        return best, math.nan
    position = int(random.random() * n_candidates) if random.random() < settings.exploration else best
    greedy = share if slate.scores[position] == slate.scores[best] else 0.0
    return position, settings.exploration / n_candidates + (1.0 - settings.exploration) * greedy


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    learn_like(state.blocks, scratch.room, user, item, is_like(state.average, settings.threshold, reward))
