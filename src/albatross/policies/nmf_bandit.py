"""NMF-Bandit: ε-greedy, with ε falling as 1/t, over a non-negative factorization."""

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.extras import install_command
from albatross.core.parameters import parameter
from albatross.core.policy import Policy
from albatross.core.streams import Streams
from albatross.kernels.compiling import kernel
from albatross.kernels.fitting.hottopixx import LARGEST_PROGRAMME, hottopixx, programme_size
from albatross.kernels.fitting.nonnegative import (
    Table,
    Workspace,
    fill_table,
    fit_items,
    fit_users,
    place_users,
    regress_items,
    successive_projections,
    sum_items,
    table,
    workspace,
)
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember
from albatross.kernels.search.scoring import best_position

REFIT_INTERVAL = 50
"""The factors are refitted after so many new ratings."""

FIRST_ROUNDS, NEXT_ROUNDS, SWEEPS = 50, 3, 4
"""Alternations between users and items in the first fit and in later fits, which start from the last one; sweeps within each."""

RIDGE = 0.1
"""Regularization of every least-squares problem, so that one rating does not decide a whole vector."""

LEAST = 1e-9
"""The least coordinate, in place of 0. A coordinate that is 0 in all rows would stay 0, and a user without ratings,
whose coordinates all end here, is shown what the crowd likes instead of the item that happens to be number 0."""

SOLVERS = ("masked", "anchors", "hottopixx")
MASKED, ANCHORS, HOTTOPIXX = range(3)


@dataclass(frozen=True)
class NMFBandit(Policy):
    """Shows an exploration item with a probability that falls as 1/t, else the best item of a non-negative factorization.

    Model: mean ratings are Y = A W with A ≥ 0 (n × k) and W ≥ 0 (k × m); in the paper the rows of A are mixtures of k types of user, and
    some users are of one type only (pure users). Step t explores with probability ε_t = min(1, a/t), a = θ (2m' + k), and then draws
    uniformly from S, the 2m' items that all users explore, and R_u, another m' that this user explores (an item in both counts twice).
    Otherwise it shows

        j = argmax ⟨A_u, W_j⟩,  where A, W ≥ 0 minimize  Σ N_ui (mean rating of i by u − shift − ⟨A_u, W_i⟩)²

    Symbols: rank k (r in the paper), exploration θ, set_size m'. `schedule` theory multiplies a by the number of users (1/β in the
    paper), nobeta does not. `data` says which ratings are fitted: all, or only those of steps that explored. `solver` masked
    is the formula above; anchors looks for k pure users by successive projection in the table users × S (empty cells
    filled with column means), then fits A by least squares over shares of them and W by ridge regression; hottopixx finds the pure
    users by a linear programme. shift is the smallest rating if that is negative, else 0.

    Cost: select O(|C| k + m'), update O(|I_u|), I_u the distinct items the user has rated, and in every fit
    O(k² · distinct pairs + (n + m) k²). A fit follows after 50 ratings; with explore-only also before a step
    that exploits, if there is anything new. hottopixx adds a programme of n² unknowns to each.

    Departures from the paper. The paper splits the items into blocks of k, each block with its own users, and explores a steps per user.
    At n = m = 200, k = 5, θ = 2, m' = 25 that takes 2,050 users and 22,000 steps of pure exploration. So here R_u comes from shuffled
    decks of all items, a does not contain n, and all ratings are fitted. (explore-only is as printed. It uses about 700 of 25,000 ratings
    and has two to four times the regret.) masked fits the cells that were seen and needs no pure users. Least squares over shares stands
    for the ∞,1-norm. The printed tolerance of hottopixx, 2 · 2m' · 2/√θ, is no less than the norm of a whole row of ratings in [0, 1]
    unless θ > 16; here it is the least that k pure users allow. Items of S and R_u that are not candidates are left out; if none is left,
    all candidates are drawn from. Errata: a block ends at min(·, m); the last block is fitted with its own users; Ŵ names two things.

    Whether the next step explores is part of the state: `update` draws it for the next step. So `select` changes nothing; until the next
    rating the answer is the same for all users.

    Reference: Sen, Shanmugam, Kocaoglu, Dimakis and Shakkottai, Contextual Bandits with Latent Confounders: An NMF Approach, AISTATS 2017.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Uniform
    >>> recording = simulate(NMFBandit(rank=2), Uniform(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.5 * recording.pseudo_regret[:100].mean())
    True
    """

    rank: int = parameter(5, "number of types of user (k)", at_least=1)
    exploration: float = parameter(3.0, "amount of exploration (θ)", above=0)
    set_size: int = parameter(10, "items each user explores beside the twice as many that all explore (m')", at_least=1)
    schedule: str = parameter("nobeta", "whether exploration grows with the number of users", choices=("nobeta", "theory"))
    data: str = parameter("all", "the ratings that are fitted", choices=("all", "explore-only"))
    solver: str = parameter("masked", "how the factors are fitted", choices=SOLVERS)

    def settings(self) -> "Settings":
        solver = SOLVERS.index(self.solver)
        explores_only = self.data == "explore-only"
        return Settings(
            exploring_steps=self.exploration * (2 * self.set_size + self.rank),
            grows_with_users=self.schedule == "theory",
            explores_only=explores_only,
            solver=solver,
            patience=1 if explores_only and solver != HOTTOPIXX else REFIT_INTERVAL,
        )

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        if self.solver == "hottopixx":
            self._expect_feasible(n_users, self._n_columns(n_items))
        shared = np.zeros(n_items, np.bool_)
        shared[streams("shared set").permutation(n_items)[: 2 * self.set_size]] = True
        return State(
            user_factors=np.asfortranarray(streams("user factors").random((n_users, self.rank))),
            item_factors=np.asfortranarray(streams("item factors").random((n_items, self.rank))),
            shared=shared,
            own=self._deal(n_users, n_items, streams("own sets")),
            coin=streams("first coin").random(1),
            shift=np.zeros(2),
            pairs=no_pairs(n_users),
            counts=np.zeros(3, np.int64),
        )

    def scratch(self, n_users: int, n_items: int) -> "Scratch":
        n_users_tabled, n_columns = (0, 0) if self.solver == "masked" else (n_users, self._n_columns(n_items))
        shared = table(n_users_tabled, n_columns, n_items, self.rank)
        return Scratch(np.zeros(n_items, np.int64), workspace(n_items, self.rank), shared)

    def _n_columns(self, n_items: int) -> int:
        return min(n_items, 2 * self.set_size)

    def _expect_feasible(self, n_users: int, n_columns: int) -> None:
        """Refuse now what would later fail or take too long."""
        size = programme_size(n_users, n_columns)
        if size > LARGEST_PROGRAMME:
            raise InvalidInput(
                f"solver 'hottopixx' with {n_users} users and {n_columns} shared items needs a linear programme with {size} coefficients"
                f" (users² × items); accepted: at most {LARGEST_PROGRAMME}, or another solver: masked, anchors"
            )
        if find_spec("scipy") is None:
            raise InvalidInput(f"solver 'hottopixx' needs SciPy; accepted: {install_command('lp')}, or another solver: masked, anchors")

    def _deal(self, n_users: int, n_items: int, random: np.random.Generator) -> NDArray[np.int32]:
        """One set of items per user, dealt from a shuffled deck of all items. When it has no full set left, it is shuffled again."""
        hands = np.full((n_users, self.set_size), NOTHING, np.int32)
        hand_size = min(self.set_size, n_items)
        hands_per_deck = n_items // hand_size
        decks = np.tile(np.arange(n_items, dtype=np.int32), (math.ceil(n_users / hands_per_deck), 1))
        dealt = random.permuted(decks, axis=1)[:, : hands_per_deck * hand_size].reshape(-1, hand_size)
        hands[:, :hand_size] = dealt[:n_users]
        return hands


class Settings(NamedTuple):
    exploring_steps: float
    """a = θ (2m' + k): so many steps explore for certain."""
    grows_with_users: bool
    explores_only: bool
    solver: int
    patience: int
    """New ratings that are worth a refit before a step that exploits."""


class State(NamedTuple):
    user_factors: Matrix
    """A, one row per user, in Fortran order: fitting goes over users."""
    item_factors: Matrix
    """Wᵀ, one row per item, in Fortran order: fitting and scoring go over items."""
    shared: NDArray[np.bool_]
    """Per item whether it is in S."""
    own: NDArray[np.int32]
    """R_u, one row per user; where there were fewer items, the rest is NOTHING."""
    coin: Vector
    """The next step explores if this is below ε_t."""
    shift: Vector
    """The shift of the ratings in the last fit and in the next."""
    pairs: Pairs
    """The ratings that are fitted."""
    counts: NDArray[np.int64]
    """Ratings so far, ratings to be fitted since the last fit, fits so far."""


class Scratch(NamedTuple):
    tickets: NDArray[np.int64]
    """Per candidate item: in how many of S and R_u it is."""
    space: Workspace
    table: Table


@kernel
def exploring_probability(state: State, settings: Settings) -> float:
    """ε_t of the next step."""
    steps = settings.exploring_steps
    if settings.grows_with_users:
        steps *= state.user_factors.shape[0]
    return min(1.0, steps / float(state.counts[0] + 1))


@kernel
def item_at(candidates: Items, position: int) -> int:
    return int(candidates[position]) if candidates.size > 0 else position


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else state.item_factors.shape[0]
    estimate(state, user, candidates, slate.means[:n_candidates])
    for position in range(n_candidates):
        slate.scores[position] = slate.means[position]
    best = best_position(slate.scores, n_candidates)
    exploring = exploring_probability(state, settings)
    chosen = best
    if candidates.size == 0 and state.coin[0] >= exploring:  # most steps of most trials: nothing needs to be handed out
        n_tickets, n_own = count_tickets(state, user, best)
        return best, exploring * n_own / n_tickets + (1.0 - exploring)
    n_tickets = hand_out_tickets(state, scratch, user, candidates, n_candidates)
    if state.coin[0] < exploring:
        drawn = int(random.random() * n_tickets)
        chosen = 0
        while drawn >= scratch.tickets[item_at(candidates, chosen)]:
            drawn -= scratch.tickets[item_at(candidates, chosen)]
            chosen += 1
    propensity = exploring * scratch.tickets[item_at(candidates, chosen)] / n_tickets
    return chosen, propensity + (1.0 - exploring if chosen == best else 0.0)


@kernel
def estimate(state: State, user: int, candidates: Items, means: Vector) -> None:
    """The expected rating of every candidate; one coordinate of all items at a time, which lie side by side."""
    means[:] = state.shift[0]
    for a in range(state.user_factors.shape[1]):
        weight = state.user_factors[user, a]
        coordinate = state.item_factors.T[a]
        if candidates.size > 0:
            for position in range(means.size):
                means[position] += weight * coordinate[candidates[position]]
        else:
            for position in range(means.size):
                means[position] += weight * coordinate[position]


@kernel
def count_tickets(state: State, user: int, item: int) -> tuple[int, int]:
    """How many tickets there are where the whole catalogue is offered, and how many of them this item has."""
    n_tickets = 0
    for other in range(state.shared.size):
        n_tickets += 1 if state.shared[other] else 0
    n_own = 1 if state.shared[item] else 0
    for order in range(state.own.shape[1]):
        n_tickets += 1 if state.own[user, order] != NOTHING else 0
        n_own += 1 if state.own[user, order] == item else 0
    return n_tickets, n_own


@kernel
def hand_out_tickets(state: State, scratch: Scratch, user: int, candidates: Items, n_candidates: int) -> int:
    """A candidate gets one ticket if it is in S and one if it is in R_u; if none gets any, each gets one. Returns their number."""
    tickets = scratch.tickets
    for position in range(n_candidates):
        item = item_at(candidates, position)
        tickets[item] = 1 if state.shared[item] else 0
    for order in range(state.own.shape[1]):
        if state.own[user, order] != NOTHING:
            tickets[state.own[user, order]] += 1
    n_tickets = 0
    for position in range(n_candidates):
        n_tickets += tickets[item_at(candidates, position)]
    if n_tickets == 0:
        for position in range(n_candidates):
            tickets[item_at(candidates, position)] = 1
        n_tickets = n_candidates
    return n_tickets


@implements(update, State)
def learn_rating(
    state: State, settings: Settings, scratch: Scratch, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    explored = state.coin[0] < exploring_probability(state, settings)
    state.counts[0] += 1
    state.coin[0] = random.random()
    if explored or not settings.explores_only:
        remember(state.pairs, user, item, reward)
        state.shift[1] = min(state.shift[1], reward)
        state.counts[1] += 1
    enough = settings.patience if state.counts[2] > 0 else 1
    exploits_next = state.coin[0] >= exploring_probability(state, settings)
    if state.counts[1] >= REFIT_INTERVAL or (exploits_next and state.counts[1] >= enough):
        fit(state, settings, scratch)


@kernel
def fit(state: State, settings: Settings, scratch: Scratch) -> None:
    """Fit A and W to the stored ratings."""
    shift = state.shift[1]
    users, items, space = state.user_factors, state.item_factors, scratch.space
    if settings.solver == MASKED:
        for _ in range(FIRST_ROUNDS if state.counts[2] == 0 else NEXT_ROUNDS):
            fit_users(state.pairs, shift, RIDGE, LEAST, SWEEPS, users, items, space)
            fit_items(state.pairs, shift, RIDGE, LEAST, SWEEPS, users, items, space)
    else:
        shared = scratch.table
        fill_table(state.pairs, shift, state.shared, shared)
        if settings.solver == HOTTOPIXX:
            hottopixx(shared.cells, shared.anchors)
        else:
            successive_projections(shared.cells, shared.basis, shared.squares, shared.anchors)
        place_users(shared, users)
        sum_items(state.pairs, shift, users, space)
        regress_items(RIDGE, items, space, shared)
    state.shift[0] = shift
    state.counts[1] = 0
    state.counts[2] += 1
