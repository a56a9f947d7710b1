"""Collaborative-Greedy: neighbours found by letting all users rate the same items."""

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
from albatross.kernels.counting import any_best, find_entries
from albatross.kernels.likes import Counts, is_like, no_average
from albatross.kernels.linear import Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember

VARIANTS = ("norepeat", "repeat")
ALONE, TOGETHER, GREEDY = range(3)
"""Kinds of steps: a random item, the next item that all users rate, or the item that neighbours like best."""
SHOWN_BEFORE = 2.0
"""Penalty on the score of an item that must not be shown again: shares lie between 0 and 1."""


@dataclass(frozen=True)
class CollaborativeGreedy(Policy):
    """Lets all users rate the same items sometimes, and otherwise shows what users with the same opinions on those items liked.

    Model: a rating is a like, +1, or not, −1. Items have a random order. At the t-th visit of a user one of n

        with probability n^−α                  any item the user has not rated
        with probability t^−α                  the first item in that order the user has not rated: joint exploration
        else                                   argmax p_ui, the share of likes among the neighbours' ratings of item i, ½ without any

    Neighbours of u are the users v with ⟨Y_u, Y_v⟩ ≥ θ |Y_u ∩ Y_v|, where Y are the ratings of joint exploration and the right side counts
    the items both rated in it.

    Symbols: decay α, agreement θ, `threshold` the least rating that is a like; n counts the users met. `norepeat` shows no item twice as
    long as there is another one, as published; `repeat` may exploit an item again, and u is then its own neighbour. Scores are the shares,
    in steps that explore too; less 2 for an item that is not to be shown again. Ties are broken at random.

    Cost: select O(n + Σ |J_i| over what u rated in joint exploration + Σ |U_i| over the candidates), J_i and U_i the users who rated item i
    in joint exploration or at all; update O(|I_u| + |U_i|). Memory O(n + m + distinct pairs): agreement is counted when u visits, not kept
    for n² pairs of users.

    Departures from the paper: it serves all users in each round and flips one coin per round. Here one user arrives per step, the coin is
    flipped per step, and t counts the user's own visits. The coin of the next step is flipped in `update`, so that the state depends on
    the ratings alone. Where no item is left to explore, it exploits.

    Reference: Bresler, Chen and Shah, A Latent Source Model for Online Collaborative Filtering, 2014.

    >>> from albatross import Agent
    >>> agent = Agent(CollaborativeGreedy(threshold=4), n_users=3, n_items=2)
    >>> agent.replay([0, 1, 2], [0, 0, 0], [5.0, 1.0, 4.0])
    >>> round(agent.select(user=2, candidates=[0]).mean, 4)  # nobody disagreed in joint exploration so far: two likes of three
    0.6667
    """

    decay: float = parameter(0.5, "how fast exploration becomes rare; 4/7 at most in theory (α)", above=0, at_most=1)
    agreement: float = parameter(0.5, "how much neighbours agree at least, from −1 to 1 (θ)", at_least=-1, at_most=1)
    threshold: float | None = parameter(None, "least rating that is a like; none: what is above the mean of all ratings so far")
    variant: str = parameter("norepeat", "whether an item may be shown to a user again", choices=VARIANTS)

    def settings(self) -> "Settings":
        threshold = math.nan if self.threshold is None else self.threshold
        return Settings(self.decay, self.agreement, threshold, self.variant == "repeat")

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(
            likes=no_pairs(n_users),
            raters=no_pairs(n_items),
            joint_likes=no_pairs(n_users),
            joint_raters=no_pairs(n_items),
            order=streams("order of items").random(n_items),
            visits=np.zeros(n_users, np.int64),
            users=np.zeros(1, np.int64),
            coin=np.ones(1),
            average=no_average(),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        return Scratch(np.zeros(n_items, np.int32), np.zeros(n_users, np.int64), np.zeros(n_users))


class Settings(NamedTuple):
    decay: float
    agreement: float
    threshold: float
    repeats: bool


class State(NamedTuple):
    likes: Pairs
    """What each user rated; the totals are numbers of likes."""
    raters: Pairs
    """The same pairs, item by item."""
    joint_likes: Pairs
    """Y: what each user rated in joint exploration, as a total of +1 or −1."""
    joint_raters: Pairs
    """The same pairs, item by item."""
    order: Vector
    """The item with the smallest number comes first in joint exploration."""
    visits: Counts
    """Per user t − 1."""
    users: NDArray[np.int64]
    """How many users were met."""
    coin: Vector
    """The random number that decides the kind of the next step; 1 before the first."""
    average: Vector
    """The mean and the number of all ratings."""


class Scratch(NamedTuple):
    entries: Items
    """Per item: where among the pairs the visiting user's ratings of it are."""
    overlap: Counts
    """Per user: how many items they and the visiting user rated in joint exploration."""
    accord: Vector
    """Per user ⟨Y_u, Y_v⟩."""


@kernel
def purpose(state: State, settings: Settings, user: int) -> int:
    """Whether the next step explores or exploits if this user arrives."""
    alone = max(state.users[0], 1) ** -settings.decay
    together = (1.0 + state.visits[user]) ** -settings.decay
    if state.coin[0] < alone:
        return ALONE
    return TOGETHER if state.coin[0] < alone + together else GREEDY


@kernel
def compare_users(state: State, scratch: Scratch, user: int) -> None:
    """How much each user agreed with this one in joint exploration, and on how many items."""
    scratch.overlap[:] = 0
    scratch.accord[:] = 0.0
    likes, raters = state.joint_likes, state.joint_raters
    entry = likes.first[user]
    while entry != NOTHING:
        other = raters.first[likes.items[entry]]
        while other != NOTHING:
            here = np.uint32(other)  # unsigned: never counted from the end
            rater = np.uint32(raters.items[here])
            scratch.overlap[rater] += 1
            scratch.accord[rater] += likes.totals[entry] * raters.totals[here]
            other = raters.following[here]
        entry = likes.following[entry]


@kernel
def share_of_likes(state: State, settings: Settings, scratch: Scratch, item: int) -> float:
    """The share of likes among the ratings of an item by neighbours of the user who was compared last."""
    raters = state.raters
    plays, likes = 0, 0.0
    entry = raters.first[item]
    while entry != NOTHING:
        here = np.uint32(entry)
        rater = np.uint32(raters.items[here])
        if scratch.accord[rater] >= settings.agreement * scratch.overlap[rater]:
            plays += raters.plays[here]
            likes += raters.totals[here]
        entry = raters.following[here]
    return likes / plays if plays > 0 else 0.5


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    entries = scratch.entries
    compare_users(state, scratch, user)
    find_entries(state.likes, user, candidates, entries)
    n_candidates = candidates.size if candidates.size > 0 else entries.size
    n_new, next_position, next_order = 0, 0, math.inf
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        share = share_of_likes(state, settings, scratch, item)
        slate.means[position] = slate.scores[position] = share
        if entries[item] == NOTHING:
            n_new += 1
            if state.order[item] < next_order:
                next_position, next_order = position, state.order[item]
        elif not settings.repeats:
            slate.scores[position] -= SHOWN_BEFORE
    step = purpose(state, settings, user)
    if step == GREEDY or n_new == 0:
        return any_best(slate.scores, n_candidates, random)
    if step == TOGETHER:
        return next_position, 1.0
    passed_over = int(random.random() * n_new)
    position = 0
    while passed_over > 0 or entries[candidates[position] if candidates.size > 0 else position] != NOTHING:
        if entries[candidates[position] if candidates.size > 0 else position] == NOTHING:
            passed_over -= 1
        position += 1
    return position, 1.0 / n_new


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    step = purpose(state, settings, user)
    liked = is_like(state.average, settings.threshold, reward)
    entry = remember(state.likes, user, item, 1.0 if liked else 0.0)
    remember(state.raters, item, user, 1.0 if liked else 0.0)
    if step == TOGETHER and state.likes.plays[entry] == 1:
        remember(state.joint_likes, user, item, 1.0 if liked else -1.0)
        remember(state.joint_raters, item, user, 1.0 if liked else -1.0)
    state.users[0] += 1 if state.visits[user] == 0 else 0
    state.visits[user] += 1
    state.coin[0] = random.random()
