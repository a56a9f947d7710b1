"""Where a user may be, for policies that keep an ellipsoid per user; and what unanswered recommendations do to it.

A recommendation that waits for its rating is counted as a visit: its item x enters V = V + x xᵀ, so the width shrinks and the next decision
looks elsewhere, but the expectation stays: it is as if the rating had come exactly as expected. Nothing of that is
learned: V is changed for one decision, in working memory. Policies without an ellipsoid cannot do that; for them what waits
is not shown again.
"""

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent, choose
from albatross.kernels.alternating import Ellipsoid, place_user
from albatross.kernels.compiling import program
from albatross.kernels.linear import add_outer, dot, factorize, log_determinant, solve_lower, solve_upper, unpack
from albatross.kernels.operations import Items, Slate, select
from albatross.policies import alb_rs, oful


class Place(NamedTuple):
    """|q − center|_V ≤ radius"""

    center: NDArray[np.float64]
    gram: NDArray[np.float64]
    """V"""
    radius: float


def place_of(agent: Agent, user: int) -> Place | None:
    """The user's ellipsoid given the present item vectors; none where the policy has no such thing."""
    state, scratch = agent.state, agent.scratch
    settings: Any = agent.settings
    if isinstance(scratch, Ellipsoid):
        scratch.current[0] = -1  # later steps overwrite `gram`, which is wanted here
        program(place_user, type(state))(state, settings, scratch, user)
        lower = np.tril(scratch.gram)
        return Place(scratch.center.copy(), lower + np.tril(lower, -1).T, float(scratch.radius[0]))
    if isinstance(state, oful.State):
        rank = state.user_moments.shape[1]
        gram, factor, center = np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros(rank)
        unpack(state.user_grams[user], settings.ridge, gram)
        factorize(gram, factor, settings.ridge)
        solve_lower(factor, state.user_moments[user], center)
        solve_upper(factor, center, center)
        growth = max(log_determinant(factor) - rank * float(np.log(settings.ridge)), 0.0)
        radius = settings.noise * np.sqrt(growth - 2.0 * np.log(settings.confidence)) + np.sqrt(settings.ridge) * settings.norm_bound
        return Place(center, gram + np.tril(gram, -1).T, float(radius))
    return None


def counts_pending(agent: Agent, user: int) -> bool:
    """Whether the next decision for this user would take unanswered recommendations into account."""
    if isinstance(agent.state, alb_rs.State):  # between two switches the decision does not look at V
        return bool(alb_rs.is_due(agent.state, cast(alb_rs.Settings, agent.settings), user))
    return isinstance(agent.scratch, Ellipsoid) or isinstance(agent.state, oful.State)


def choose_counting(
    agent: Agent, user: int, candidates: Items, pending: Items, random: np.random.Generator, whole: bool = True
) -> tuple[int, float]:
    """Let the policy choose, with what waits for a rating counted as far as the policy can.

    Fills the agent's slate; unless the `whole` is wanted, maybe only where the choice is.
    """
    state, settings, scratch = agent.state, agent.settings, agent.scratch
    slate = Slate(agent.slate.scores, agent.slate.means, whole)
    chosen: tuple[int, float]
    if pending.size == 0 or not counts_pending(agent, user):
        chosen = program(choose, type(state))(state, settings, scratch, user, candidates, slate, random)
    elif isinstance(state, oful.State):
        gram, moment = state.user_grams[user].copy(), state.user_moments[user].copy()
        center = place_of(agent, user).center  # type: ignore[union-attr]
        for item in pending:
            _count_expected(state, user, state.item_factors[item].copy(), center)
        try:
            chosen = program(choose, type(state))(state, settings, scratch, user, candidates, slate, random)
        finally:
            state.user_grams[user], state.user_moments[user] = gram, moment
    else:
        chosen = program(choose_widened, type(state))(state, settings, scratch, user, candidates, pending, slate, random)
    return chosen


def choose_widened(
    state: Any, settings: Any, scratch: Any, user: int, candidates: Items, pending: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    scratch.current[0] = -1  # later steps overwrite `gram`, which is built upon here
    place_user(state, settings, scratch, user)
    vector = scratch.vector
    for position in range(pending.size):
        for a in range(vector.size):
            vector[a] = state.item_factors[pending[position], a]
        add_outer(scratch.gram, vector, 1.0)
    factorize(scratch.gram, scratch.factor, settings.user_ridge)
    chosen = select(state, settings, scratch, user, candidates, slate, random)
    scratch.current[0] = -1  # the next step places the user anew
    return chosen


def _count_expected(state: Any, user: int, vector: NDArray[np.float64], center: NDArray[np.float64]) -> None:
    """Add a rating of exactly what is expected."""
    position, expected = 0, dot(center, vector)
    for a in range(vector.size):
        for b in range(a + 1):
            state.user_grams[user, position] += vector[a] * vector[b]
            position += 1
        state.user_moments[user, a] += expected * vector[a]
