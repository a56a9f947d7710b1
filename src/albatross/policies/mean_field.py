"""Mean field (being written)."""

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
from albatross.kernels.lanes import LANES
from albatross.kernels.linear import Matrix, Vector, packed_size
from albatross.kernels.moments import Regression, add_moments, expected_mean, fit, no_regression, partner_weights, row_start
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.scoring import project_lanes, score_lanes

ORIGIN, MEAN, SQUARES, LARGEST, NOISE, RELIABILITY, CENTER, WITHIN, RESIDUAL, AGREEMENT, CONTRAST, OFFSETS, MEMORY = range(13)
RATINGS, REPEATS, USERS, ITEMS, NEXT_USER, NEXT_ITEM, REBUILT = range(7)


@dataclass(frozen=True)
class MeanField(Policy):
    """Mean field."""

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    cu: float = parameter(2.0, "")
    ci: float = parameter(2.0, "")
    n0: float = parameter(3.0, "")
    c0: float = parameter(20.0, "")
    ps: float = parameter(10.0, "")
    kappa: float = parameter(10.0, "")
    rate: float = parameter(20.0, "")
    least: float = parameter(1.0, "")
    most: float = parameter(4.0, "")
    taum: float = parameter(1.0, "")
    itemq: int = parameter(1, "")
    sc: float = parameter(4.0, "")
    eps: float = parameter(0.003, "")
    kgu: float = parameter(1.0, "")
    kgi: float = parameter(2.0, "")
    kgs: int = parameter(0, "")
    slack: float = parameter(0.0, "")

    def settings(self) -> "Settings":
        return Settings(self.cu, self.ci, self.n0, self.c0, self.ps, self.kappa, self.rate, self.least, self.most, self.taum, self.itemq, self.sc, self.eps, self.kgu, self.kgi, self.kgs, self.slack)

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        packed = packed_size(self.rank + 2)
        return State(
            user_moments=np.zeros((n_users, packed)),
            item_moments=np.zeros((n_items, packed)),
            item_columns=np.zeros((n_items, packed), order="F"),
            item_sums=np.zeros((n_items, packed)),
            item_rights=np.zeros((n_items, self.rank + 1)),
            residuals=np.zeros(n_users),
            users=np.zeros(n_users, np.int64),
            items=np.zeros(n_items, np.int64),
            user_squares=np.zeros(self.rank + 1),
            item_squares=np.zeros(self.rank + 1),
            user_variance=np.zeros(self.rank + 1),
            item_variance=np.zeros(self.rank + 1),
            figures=np.zeros(13),
            counts=np.zeros(7, np.int64),
            pairs=no_pairs(n_users),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        packed = packed_size(self.rank + 2)
        return Scratch(
            no_regression(self.rank), np.zeros(packed), np.zeros(packed), np.zeros((packed + 3, LANES)),
            np.zeros(n_items + LANES), np.zeros(n_items + LANES), np.zeros(n_items, np.int32),
        )  # fmt: skip


class Settings(NamedTuple):
    cu: float
    ci: float
    n0: float
    c0: float
    ps: float
    kappa: float
    rate: float
    least: float
    most: float
    taum: float
    itemq: int
    sc: float
    eps: float
    kgu: float
    kgi: float
    kgs: int
    slack: float


class State(NamedTuple):
    user_moments: Matrix
    item_moments: Matrix
    item_columns: Matrix
    item_sums: Matrix
    item_rights: Matrix
    residuals: Vector
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    user_squares: Vector
    item_squares: Vector
    user_variance: Vector
    item_variance: Vector
    figures: Vector
    counts: NDArray[np.int64]
    pairs: Pairs


class Scratch(NamedTuple):
    work: Regression
    weights: Vector
    stranger: Vector
    block: Matrix
    widths: Vector
    seconds: Vector
    entries: NDArray[np.int32]


@kernel
def reliability(share: float, plays: int) -> float:
    return share * plays / (share * plays + 1.0 - share)


@kernel
def pair_weight(share: float, plays: int) -> float:
    return plays / (share * plays + 1.0 - share)


@kernel
def place_user(state: State, scratch: Scratch, user: int) -> float:
    work, pairs = scratch.work, state.pairs
    work.sums.fill(0.0)
    work.rights.fill(0.0)
    share, origin = state.figures[RELIABILITY], state.figures[ORIGIN]
    squares = 0.0
    offset = work.sums.size - 2
    entry = pairs.first[user]
    while entry != NOTHING:
        plays = pairs.plays[entry]
        weight = pair_weight(share, plays)
        value = pairs.totals[entry] / plays - origin
        moments = state.item_moments[pairs.items[entry]]
        add_moments(work.sums, work.rights, moments, weight, weight * value)
        squares += weight * value * (value - 2.0 * moments[offset])
        entry = pairs.following[entry]
    fit(work, work.sums, work.rights, state.user_variance, 0.0, state.figures[NOISE])
    return squares


@kernel
def refit_user(state: State, scratch: Scratch, user: int) -> None:
    squares = place_user(state, scratch, user)
    work, pairs, old = scratch.work, state.pairs, state.user_moments[user]
    size = work.mean.size
    partner_weights(work.moments, size, scratch.weights)
    for position in range(scratch.weights.size):
        squares += scratch.weights[position] * work.sums[position]
    for a in range(size):
        squares -= 2.0 * work.mean[a] * work.rights[a]
        place = row_start(a) + a if a < size - 1 else old.size - 1
        state.user_squares[a] += work.moments[place] - old[place]
    squares = max(squares, 0.0)
    state.figures[RESIDUAL] += squares - state.residuals[user]
    state.residuals[user] = squares
    change = work.sums
    for position in range(old.size):
        change[position] = work.moments[position] - old[position]
        old[position] = work.moments[position]
    share, origin = state.figures[RELIABILITY], state.figures[ORIGIN]
    entry = pairs.first[user]
    while entry != NOTHING:
        plays, item = pairs.plays[entry], pairs.items[entry]
        weight = pair_weight(share, plays)
        value = pairs.totals[entry] / plays - origin
        add_moments(state.item_sums[item], state.item_rights[item], change, weight, weight * value)
        entry = pairs.following[entry]


@kernel
def believe_item(state: State, item: int, moments: Vector) -> None:
    """Replace what is believed of an item."""
    old, column = state.item_moments[item], state.item_columns[item]
    size = state.item_variance.size
    center = state.figures[CENTER]
    offset = old.size - 2
    for a in range(size - 1):
        place = row_start(a) + a
        state.item_squares[a] += moments[place] - old[place]
    if old[row_start(size) - 1] == 0.0:
        state.item_squares[size - 1] += center * center
    state.item_squares[size - 1] += moments[offset + 1] - old[offset + 1] - 2.0 * center * (moments[offset] - old[offset])
    state.figures[OFFSETS] += moments[offset] - old[offset]
    for position in range(old.size):
        old[position] = moments[position]
        column[position] = moments[position]


@kernel
def refit_item(state: State, scratch: Scratch, item: int) -> None:
    figures = state.figures
    fit(scratch.work, state.item_sums[item], state.item_rights[item], state.item_variance, figures[CENTER], figures[NOISE])
    believe_item(state, item, scratch.work.moments)


@kernel
def meet_item(state: State, scratch: Scratch, item: int, random: np.random.Generator) -> None:
    moments = scratch.work.moments
    size = state.item_variance.size
    one, last = row_start(size - 1), row_start(size)
    for a in range(size - 1):
        moments[one + a] = math.sqrt(state.item_variance[a]) * random.standard_normal()
    moments[one + size - 1] = 1.0
    center = state.figures[CENTER]
    for a in range(size - 1):
        for b in range(a + 1):
            moments[row_start(a) + b] = moments[one + a] * moments[one + b]
        moments[last + a] = center * moments[one + a]
    moments[last + size - 1] = center
    moments[last + size] = center * center
    believe_item(state, item, moments)


@kernel
def learn_population(state: State, settings: Settings) -> None:
    """Prior variances, noise and center from the sums over all users and items."""
    figures, counts = state.figures, state.counts
    size = state.user_variance.size
    mean, ratings = figures[MEAN], counts[RATINGS]
    spread = figures[SQUARES] / ratings
    if ratings < 2 or spread <= 1e-12 * mean * mean:
        spread = max(mean * mean, 1e-12)
    signal = max(spread - (figures[WITHIN] + 0.2 * spread) / (counts[REPEATS] + 2.0), 0.1 * spread)
    for a in range(size):
        guess = math.sqrt(0.5 * signal / (size - 1)) if a < size - 1 else 0.25 * signal
        kappa = settings.kappa
        state.user_variance[a] = max((state.user_squares[a] + kappa * guess) / (counts[USERS] + kappa), 1e-6 * guess)
        state.item_variance[a] = max((state.item_squares[a] + kappa * guess) / (counts[ITEMS] + kappa), 1e-6 * guess)
    figures[CENTER] = (figures[OFFSETS] + mean - figures[ORIGIN]) / (counts[ITEMS] + 1.0)
    share, repeats, pairs = figures[RELIABILITY], counts[REPEATS], state.pairs.used[0]
    belief = max(share, 1.0 / (1.0 + repeats))
    total = figures[WITHIN] + belief * figures[RESIDUAL] + settings.c0 * 0.1 * spread
    figures[NOISE] = max(total / ((1.0 - share) * repeats + belief * pairs + settings.c0), 1e-6 * spread)


@kernel
def rebuild(state: State, settings: Settings) -> None:
    figures, counts, pairs = state.figures, state.counts, state.pairs
    counts[REBUILT] = counts[RATINGS]
    figures[MEMORY] = settings.taum * min(max(figures[AGREEMENT] / (figures[CONTRAST] + settings.ps), 0.0), 1.0)
    spread = max(figures[SQUARES] / counts[RATINGS], 1e-300)
    steady = (figures[WITHIN] + 0.06 * spread) / (counts[REPEATS] + 3.0) / (settings.eps * spread)
    figures[RELIABILITY] = max(figures[MEMORY] ** settings.sc, 1.0 / (1.0 + steady))
    share, origin = figures[RELIABILITY], figures[ORIGIN]
    size = state.user_variance.size
    for rank in range(counts[ITEMS]):
        item = state.items[rank]
        state.item_sums[item].fill(0.0)
        state.item_rights[item].fill(0.0)
    figures[RESIDUAL] = 0.0
    for rank in range(counts[USERS]):
        user = state.users[rank]
        figures[RESIDUAL] += state.residuals[user]
        moments = state.user_moments[user]
        entry = pairs.first[user]
        while entry != NOTHING:
            plays, item = pairs.plays[entry], pairs.items[entry]
            weight = pair_weight(share, plays)
            value = pairs.totals[entry] / plays - origin
            add_moments(state.item_sums[item], state.item_rights[item], moments, weight, weight * value)
            entry = pairs.following[entry]
    state.user_squares.fill(0.0)
    for rank in range(counts[USERS]):
        moments = state.user_moments[state.users[rank]]
        for a in range(size):
            state.user_squares[a] += moments[row_start(a) + a if a < size - 1 else moments.size - 1]
    state.item_squares.fill(0.0)
    figures[OFFSETS] = 0.0
    center = figures[CENTER]
    for rank in range(counts[ITEMS]):
        moments = state.item_moments[state.items[rank]]
        for a in range(size - 1):
            state.item_squares[a] += moments[row_start(a) + a]
        offset = moments[moments.size - 2]
        state.item_squares[size - 1] += moments[moments.size - 1] - 2.0 * center * offset + center * center
        figures[OFFSETS] += offset


@kernel
def worth(visits: float) -> float:
    """The q for which visits · E[(Z − q)₊] = q, Z standard normal."""
    q = 0.8 * math.sqrt(math.log(1.0 + visits))
    for _ in range(4):
        tail = 0.5 * math.erfc(q * 0.7071067811865476)
        gain = 0.3989422804014327 * math.exp(-0.5 * q * q) - q * tail
        q += (visits * gain - q) / (visits * tail + 1.0)
    return q


@kernel
def gained(variance: float, mood: float) -> float:
    return variance * variance / (variance + mood + 1e-300)


@kernel
def describe_stranger(state: State, moments: Vector) -> None:
    """What is believed of an item nobody has rated."""
    size = state.item_variance.size
    center = state.figures[CENTER]
    moments.fill(0.0)
    for a in range(size - 1):
        moments[row_start(a) + a] = state.item_variance[a]
    moments[row_start(size) - 1] = 1.0
    moments[moments.size - 2] = center
    moments[moments.size - 1] = center * center + state.item_variance[size - 1]


@kernel
def score_items(state: State, scratch: Scratch, candidates: Items, means: Vector) -> None:
    """Means without offset of the item, user widths and second moments of all candidates."""
    work, block = scratch.work, scratch.block
    size, packed = work.mean.size, scratch.weights.size
    one = row_start(size - 1)
    radius = math.sqrt(state.figures[NOISE])
    columns = state.item_columns.T
    n_candidates = candidates.size if candidates.size > 0 else columns.shape[1]
    for start in range(0, n_candidates, LANES):
        if candidates.size == 0 and n_candidates >= LANES:
            group = min(start, n_candidates - LANES)
            score_lanes(columns[one : one + size], group, work.mean, work.whitener, radius, scratch.widths, means, group)
            project_lanes(columns, group, scratch.weights, scratch.seconds, group)
            for lane in range(group, group + LANES):
                scratch.widths[lane] -= means[lane]
                means[lane] += columns[packed - 2, lane]
        else:
            length = min(LANES, n_candidates - start)
            for lane in range(length):
                moments = state.item_moments[candidates[start + lane] if candidates.size > 0 else start + lane]
                for a in range(packed):
                    block[a, lane] = moments[a]
            for lane in range(length, LANES):
                for a in range(packed):
                    block[a, lane] = 0.0
            score_lanes(block[one : one + size], 0, work.mean, work.whitener, radius, block[packed], block[packed + 1], 0)
            project_lanes(block[:packed], 0, scratch.weights, block[packed + 2], 0)
            for lane in range(length):
                scratch.widths[start + lane] = block[packed, lane] - block[packed + 1, lane]
                means[start + lane] = block[packed + 1, lane] + block[packed - 2, lane]
                scratch.seconds[start + lane] = block[packed + 2, lane]


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    figures, pairs, work = state.figures, state.pairs, scratch.work
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    if state.counts[RATINGS] == 0:
        for position in range(n_candidates):
            slate.means[position] = 0.0
            slate.scores[position] = 0.0
        return any_best(slate.scores, n_candidates, random)
    plays, _ = find_entries(pairs, user, candidates, scratch.entries)
    place_user(state, scratch, user)
    size = work.mean.size
    partner_weights(work.moments, size, scratch.weights)
    describe_stranger(state, scratch.stranger)
    score_items(state, scratch, candidates, slate.means)
    mine = row_start(size) - 1
    own_variance = work.moments[work.moments.size - 1] - work.mean[size - 1] ** 2
    strange_mean = expected_mean(work.moments, scratch.stranger, size)
    strange_variance = -strange_mean * strange_mean - own_variance
    for position in range(scratch.weights.size):
        strange_variance += scratch.weights[position] * scratch.stranger[position]
    share, noise, origin, top = figures[MEMORY], figures[NOISE], figures[ORIGIN], figures[LARGEST]
    mood = (1.0 - figures[RELIABILITY]) * noise
    top += settings.slack * math.sqrt(mood)
    own = worth(settings.n0 + plays)
    total, kinds = float(state.counts[RATINGS]), float(state.counts[ITEMS])
    everybody = worth(total) if settings.itemq == 1 else worth(total / kinds)
    residual = own * own * share * noise
    blur = settings.kgi * noise / math.sqrt(total / kinds)
    own_blur = settings.kgu * noise / (math.sqrt(settings.n0 + plays) if settings.kgs == 1 else 1.0)
    user_factor, item_factor = settings.cu * own * own, settings.ci * everybody * everybody
    for position in range(n_candidates):
        item = candidates[position] if candidates.size > 0 else position
        if state.item_moments[item, mine] == 0.0:
            mean = strange_mean
            square = residual + user_factor * gained(own_variance, own_blur) + item_factor * gained(strange_variance, blur)
        else:
            mean = slate.means[position]
            user_variance = scratch.widths[position] * scratch.widths[position]
            item_variance = max(scratch.seconds[position] - mean * mean - user_variance, 0.0)
            square = residual + user_factor * gained(user_variance, own_blur) + item_factor * gained(item_variance, blur)
        mean += origin
        entry = scratch.entries[item]
        if entry != NOTHING:
            times = pairs.plays[entry]
            known = reliability(share, times)
            mean += known * (pairs.totals[entry] / times - mean)
            square *= 1.0 - known
        bonus = math.sqrt(square)
        room = top - mean
        if room > 0.0:
            ratio = bonus / room
            bonus = room * (1.0 - 1.0 / (1.0 + ratio + 0.5 * ratio * ratio))
        else:
            bonus = 0.0
        slate.means[position] = mean
        slate.scores[position] = mean + bonus
    return any_best(slate.scores, n_candidates, random)


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    figures, counts, pairs = state.figures, state.counts, state.pairs
    if counts[RATINGS] == 0:
        figures[ORIGIN] = reward
        figures[LARGEST] = reward
    figures[LARGEST] = max(figures[LARGEST], reward)
    counts[RATINGS] += 1
    distance = reward - figures[MEAN]
    figures[MEAN] += distance / counts[RATINGS]
    figures[SQUARES] += distance * (reward - figures[MEAN])
    if pairs.first[user] == NOTHING:
        state.users[counts[USERS]] = user
        counts[USERS] += 1
    if counts[RATINGS] == 1:
        learn_population(state, settings)
    size = state.user_variance.size
    if state.item_moments[item, row_start(size) - 1] == 0.0:
        state.items[counts[ITEMS]] = item
        counts[ITEMS] += 1
        meet_item(state, scratch, item, random)
    share, origin = figures[RELIABILITY], figures[ORIGIN]
    entry = pairs.first[user]
    while entry != NOTHING and pairs.items[entry] != item:
        entry = pairs.following[entry]
    weight, value = 0.0, 0.0
    if entry != NOTHING:
        plays = pairs.plays[entry]
        before = pairs.totals[entry] / plays
        if plays == 1:
            place_user(state, scratch, user)
            expected = origin + expected_mean(scratch.work.moments, state.item_moments[item], size)
            contrast = before - expected
            scale = contrast * contrast + figures[NOISE]
            figures[AGREEMENT] = 0.999 * figures[AGREEMENT] + (reward - expected) * contrast / scale
            figures[CONTRAST] = 0.999 * figures[CONTRAST] + contrast * contrast / scale
        figures[WITHIN] += plays / (plays + 1.0) * (reward - before) ** 2
        counts[REPEATS] += 1
        weight = -pair_weight(share, plays)
        value = weight * (before - origin)
    entry = remember(pairs, user, item, reward)
    plays = pairs.plays[entry]
    now = pair_weight(share, plays)
    value += now * (pairs.totals[entry] / plays - origin)
    add_moments(state.item_sums[item], state.item_rights[item], state.user_moments[user], weight + now, value)
    refit_user(state, scratch, user)
    refit_item(state, scratch, item)
    learn_population(state, settings)
    quota = min(max(settings.rate * counts[USERS] / counts[RATINGS], settings.least), settings.most)
    for _ in range(min(int(quota), counts[USERS])):
        counts[NEXT_USER] = (counts[NEXT_USER] + 1) % counts[USERS]
        refit_user(state, scratch, state.users[counts[NEXT_USER]])
    quota = min(max(settings.rate * counts[ITEMS] / counts[RATINGS], settings.least), settings.most)
    for _ in range(min(int(quota), counts[ITEMS])):
        counts[NEXT_ITEM] = (counts[NEXT_ITEM] + 1) % counts[ITEMS]
        refit_item(state, scratch, state.items[counts[NEXT_ITEM]])
    if counts[RATINGS] - counts[REBUILT] >= min(counts[RATINGS] // 4, 4096 + pairs.used[0]):
        rebuild(state, settings)
