"""How a recommendation is made: who is eligible, a floor of chance, true propensities, and why."""

import math
import sys
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from albatross.core.agent import Agent, choose, room_for_best
from albatross.core.beliefs import belief_about, choose_supposing, widths_of
from albatross.core.streams import stream
from albatross.kernels.operations import ALL_ITEMS, Belief, Items, offers, suppose
from albatross.service.api.answers import ConfidenceRegion, HistoryEntry, ShownItem, UserView
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import Recommend
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.reasoning import why
from albatross.service.engine.learned.ledger import rated_by
from albatross.service.engine.learned.model import NONE, PENDING, Model, waiting_at
from albatross.service.storage.events import Decided, Placed, ReasonForItem, Reasons, Region, Rules

LARGEST = sys.float_info.max
AS_EXPECTED = np.full(PENDING, np.nan)
"""Ratings that are waited for, and are taken to come exactly as expected."""
CLOSE = 5
"""How many of the items that were not shown a decision that explains itself remembers."""


def decide(view: Overlay, request: Recommend, seq: int, model_seq: int, at: float, incarnation: str = "") -> Decided:
    """Decide what event `seq` shows. Its randomness is named by the seed and `seq` alone, so that decisions replay, too."""
    model = view.model
    pending = view.waiting_for(request.whom, seq)
    remaining = eligible(view, request, pending, at)
    user = model.row_of(request.whom)
    agent = view.agent_for(user)
    counted = pending
    if pending.size and not offers(agent.state, suppose):
        remaining, counted = others(remaining, pending), NONE
    random, floor = decision_stream(model, seq), model.genesis.floor
    slate = agent.slate
    placed: list[Placed] = []
    while True:
        by_chance = random.random() < floor
        whole = by_chance or request.explain
        best, certainty = choose_counting(agent, user, remaining, counted, random, whole)
        if best < 0:  # the policy does not look at what it has seen since, so that it would show the same again
            remaining, counted = others(remaining, pending), NONE
            best, certainty = choose_counting(agent, user, remaining, counted, random, whole)
        position = int(random.integers(remaining.size)) if by_chance else best
        likely = certainty if position == best else likelihood_of_other(slate.scores[: remaining.size], position, certainty)
        propensity = None if math.isnan(likely) else floor / remaining.size + (1.0 - floor) * likely
        score, mean = finite(slate.scores.item(position)), finite(slate.means.item(position))
        placed.append(Placed(view.name_of(remaining.item(position)), score, mean, propensity, by_chance))
        if len(placed) == request.n or remaining.size == 1:
            break
        remaining = np.delete(remaining, position)
    reasons = None
    if request.explain:
        close = [shown for shown in best_of(agent, view, remaining, CLOSE + 1) if shown.item != placed[-1].item][:CLOSE]
        reasons = replace(reasons_for(view, agent, request.whom, pending, placed), close=close)
    return event_of(model, request, model_seq, at, incarnation, placed, reasons)


def event_of(
    model: Model,
    request: Recommend,
    model_seq: int,
    at: float,
    incarnation: str,
    placed: list[Placed],
    reasons: Reasons | None,
    rules: Rules | None = None,
) -> Decided:
    """A decision as it stands in the log."""
    return Decided(
        at=at,
        user=request.whom,
        n=request.n,
        candidates=request.candidates,
        exclude=request.exclude,
        exclude_seen=request.exclude_seen,
        request_id=request.request_id,
        model_seq=model_seq,
        user_ratings=model.ratings_of(request.whom),
        items=placed,
        reasons=reasons,
        incarnation=incarnation,
        rules=rules,
    )


def others(candidates: Items, pending: Items) -> Items:
    """The candidates that do not wait for a rating, if there are any."""
    others = candidates[~np.isin(candidates, pending)]
    return others if others.size else candidates


def choose_counting(
    agent: Agent, user: int, candidates: Items, pending: Items, random: np.random.Generator, whole: bool = True, best: Items = ALL_ITEMS
) -> tuple[int, float]:
    """Let the policy choose, as if the ratings that are waited for had come exactly as expected: the next decision looks elsewhere.

    Nothing of that is learned. Fills the agent's slate; unless the `whole` is wanted, maybe only where the choice and the `best` are.
    """
    chosen: tuple[int, float]
    if offers(agent.state, suppose):
        chosen = agent.run(choose_supposing, random, user, candidates, pending, AS_EXPECTED[: pending.size], whole, best)
    else:
        chosen = agent.run(choose, random, user, candidates, whole, best)
    return chosen


def decision_stream(model: Model, seq: int) -> np.random.Generator:
    """The stream of one decision."""
    shard = model.genesis.shard
    where = b" on shard %d" % shard if shard else b""  # otherwise all shards would make the same guesses
    return model.turner.turn(blake2b(b"%d decision %d%b" % (model.genesis.seed, seq, where), digest_size=32).digest())


def likelihood_of_other(scores: NDArray[np.float64], position: int, certainty: float) -> float:
    """How likely a policy that chose something else with this probability would have chosen the candidate at this position.

    Known where it chooses for certain, or each of the best with equal probability. What else it might have drawn, it does not tell.
    """
    if certainty == 1.0:
        return 0.0
    best = scores == scores.max()
    if not math.isclose(certainty * np.count_nonzero(best), 1.0):
        return math.nan
    return certainty if best[position] else 0.0


def finite(value: float) -> float:
    """A policy that must try everything once scores it infinite, which JSON cannot say: the largest number there is stands for it."""
    number = float(value)
    return number if -LARGEST <= number <= LARGEST else max(-LARGEST, min(number, LARGEST))


def eligible(view: Overlay, request: Recommend, pending: Items, at: float) -> Items:
    """The items that may be shown at this time. Refuses a request that leaves none."""
    allowed = view.shown
    if request.candidates is not None:
        numbers = (view.number_of(name) for name in dict.fromkeys(request.candidates))
        retired = view.retired
        allowed = np.array([number for number in numbers if number is not None and number not in retired], np.int32)
    allowed = view.model.described.available(allowed, at)
    if request.exclude or request.exclude_seen != "none":
        unwanted = [number for number in map(view.number_of, request.exclude) if number is not None]
        user = view.model.users.numbers.get(request.whom)
        barred: NDArray[np.bool_] = np.zeros(view.n_items, np.bool_)
        barred[unwanted] = True
        if user is not None and request.exclude_seen != "none":
            barred[rated_by(view.model.ledger, user)] = True
        if request.exclude_seen == "pending":
            barred[pending] = True
        allowed = allowed[~barred[allowed]]
    if allowed.size == 0:
        if not view.n_items:
            raise NoEligibleCandidate("there are no items yet; accepted: candidates, or items that were upserted or rated before")
        given = "the catalogue" if request.candidates is None else f"{len(request.candidates)} candidates"
        raise NoEligibleCandidate(
            f"of {given}, nothing is left to show {request.whom!r}: all are retired, not available, excluded or seen; "
            "accepted: at least one candidate"
        )
    return allowed


def best_of(agent: Agent, view: Overlay, candidates: Items, n: int, listed: Items = ALL_ITEMS) -> list[Placed]:
    """The n candidates with the best scores, best first; of equals, the first: as the policy lists them, or of a slate filled for them."""
    scores, means = agent.slate.scores, agent.slate.means
    best = agent.best(min(n, candidates.size), candidates.size, listed)
    return [Placed(view.name_of(int(candidates[at])), finite(scores[at]), finite(means[at]), None, False) for at in best]


def choose_best(agent: Agent, view: Overlay, user: int, candidates: Items, n: int, random: np.random.Generator) -> list[Placed]:
    """The n candidates with the best scores, best first; of equals, the first."""
    room = room_for_best(min(n, candidates.size))
    choose_counting(agent, user, candidates, NONE, random, room.size == 0, room)
    return best_of(agent, view, candidates, n, room)


def shown_items(placed: list[Placed]) -> list[ShownItem]:
    return [
        ShownItem(item.item, rank, item.score, item.mean, item.score - item.mean, item.propensity)
        for rank, item in enumerate(placed, start=1)
    ]


def reasons_for(view: Overlay, agent: Agent, user: str, pending: Items, placed: list[Placed]) -> Reasons:
    model = view.model
    row = model.row_of(user)
    belief = belief_about(agent, row)
    own = rated_by(model.ledger, row) if user in model.users else NONE
    items = []
    for shown in placed:
        number = view.number_of(shown.item) or 0
        widths = widths_of(agent, row, number)
        items.append(
            ReasonForItem(
                item=shown.item,
                mean=shown.mean,
                bonus=shown.score - shown.mean,
                score=shown.score,
                item_ratings=int(model.ledger.item_ratings[number]) if number < len(model.items) else 0,
                own_ratings=int(np.count_nonzero(own == number)),
                explored=shown.explored,
                width=None if widths is None else widths.now,
                width_after=None if widths is None else widths.after,
                **why(model, agent, row, number, shown.mean, shown.explored)._asdict(),
            )
        )
    waiting = [view.name_of(int(item)) for item in pending]
    return Reasons(model.ratings_of(user), waiting, items, None if belief is None else Region(*_axes(belief)))


def _axes(belief: Belief) -> tuple[list[float], float, list[float], list[list[float]]]:
    """Center, radius, and the axes of the region: eigenvalues of the inverse covariance, the least first, and their vectors."""
    spreads, vectors = np.linalg.eigh(belief.covariance)
    inverse = 1.0 / np.maximum(spreads[::-1], np.finfo(np.float64).tiny)
    return belief.center.tolist(), float(belief.radius[0]), inverse.tolist(), vectors.T[::-1].tolist()


def view_user(model: Model, user: str, n: int, history: Sequence[HistoryEntry] = ()) -> UserView:
    """What is believed of a known user, and what they would like best."""
    row = model.row_of(user)
    belief = belief_about(model.agent, row)
    top: list[Placed] = []
    if model.shown.size and n > 0:
        top = choose_best(model.agent, Overlay(model), row, model.shown, n, stream(model.genesis.seed, "viewing"))
    return UserView(
        user=user,
        ratings=model.ratings_of(user),
        pending=[model.items.names[item] for item in waiting_at(model.pending.get(user), model.seq + 1)],
        vector=_vector(model.agent, row, belief),
        ellipsoid=None if belief is None else ConfidenceRegion(*_axes(belief)),
        top=shown_items(top),
        model_seq=model.seq,
        history=list(history),
    )


def _vector(agent: Agent, row: int, belief: Belief | None) -> list[float] | None:
    """The policy's own vector of a user, where it keeps one; else the center of what it believes."""
    factors = getattr(agent.state, "user_factors", None)
    if isinstance(factors, np.ndarray) and factors.ndim == 2:
        vector: list[float] = factors[row].tolist()
        return vector
    return None if belief is None else belief.center.tolist()
