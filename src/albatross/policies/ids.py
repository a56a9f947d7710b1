"""Information-directed sampling on the beliefs of a mean-field factorization."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.counting import any_best
from albatross.kernels.joining import Rows, join_mean_field
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.beliefs import Beliefs, Scratch, no_beliefs, no_scratch
from albatross.kernels.mean_field.learning import learn, part_of_pair, place_user
from albatross.kernels.mean_field.measuring import measure_items, position_of
from albatross.kernels.mean_field.valuing import expect_stranger, nothing_known, part_that_returns, top_of_scale
from albatross.kernels.operations import Items, Slate, implements, join, replace, select, update
from albatross.kernels.pairs import NOTHING
from albatross.kernels.replacing import exchange_mean_field

FAR = 4.0
"""An item whose mean is so many standard deviations below the best does not count in the expected maximum."""


@dataclass(frozen=True)
class IDS(Policy):
    """Shows the items with the least squared expected regret per variance that their rating would explain.

    Model: that of mean-field. For the visiting user an item has the mean m_j and the variance w_j = v_u + v_i + τ², from the user, from
    the item, and from the pair's own part. The expected regret is Δ_j = E[max m] − m_j. The gain is the part of that variance that one
    rating would explain,

        g_j = v_u² / (v_u + s²) + v_i² / (v_i + s²) + r τ⁴ / s²

    with s² the noise of a rating around the model and r the share of the user's rated items that is offered again. The choice is random,
    between the item a with the best mean and another one b, shown with probability q. Both b and q are chosen to make the ratio

        Ψ = ((1 − q) Δ_a + q Δ_b)² / ((1 − q) g_a + q g_b)        q = Δ_a / (Δ_b − Δ_a) − 2 g_a / (g_b − g_a), within 0 and 1

    least. At the minimum both have the same score m_j + Δ / (2 g) g_j, with the Δ and g of the mixture: a price per unit of gain.

    Symbols: rank k; `top` the top of the scale, if none is given the largest rating seen; `refreshes` as in mean-field.

    Cost: as mean-field: select O(|I_u| k² + k³ + |C| k²), update O(R |I| k² + R k³), I_u the distinct items the user has rated, R
    the refits in turn; memory O((n + m) k² + distinct pairs).

    Departures: the authors use samples of the posterior. Here beliefs are normal; errors of different items are taken as independent in
    E[max m], which is computed pair by pair (Clark), and E[max m] is at most the top of the scale. The gain is explained variance rather
    than mutual information, which is infinite where repeated ratings are exact. Two items with the best mean as one of them come within a
    third of the least ratio of all distributions (Kirschner and others).

    Reference: Marsden and Bacallado, Sequential Matrix Completion, 2017; Russo and Van Roy, Learning to Optimize via
    Information-Directed Sampling, 2018; Kirschner, Lattimore, Vernade and Szepesvári, Asymptotically Optimal Information-Directed
    Sampling, 2021; Clark, The Greatest of a Finite Set of Random Variables, 1961.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(IDS(rank=2), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.2 * recording.pseudo_regret[:100].mean())
    True
    """

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    top: float | None = parameter(None, "top of the rating scale; none: the largest rating seen so far")
    refreshes: int = parameter(1, "other users, and items, refitted per rating; many more while vectors are found", at_least=0)

    def settings(self) -> "Settings":
        return Settings(math.inf if self.top is None else self.top, self.refreshes, math.nan)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(*no_beliefs(self.rank, n_users, n_items))

    def scratch(self, n_users: int, n_items: int) -> Scratch:
        return no_scratch(self.rank, n_items)


class Settings(NamedTuple):
    top: float
    """Infinite if it is not known."""
    refreshes: int
    returns: float
    """Not a number: it is found out from what is offered."""


class State(Beliefs):
    """The state of any mean-field factorization."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    if state.counts[0].ratings == 0:
        return nothing_known(n_candidates, slate, random)
    means, variances, gains = slate.means, scratch.squares, scratch.seconds
    place_user(state, scratch.room, user)
    measure_items(state, scratch, candidates, means)
    returns, _ = part_that_returns(state, settings, scratch, user, candidates, n_candidates)
    measure_gains(state, scratch, n_candidates, returns, means)
    remember_pairs(state, scratch, user, candidates, n_candidates, means)
    greedy, share = any_best(means, n_candidates, random)
    best = min(expected_maximum(means, variances, n_candidates), max(top_of_scale(state, settings), means[greedy]))
    other, chance, price = best_mixture(means, gains, n_candidates, greedy, best)
    for position in range(n_candidates):
        slate.scores[position] = means[position] + price * gains[position]
    if chance > 0.0 and random.random() < chance:
        return other, chance if share == 1.0 else math.nan
    return greedy, (1.0 - chance) * share


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    learn(state, scratch.room, settings.refreshes, user, item, reward, random)


@implements(replace, State)
def replace_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    """The largest rating seen stays the largest, even if that rating is replaced."""
    exchange_mean_field(state, scratch.room, user, item, before, after)


@implements(join, State)
def join_users(state: State, settings: Settings, scratch: Scratch, user: int, other: int, room: Rows, random: np.random.Generator) -> None:
    join_mean_field(state, scratch.room, user, other, room)


@kernel
def measure_gains(state: State, scratch: Scratch, n_candidates: int, returns: float, means: Vector) -> None:
    """Per candidate m, w (left in `scratch.squares`) and g (left in `scratch.seconds`), as if the user had rated none of them."""
    squares, seconds, figures = scratch.squares, scratch.seconds, state.figures[0]
    strange_mean, strange_square, strange_second = expect_stranger(state, scratch)
    noise, work = figures.noise, scratch.room.work
    own, origin = figures.memory * noise, figures.origin + work.mean[work.mean.size - 1]
    for position in range(n_candidates):
        strange = squares[position] < 0.0
        mean = strange_mean if strange else means[position]
        square = strange_square if strange else squares[position]
        second = strange_second if strange else seconds[position]
        of_user, of_item = noise * square, max(second - mean * mean, 0.0)
        means[position] = origin + mean
        squares[position] = of_user + of_item + own
        seconds[position] = of_user * of_user / (of_user + noise) + of_item * of_item / (of_item + noise) + returns * own * own / noise


@kernel
def remember_pairs(state: State, scratch: Scratch, user: int, candidates: Items, n_candidates: int, means: Vector) -> None:
    """Use the pair's own ratings for items that the user has rated."""
    pairs, share = state.pairs, state.figures[0].memory
    entry = pairs.first[user]
    while entry != NOTHING:
        position = position_of(scratch, candidates, pairs.items[entry], n_candidates)
        if position >= 0:
            known = part_of_pair(share, pairs.plays[entry])
            means[position] += known * (pairs.totals[entry] / pairs.plays[entry] - means[position])
            scratch.squares[position] *= 1.0 - known
            scratch.seconds[position] *= 1.0 - known
        entry = pairs.following[entry]


@kernel
def expected_maximum(means: Vector, variances: Vector, length: int) -> float:
    """E of the maximum of independent normals; the maximum of the first ones is approximated by a normal before each further one."""
    largest = means[0]
    for position in range(1, length):
        largest = max(largest, means[position])
    mean, variance, begun = largest, 0.0, False
    for position in range(length):
        other, spread = means[position], variances[position]
        if other + FAR * math.sqrt(spread) <= largest and other < largest:
            continue
        if not begun:
            mean, variance, begun = other, spread, True
            continue
        distance = math.sqrt(variance + spread)
        if distance == 0.0:
            mean = max(mean, other)
            continue
        ahead = (mean - other) / distance
        density = distance * math.exp(-0.5 * ahead * ahead) / math.sqrt(2.0 * math.pi)
        below = 0.5 * math.erfc(ahead / math.sqrt(2.0))
        above = 1.0 - below
        second = (mean * mean + variance) * above + (other * other + spread) * below + (mean + other) * density
        mean = mean * above + other * below + density
        variance = max(second - mean * mean, 0.0)
    return float(max(mean, largest))


@kernel
def best_mixture(means: Vector, gains: Vector, length: int, greedy: int, best: float) -> tuple[int, float, float]:
    """The item to mix with the greedy one, its probability, and the price of a unit of gain."""
    regret, gain = best - means[greedy], gains[greedy]
    other, chance, least = greedy, 0.0, math.inf
    if regret > 0.0:
        if gain > 0.0:
            least = regret * regret / gain
        for position in range(length):
            more, further = means[greedy] - means[position], gains[position] - gain
            if further > 0.0:
                part = 1.0 if more <= 0.0 else min(max(regret / more - 2.0 * gain / further, 0.0), 1.0)
                if part > 0.0:
                    ratio = (regret + part * more) ** 2 / (gain + part * further)
                    if ratio < least:
                        other, chance, least = position, part, ratio
    gained = gain + chance * (gains[other] - gain)
    price = 0.5 * (regret + chance * (means[greedy] - means[other])) / gained if gained > 0.0 else 0.0
    return other, chance, max(price, 0.0)
