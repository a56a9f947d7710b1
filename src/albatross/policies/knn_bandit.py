"""Nearest neighbours with Thompson sampling: a strong baseline where no item is shown twice."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best, find_entries
from albatross.kernels.likes import Counts, count_common, draw_share, is_like, no_average
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.search.arranging import cut

NOT_DRAWN = -1.0


@dataclass(frozen=True)
class KNNBandit(Policy):
    """Shows what similar users liked; the similarity of each user is drawn again for every recommendation.

    Model: user u likes an item that user v liked with a probability that is specific to the pair. Of the n_v items that v liked, u liked
    c_uv. For the visiting user u

        s_v ~ Beta(1 + c_uv, 1 + n_v − c_uv)  for every user v        score_i = Σ s_v over the neighbours v who liked item i

    where the neighbours are the users with the largest draws. The mean is the same sum with the expectation of each draw.

    Symbols: n_neighbors k (none: everybody), `threshold` the least rating that is a like, `weighted` multiplies each s_v with v's rating.
    Ties, as between items that nobody liked, are broken at random.

    Cost: select O(n + Σ |L_i| over the items u liked and the candidates), L_i the users who liked item i. Without n_neighbors only users
    who liked a candidate are drawn: 20 µs a step on MovieLens 100K without repeats. With n_neighbors everybody who liked anything has to
    be drawn, 15 to 60 ns each: up to 60 µs a step there. Update O(|L_u| + |L_i|). Memory O(n + m + likes): c_uv is counted when u visits,
    not kept for n² pairs of users.

    Departures from the paper: it shows nothing twice; where something may be shown twice, u is a neighbour too, c_uu = n_u, and the score
    of an item that u has rated is multiplied with the share of likes among those ratings: without that, an item that others like would be
    shown again and again to a user who dislikes it. Without a threshold, a like is a rating above the mean of all ratings so far. Users
    who have liked nothing are never neighbours. A like counts once, however often it is repeated.

    Reference: Sanz-Cruzado, Castells and López, A Simple Multi-Armed Nearest-Neighbor Bandit for Interactive Recommendation, 2019.

    >>> from albatross import Agent
    >>> agent = Agent(KNNBandit(threshold=4), n_users=2, n_items=2)
    >>> agent.replay([0, 1, 1], [0, 0, 1], [5.0, 4.0, 5.0])
    >>> round(agent.select(user=0, candidates=[1]).mean, 4)  # (1 + 1) / (2 + 2): one of the two items user 1 liked
    0.5
    """

    n_neighbors: int | None = parameter(None, "number of neighbours; none: everybody (k)", at_least=1)
    threshold: float | None = parameter(None, "least rating that is a like; none: what is above the mean of all ratings so far")
    weighted: bool = parameter(False, "multiply each neighbour's like with the rating")

    def settings(self) -> "Settings":
        everybody = np.iinfo(np.int64).max
        return Settings(
            int(everybody if self.n_neighbors is None else self.n_neighbors),
            math.nan if self.threshold is None else self.threshold,
            self.weighted,
        )

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(no_pairs(n_users), no_pairs(n_items), np.zeros(n_users, np.int64), no_average())

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        room, order = np.zeros(n_users), np.zeros(n_users, np.int32)
        return Scratch(np.zeros(n_items, np.int32), np.zeros(n_users, np.int64), room, room.copy(), room.copy(), order)


class Settings(NamedTuple):
    n_neighbors: int
    threshold: float
    weighted: bool


class State(NamedTuple):
    likes: Pairs
    """What each user rated; the totals are numbers of likes."""
    likers: Pairs
    """Who liked each item: item by item, the totals are sums of the ratings that were likes."""
    n_likes: Counts
    """n_v"""
    average: Vector
    """The mean and the number of all ratings."""


class Scratch(NamedTuple):
    entries: Items
    """Per item: where among the pairs the visiting user's ratings of it are."""
    common: Counts
    """c_uv"""
    draws: Vector
    """s_v; zero for users who are not neighbours, `NOT_DRAWN` for those whose similarity was not needed yet."""
    expected: Vector
    """The means of the draws."""
    keys: Vector
    order: Items
    """Room to find the largest draws."""


@kernel
def draw_similarity(state: State, scratch: Scratch, other: int | np.uint32, random: np.random.Generator) -> None:
    """Draw how similar a user who liked something is to the visiting one."""
    common, n_likes = scratch.common[other], state.n_likes[other]
    scratch.draws[other] = draw_share(common, n_likes - common, random)
    scratch.expected[other] = (1.0 + common) / (2.0 + n_likes)


@kernel
def draw_neighbors(state: State, settings: Settings, scratch: Scratch, user: int, random: np.random.Generator) -> None:
    """Draw the similarity to the visiting user of everybody who liked anything, and keep the largest draws."""
    draws, expected = scratch.draws, scratch.expected
    n_drawn = 0
    for other in range(draws.size):
        draws[other] = expected[other] = 0.0
        if state.n_likes[other] > 0:
            draw_similarity(state, scratch, other, random)
            if other != user:
                scratch.keys[n_drawn] = -draws[other]
                scratch.order[n_drawn] = other
                n_drawn += 1
    if n_drawn > settings.n_neighbors:
        cut(scratch.keys, scratch.order, 0, n_drawn, settings.n_neighbors)
        for place in range(settings.n_neighbors, n_drawn):
            draws[scratch.order[place]] = expected[scratch.order[place]] = 0.0


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    likes, likers = state.likes, state.likers
    count_common(likes, likers, user, scratch.common)
    if settings.n_neighbors < scratch.draws.size:
        draw_neighbors(state, settings, scratch, user, random)
    else:
        scratch.draws[:] = NOT_DRAWN
    find_entries(likes, user, candidates, scratch.entries)
    n_candidates = candidates.size if candidates.size > 0 else likers.first.size
    for position in range(n_candidates):
        score, mean = 0.0, 0.0
        item = candidates[position] if candidates.size > 0 else position
        entry = likers.first[item]
        while entry != NOTHING:
            here = np.uint32(entry)  # unsigned: never counted from the end
            liker = np.uint32(likers.items[here])
            if scratch.draws[liker] == NOT_DRAWN:
                draw_similarity(state, scratch, liker, random)
            weight = likers.totals[here] / likers.plays[here] if settings.weighted else 1.0
            score += weight * scratch.draws[liker]
            mean += weight * scratch.expected[liker]
            entry = likers.following[here]
        own = scratch.entries[item]
        share = 1.0 if own == NOTHING else likes.totals[own] / likes.plays[own]
        slate.scores[position] = share * score
        slate.means[position] = share * mean
    position, _ = any_best(slate.scores, n_candidates, random)
    return position, math.nan


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    liked = is_like(state.average, settings.threshold, reward)
    entry = remember(state.likes, user, item, 1.0 if liked else 0.0)
    if liked:
        state.n_likes[user] += 1 if state.likes.totals[entry] == 1.0 else 0
        remember(state.likers, item, user, reward)
