"""Mean-field factorization with memory: one set of defaults for synthetic worlds and logged ratings alike."""

import math
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import ClassVar, NamedTuple, Self

import numpy as np

from albatross.core.environment import Truth
from albatross.core.parameters import parameter
from albatross.core.policy import Division, Policy
from albatross.core.streams import Streams
from albatross.kernels.carrying import carry_mean_field
from albatross.kernels.counting import any_best
from albatross.kernels.joining import Rows, join_mean_field
from albatross.kernels.linear import Vector, gram_of_columns
from albatross.kernels.mean_field.beliefs import Beliefs, Scratch, no_beliefs, no_scratch
from albatross.kernels.mean_field.choosing import NOT_TOLD, choose_best
from albatross.kernels.mean_field.gathering import merge_population, refit_items, report_population
from albatross.kernels.mean_field.learning import learn, place_user
from albatross.kernels.mean_field.searching import is_searched, search
from albatross.kernels.mean_field.supposing import adjust_supposed, all_met_as_predicted, attribute_mean, suppose_ratings, width_of_pair
from albatross.kernels.mean_field.valuing import nothing_known, rank_items
from albatross.kernels.operations import (
    ELSEWHERE,
    Belief,
    Items,
    Slate,
    attribute,
    believe,
    carry,
    divide,
    implements,
    join,
    merge,
    refit,
    replace,
    report,
    select,
    suppose,
    update,
    width,
)
from albatross.kernels.replacing import exchange_mean_field


@dataclass(frozen=True)
class MeanField(Policy):
    """Bayesian matrix factorization with a memory of pairs; explores an item as far as later visits can profit from it.

    Model: the rating of a pair is g + o_u + o_i + ⟨a_u, b_i⟩ + r_ui + noise, where offsets and vectors are normal with a variance per
    coordinate, the pair's own part r_ui has variance τ² and the noise of a single rating σ². With s² = τ² + σ² and ρ = τ² / s², the mean
    of n ratings of a pair has the weight w = 1 / (ρ + (1 − ρ) / n). The posterior of users and items is approximated by a product of
    normals, each in turn

        (a_u, o_u) ~ N(m, s² G⁻¹),    G = s² D⁻¹ + Σ w E[x xᵀ],    m = G⁻¹ Σ w (E[x] (y − g) − E[x o_i]),    x = (b_i, 1),

    and the same for items with x = (a_u, 1): ridge regression in which the partner's covariance counts as ridge. Told that no pair comes
    back (`returns` false), users take κ = 1 − 0.75 c of the items' covariance, c as below: a product of normals counts what user and item
    do not know of each other on both sides, which finds vectors late. Every rating refits its user and its item, unless it repeats exactly
    what is known, and a few others in turn, so that no vector goes stale: at most one user and one item, and while vectors are found
    44 min(t / h, h / t)² (c − 0.4)₊ / 0.6 more, t the ratings so far, h = 0.4 k (n + m) or at least 800, n + m the users and items
    met, at most 3,200; meanwhile, a refit in turn moves a mean 1.75 times as far as to m, which saves refits (over-relaxation). The
    priors are learned online: D as Σ E[a]² over all rows met, divided by the number of rows that ratings have determined,
    Σ (1 − var(a) / D), which also decides how many coordinates are used; the mean item offset; σ² from repeated ratings; ρ from how well a
    pair's first rating predicts the second one beyond the model, and 1 where repeats are exact; s² from both.

    Where all ratings are 0 or 1, a click is the noisier the nearer its mean is to ½, and users take w = 1 / (ρ + (1 − ρ) f / n) with
    f = p (1 − p) / (a (1 − a)) between ¼ and 4, p the item's mean and a that of all ratings. What is repeated is nearly always clicked,
    with little noise: so in s², each repeat counts with a (1 − a) instead. The guess of ρ that memory begins with is 4 a (1 − a) / 3, not
    0, and weighs as much as 20 second ratings: with a = ½, as if every probability of a click were equally likely.

    The mean of an item that the user has rated n times is m_ui + ρ_n (y_ui − m_ui), ρ_n = τ² / (τ² + σ² / n); of others, m_ui.
    Trying a pair costs its shortfall now, and gains at each of N later visits if it turns out better. If one rating told all, that would
    be worth q(N) standard deviations, N E[(Z − q)₊] = q, Z standard normal. Ratings are noisy, so several are needed:

        w(v, s², N) = √v q(N v / (v + 0.8 s²))

    (with 0.4 for 0.8 this is Gittins' index to within 13 %, while fewer ratings are made than visits to come). What is learned of a user
    or a pair serves that user, N_u = 3 + t / n, n the users met. What is learned of an item serves all users, but each only once if pairs
    have a part of their own:

        score = mean + e / √(1 + (e / (top − mean))²)
        e² = (1 − ρ_n) (r w(τ², σ², N_u)² + r (1 + 4 c) w(v_u, s², N_u)² + (1 − 0.85 ρ) w(v_i, s², N_t)²)
        N_t = r (5 t + 3 n) + (1 − r) min(4 d² t / m, d n)

    r is the share of the user's rated items that is offered again; for a user without ratings, r = repeated ratings / (t − n). Where
    nothing is offered again, r = 0: every visit shows something new, so users are learned without being explored, and an item is of use
    once per user, to the d n users who may be shown it. m is the estimated number of items: those met, and the unmet ones by their share
    of the candidates. d is the share of them that this user may be shown; where it is small, another user may try the item at less cost.

    v_u is the variance of m_ui that comes from the user, given the item's mean, and v_i the one that comes from the item: one rating
    cannot reduce uncertainty shared by user and item. c = d / (d + s²), d the prior variance of ⟨a, b⟩, is the share of rating variance
    explained by the vectors: where it is large, a product of normals is overconfident. The prior variance of unrated items is inflated
    while few items have been rated; their prior mean is that of the latest first ratings. No score exceeds the top of the scale, so a user
    who has a top item is not explored further.

    Symbols: rank k; `top` the top of the scale, if none is given the largest rating seen; `returns` r, if it is known; `refreshes` a
    multiplier of the refits in turn; `informed`, `memory` and `optimism` exist to be switched off.

    Cost: select O(|I_u| k² + k³ + |C| k²), update O(R |I| k² + R k³), I_u the distinct items the user has rated, R the refits in turn:
    at most one per rating, and 110,000 k more in the life of a model; memory O((n + m) k² + distinct pairs). In a large catalogue the best
    item is found, exactly, without looking at most of it.

    Departures: the first vector of an item is drawn from the population, because the mean, zero, would teach users nothing.

    Reference: Lim and Teh, Variational Bayesian Approach to Movie Rating Prediction, 2007, for the model without r_ui and the population;
    MacKay, Bayesian Interpolation, 1992, for D; Weitzman, Optimal Search for the Best Alternative, 1979, and Gittins, Bandit Processes and
    Dynamic Allocation Indices, 1979, for the value of exploring.

    >>> from albatross import simulate
    >>> from albatross.environments.synthetic import Gaussian
    >>> recording = simulate(MeanField(), Gaussian(n_users=20, n_items=20, rank=2), horizon=2000, seed=0)
    >>> bool(recording.pseudo_regret[-500:].mean() < 0.2 * recording.pseudo_regret[:100].mean())
    True
    """

    division: ClassVar[Division | None] = Division(
        own=("user_moments", "residuals", "users", "pairs"),
        sums=("item_sums", "item_rights"),
        derived=("item_columns", "item_moments", "items"),
        population=(
            "user_squares",
            "user_spreads",
            "item_squares",
            "item_spreads",
            "user_variance",
            "item_variance",
            "figures",
            "counts",
        ),
        by_turns=(("refreshes", 0),),
        rows=("user_moments", "residuals", "pairs"),
    )

    statistics: ClassVar[tuple[str, ...]] = (
        "counts.ratings",
        "counts.repeats",
        "counts.users",
        "counts.items",
        "figures.average",
        "figures.squares",
        "figures.within",
    )

    rank: int = parameter(5, "length of the user and item vectors (k)", at_least=1)
    top: float | None = parameter(None, "top of the rating scale; none: the largest rating seen so far")
    refreshes: int = parameter(1, "other users, and items, refitted per rating; many more while vectors are found", at_least=0)
    returns: bool | None = parameter(None, "whether rated items are offered again; none: told by the world, or learned from the candidates")
    informed: bool = parameter(True, "whether the world may tell it that")
    memory: bool = parameter(True, "whether a user's own ratings of an item count beyond the model")
    optimism: float = parameter(1.0, "multiplier of the value of trying an item", at_least=0)

    def settings(self) -> "Settings":
        returns = math.nan if self.returns is None else float(self.returns)
        return Settings(math.inf if self.top is None else self.top, self.refreshes, returns, float(self.memory), self.optimism)

    def knowing(self, returns: bool) -> Self:
        return changed(self, returns=returns) if self.returns is None and self.informed else self

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "State":
        return State(*no_beliefs(self.rank, n_users, n_items))

    def scratch(self, n_users: int, n_items: int) -> Scratch:
        return no_scratch(self.rank, n_items, once=self.returns is False)


class Settings(NamedTuple):
    top: float
    """Infinite if it is not known."""
    refreshes: int
    returns: float
    """Not a number if it is not known."""
    memory: float
    optimism: float


class State(Beliefs):
    """The state of any mean-field factorization."""


@implements(select, State)
def choose_item(
    state: State, settings: Settings, scratch: Scratch, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    if state.counts[0].ratings == 0:
        return nothing_known(n_candidates, slate, random)
    user = np.int64(user)  # type: ignore[assignment]  # the type that learning has, so that nothing is compiled for two
    place_user(state, scratch.room, user)
    if is_searched(scratch.room.shelves, candidates, slate):
        return search(state, settings, scratch, user, candidates, candidates[:0], slate.means[:0], slate, random)
    position, propensity = NOT_TOLD, 0.0
    if not slate.whole and slate.best.size == 0:
        position, propensity = choose_best(state, settings, scratch, user, candidates, candidates[:0], slate, random)
    if position == NOT_TOLD:
        rank_items(state, settings, scratch, user, candidates, slate)
        position, propensity = any_best(slate.scores, n_candidates, random)
    return position, propensity


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


@implements(carry, State)
def carry_user(
    state: State, settings: Settings, scratch: Scratch, user: int, arriving: bool, room: Rows, random: np.random.Generator
) -> None:
    carry_mean_field(state, scratch.room, user, arriving, room)


@implements(suppose, State)
def choose_supposing(
    state: State,
    settings: Settings,
    scratch: Scratch,
    user: int,
    candidates: Items,
    items: Items,
    rewards: Vector,
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    """What the ratings would teach about the items is left out: it serves other users more than this one."""
    n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
    if state.counts[0].ratings == 0:
        return nothing_known(n_candidates, slate, random)
    user = np.int64(user)  # type: ignore[assignment]  # the type that learning has, so that nothing is compiled for two
    place_user(state, scratch.room, user)
    if items.size > 0:
        suppose_ratings(state, scratch, user, items, rewards)
    if is_searched(scratch.room.shelves, candidates, slate):
        return search(state, settings, scratch, user, candidates, items, rewards, slate, random)
    position, propensity = NOT_TOLD, 0.0
    if not slate.whole and slate.best.size == 0 and all_met_as_predicted(state, items, rewards):
        position, propensity = choose_best(state, settings, scratch, user, candidates, items, slate, random)
    if position == NOT_TOLD:
        rank_items(state, settings, scratch, user, candidates, slate)
        adjust_supposed(state, settings, scratch, user, candidates, n_candidates, items, rewards, slate)
        position, propensity = any_best(slate.scores, n_candidates, random)
    return position, propensity


@implements(attribute, State)
def parts_of_mean(state: State, settings: Settings, scratch: Scratch, user: int, item: int, items: Items, parts: Vector) -> int:
    return attribute_mean(state, settings, scratch, user, item, items, parts)


@implements(believe, State)
def belief_about_user(state: State, settings: Settings, scratch: Scratch, user: int, belief: Belief) -> int:
    """The vector, and last the offset."""
    work = scratch.room.work
    size = work.mean.size
    if belief.center.size >= size:
        belief.center.fill(0.0)
        belief.covariance[:] = 0.0
        belief.radius[0] = 1.0
        if state.counts[0].ratings > 0:
            place_user(state, scratch.room, user)
            for a in range(size):
                belief.center[a] = work.mean[a]
            gram_of_columns(work.whitener, state.figures[0].noise, belief.covariance)
    return size


@implements(width, State)
def width_of_item(state: State, settings: Settings, scratch: Scratch, user: int, item: int, more: int) -> float:
    return width_of_pair(state, settings, scratch, user, item, more)


@implements(divide, State)
def leave_drift_control(state: State) -> None:
    state.counts[0].rebuilt = ELSEWHERE


@implements(report, State)
def report_added(state: State, others: State, since: State, figures: Vector) -> int:
    return report_population(state, others, since, figures)


@implements(merge, State)
def merge_added(state: State, figures: Vector) -> None:
    merge_population(state, figures)


@implements(refit, State)
def refit_to_all(state: State, settings: Settings, scratch: Scratch, others: State, items: Items, random: np.random.Generator) -> bool:
    return refit_items(state, settings.refreshes, scratch.room, others, items, random)
