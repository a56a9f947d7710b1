"""Latent bandits: UCB over users who may belong to the same class."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.parameters import parameter
from albatross.core.policy import Need, Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.likes import Counts
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember

AGNOSTIC, USER, KNOWN = range(3)
VARIANTS = {"agnostic": AGNOSTIC, "user": USER, "known": KNOWN}
CLASS_ROUNDS = 50
"""Rounds of moving class centres, at most."""


@dataclass(frozen=True)
class LatentUCB(Policy):
    """Pools the ratings of users whose confidence intervals do not contradict each other, and shows the item with the best upper bound.

    Model: users fall into classes with the same item means. After N_b ratings of user b, N_ab of them of item a, the mean lies in

        S_ab = mean_ab ± R √(2 log(N_b³) / N_ab)

    `agnostic` (A-UCB) pools b with every user b' for whom, at every item both have rated, S_ab' intersects S_ab and lies in S_ab widened
    around its middle by the factor max(√(2γ log N_b' / log N_b), 1), and shows the item with the largest pooled
    mean + R √(2 log(N³) / N_a); one that no pooled user has rated has +∞. `user` pools nobody (UCB-on-B). `known` (Multiple-K) is
    an oracle that is told the item means of K classes: classes whose means lie in every interval of b are admissible; it shows the best
    item of the admissible class whose best mean is largest, or the item shown least if none is.

    Symbols: imbalance γ (how unequally users arrive, 1 if equally), `scale` R in units of the range of all ratings seen (½ in theory),
    n_classes K. Ties are broken at random. `known` scores an item by its mean in that class.

    Cost: select O(n + Σ |U_i| over the items u has rated and over the candidates), U_i the users who rated item i; update
    O(|I_u| + |U_i|). Memory O(n + m K + distinct pairs). `known`: select O((|I_u| + |C|) K).

    Departures from the paper: ratings are not rescaled to [0, 1], R carries their range. The paper's exact A-UCB maximizes over groups of
    users, which is hard. This is the average over compatible users, which the authors used in experiments. In a world without classes,
    they are found by k-means on the true means, from centres that are far from each other.

    Reference: Maillard and Mannor, Latent Bandits, 2014.

    >>> from albatross import Agent
    >>> agent = Agent(LatentUCB(scale=0.5), n_users=2, n_items=2)
    >>> agent.replay([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0])
    >>> round(agent.select(user=0).bonus, 4)  # ½ √(2 log 4³ / 2), both users pooled
    1.0197
    """

    variant: str = parameter("agnostic", "which users are pooled: compatible ones, none, or known classes", choices=tuple(VARIANTS))
    scale: float = parameter(0.5, "multiplier of the confidence width, in units of the range of ratings (R)", at_least=0)
    imbalance: float = parameter(1.0, "how many times as often as others a user may come (γ)", at_least=1)
    n_classes: int = parameter(5, "number of classes, if they are known (K)", at_least=1)

    @property
    def needs(self) -> tuple[Need, ...]:  # type: ignore[override]
        """Only the variant `known` needs the classes."""
        return (Need.TRUTH,) if self.variant == "known" else ()

    def settings(self) -> "Settings":
        return Settings(VARIANTS[self.variant], self.scale, self.imbalance)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        classes = np.zeros((n_items, 1))
        if truth is not None and self.variant == "known":
            known = class_means(truth.means, self.n_classes)[:n_items]
            classes = np.zeros((n_items, known.shape[1]))
            classes[: len(known)] = known
        return State(no_pairs(n_users), no_pairs(n_items), np.zeros(n_users, np.int64), np.array([np.inf, -np.inf]), classes)

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(np.zeros(n_users, np.bool_), np.zeros(max(n_items, self.n_classes)))


def class_means(means: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """The item means of so many classes of users, one column per class: k-means over the rows of a table users × items."""
    if not np.isfinite(means).all():
        raise InvalidInput("latent-ucb: this world does not know every mean, so it has no classes; accepted: a synthetic world")
    centers = means[:1]
    for _ in range(min(n_classes, len(means)) - 1):
        nearest = ((means[:, np.newaxis] - centers) ** 2).sum(axis=2).min(axis=1)
        centers = np.vstack([centers, means[nearest.argmax()]])
    for _ in range(CLASS_ROUNDS):
        members = ((means[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
        moved = np.array([means[members == c].mean(axis=0) if (members == c).any() else centers[c] for c in range(len(centers))])
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers.T.copy()


class Settings(NamedTuple):
    variant: int
    scale: float
    imbalance: float


class State(NamedTuple):
    ratings: Pairs
    raters: Pairs
    """The same pairs, item by item."""
    visits: Counts
    """N_b"""
    extremes: Vector
    """The smallest and the largest rating seen."""
    classes: Matrix
    """Per item its mean in each class, if these are known."""


class Scratch(NamedTuple):
    pooled: NDArray[np.bool_]
    """Per user: whether they are pooled with the visiting user."""
    room: Vector
    """Per class: whether it is admissible, as 1 or 0; or, per item, how often the visiting user rated it."""


@kernel
def half_width(state: State, settings: Settings, logarithm: float, plays: int) -> float:
    """Of the interval around a mean of so many ratings, from the logarithm of the number of all."""
    spread = max(state.extremes[1] - state.extremes[0], 0.0)
    return float(settings.scale * spread * math.sqrt(6.0 * logarithm / plays))


@kernel
def find_compatible(state: State, settings: Settings, pooled: NDArray[np.bool_], user: int) -> int:
    """Mark the users whose ratings are pooled with those of the user; returns the number of pooled ratings."""
    ratings, raters, visits = state.ratings, state.raters, state.visits
    for index in range(pooled.size):
        pooled[index] = settings.variant == AGNOSTIC and visits[index] > 0
    own = math.log(max(visits[user], 1))
    entry = ratings.first[user] if settings.variant == AGNOSTIC else NOTHING
    while entry != NOTHING:
        mean, plays = ratings.totals[entry] / ratings.plays[entry], ratings.plays[entry]
        width = half_width(state, settings, own, plays)
        other_entry = raters.first[ratings.items[entry]]
        while other_entry != NOTHING:
            here = np.uint32(other_entry)  # unsigned: never counted from the end
            other = np.uint32(raters.items[here])
            if pooled[other]:
                theirs = math.log(visits[other])
                distance = abs(raters.totals[here] / raters.plays[here] - mean)
                reach = half_width(state, settings, theirs, raters.plays[here])
                # Widened by √(2γ log N' / log N), without dividing by the logarithm of one.
                widened = half_width(state, settings, max(2.0 * settings.imbalance * theirs, own), plays)
                pooled[other] = distance <= width + reach and distance + reach <= widened
            other_entry = raters.following[here]
        entry = ratings.following[entry]
    pooled[user] = True
    total = 0
    for index in range(pooled.size):
        total += visits[index] if pooled[index] else 0
    return total


@kernel
def score_pooled(state: State, settings: Settings, pooled: NDArray[np.bool_], total: int, candidates: Items, slate: Slate) -> None:
    """Upper bounds from the ratings of pooled users; the mean of an item without any is the middle of the scale."""
    raters = state.raters
    logarithm = math.log(max(total, 1))
    middle = 0.5 * (state.extremes[0] + state.extremes[1]) if state.extremes[0] <= state.extremes[1] else 0.0
    n_candidates = candidates.size if candidates.size > 0 else raters.first.size
    for position in range(n_candidates):
        plays, sum_of_ratings = 0, 0.0
        entry = raters.first[candidates[position] if candidates.size > 0 else position]
        while entry != NOTHING:
            here = np.uint32(entry)
            if pooled[np.uint32(raters.items[here])]:
                plays += raters.plays[here]
                sum_of_ratings += raters.totals[here]
            entry = raters.following[here]
        if plays > 0:
            slate.means[position] = sum_of_ratings / plays
            slate.scores[position] = slate.means[position] + half_width(state, settings, logarithm, plays)
        else:
            slate.means[position], slate.scores[position] = middle, math.inf


@kernel
def score_known(state: State, settings: Settings, room: Vector, user: int, candidates: Items, slate: Slate) -> None:
    """Means in the admissible class with the best item; if no class is admissible, items with fewer ratings of the user score higher."""
    ratings, classes = state.ratings, state.classes
    n_classes = classes.shape[1]
    room[:n_classes] = 1.0
    logarithm = math.log(max(state.visits[user], 1))
    entry = ratings.first[user]
    while entry != NOTHING:
        mean = ratings.totals[entry] / ratings.plays[entry]
        width = half_width(state, settings, logarithm, ratings.plays[entry])
        for c in range(n_classes):
            if abs(classes[ratings.items[entry], c] - mean) > width:
                room[c] = 0.0
        entry = ratings.following[entry]
    n_candidates = candidates.size if candidates.size > 0 else classes.shape[0]
    best, promised = NOTHING, -math.inf
    for c in range(n_classes):
        for position in range(n_candidates if room[c] > 0.0 else 0):
            if classes[candidates[position] if candidates.size > 0 else position, c] > promised:
                best, promised = c, classes[candidates[position] if candidates.size > 0 else position, c]
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        slate.means[position] = classes[item, best if best != NOTHING else 0]
        slate.scores[position] = slate.means[position]
    if best == NOTHING:
        room[:] = 0.0
        entry = ratings.first[user]
        while entry != NOTHING:
            room[ratings.items[entry]] = ratings.plays[entry]
            entry = ratings.following[entry]
        for position in range(n_candidates):
            slate.scores[position] = -room[candidates[position] if candidates.size > 0 else position]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    if settings.variant == KNOWN:
        score_known(state, settings, scratch.room, user, candidates, slate)
    else:
        total = find_compatible(state, settings, scratch.pooled, user)
        score_pooled(state, settings, scratch.pooled, total, candidates, slate)
    return any_best(slate.scores, candidates.size if candidates.size > 0 else state.raters.first.size, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    remember(state.ratings, user, item, reward)
    remember(state.raters, item, user, reward)
    state.visits[user] += 1
    state.extremes[0] = min(state.extremes[0], reward)
    state.extremes[1] = max(state.extremes[1], reward)
