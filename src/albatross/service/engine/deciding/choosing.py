"""How a recommendation is made: eligible items, the random floor, propensities, and explanations."""

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent, choose, room_for_best
from albatross.core.asking.together import best_of_slate, choose_supposing
from albatross.core.streams import stream
from albatross.kernels.operations import ALL_ITEMS, Items, offers, suppose
from albatross.service.api.answers import ConfidenceRegion, Explanation, HistoryEntry, UserView
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import Recommend
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.reasoning import CLOSE, explain, finite, reasons_of, region_of, shown_items
from albatross.service.engine.learned.ledger import rated_by
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.engine.learned.pending import PENDING, waiting_at
from albatross.service.storage.events import Decided, Genesis, Placed, Rules

AS_EXPECTED = np.full(PENDING, np.nan)
"""Ratings of pending items, taken to be exactly as predicted."""


class Outcome(NamedTuple):
    """A decision for the log, and the rest of its answer."""

    event: Decided
    explanation: Explanation | None


def decide_plainly(view: Overlay, request: Recommend, seq: int, model_seq: int, at: float, incarnation: str = "") -> Outcome:
    """Decide what event `seq` shows, without rules.

    Its random stream depends only on seed, shard and `seq`, so that decisions can be repeated.
    """
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
        listed = room_for_close(remaining) if request.explain is True else ALL_ITEMS
        best, certainty = choose_counting(agent, user, remaining, counted, random, by_chance, listed)
        if best < 0:  # the policy would not use the pending items, and would show the same again
            remaining, counted = others(remaining, pending), NONE
            listed = room_for_close(remaining) if request.explain is True else ALL_ITEMS
            best, certainty = choose_counting(agent, user, remaining, counted, random, by_chance, listed)
        position = int(random.integers(remaining.size)) if by_chance else best
        likely = certainty if position == best else likelihood_of_other(slate.scores[: remaining.size], position, certainty)
        propensity = None if math.isnan(likely) else floor / remaining.size + (1.0 - floor) * likely
        score, mean = finite(slate.scores.item(position)), finite(slate.means.item(position))
        placed.append(Placed(view.name_of(remaining.item(position)), score, mean, propensity, by_chance))
        if len(placed) == request.n or remaining.size == 1:
            break
        remaining = np.delete(remaining, position)
    explanation = None
    if request.explain:
        best_ranked = best_of_slate(agent, random, remaining, listed) if request.explain is True else []
        explanation = explain(view, agent, request.whom, pending.tolist(), placed, best_ranked, request.explain is True)
    return outcome_of(model, request, model_seq, at, incarnation, placed, explanation)


def outcome_of(
    model: Model,
    request: Recommend,
    model_seq: int,
    at: float,
    incarnation: str,
    placed: list[Placed],
    explanation: Explanation | None,
    rules: Rules | None = None,
) -> Outcome:
    """A decision as written in the log: with its explanation only if the same request id may ask for it again."""
    event = Decided(
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
        reasons=None if explanation is None or request.request_id is None else reasons_of(explanation),
        incarnation=incarnation,
        rules=rules,
        item_version=model.version,
    )
    return Outcome(event, explanation)


def room_for_close(candidates: Items) -> Items:
    """Space for the policy to list the item it shows, and the next best."""
    return room_for_best(min(CLOSE + 1, candidates.size))


def others(candidates: Items, pending: Items) -> Items:
    """The candidates that are not pending, if there are any."""
    others = candidates[~np.isin(candidates, pending)]
    return others if others.size else candidates


def choose_counting(
    agent: Agent, user: int, candidates: Items, pending: Items, random: np.random.Generator, whole: bool = True, best: Items = ALL_ITEMS
) -> tuple[int, float]:
    """Let the policy choose as if the pending items had been rated exactly as predicted, so that other items get their turn.

    Nothing of that is learned. Fills the agent's slate; unless `whole`, perhaps only the places of the choice and of the `best`.
    """
    if offers(agent.state, suppose):
        return choose_supposing(agent, random, user, candidates, pending, AS_EXPECTED[: pending.size], whole, best)
    chosen: tuple[int, float] = agent.run(choose, random, user, candidates, whole, best)
    return chosen


def decision_stream(model: Model, seq: int) -> np.random.Generator:
    """The random stream of one decision."""
    return model.turner.turn(stream_name(model.genesis, seq))


def stream_name(genesis: Genesis, seq: int) -> bytes:
    where = b" on shard %d" % genesis.shard if genesis.shard else b""  # otherwise all shards would draw the same numbers
    return blake2b(b"%d decision %d%b" % (genesis.seed, seq, where), digest_size=32).digest()


def likelihood_of_other(scores: NDArray[np.float64], position: int, certainty: float) -> float:
    """The probability with which a policy that chose another item with probability `certainty` would have chosen this one.

    It is known if the policy chooses with certainty, or all best items with equal probability. Otherwise it is NaN.
    """
    if certainty == 1.0:
        return 0.0
    best = scores == scores.max()
    if not math.isclose(certainty * np.count_nonzero(best), 1.0):
        return math.nan
    return certainty if best[position] else 0.0


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
        given = (
            "the catalogue"
            if request.candidates is None
            else f"{len(request.candidates)} {'candidate' if len(request.candidates) == 1 else 'candidates'}"
        )
        raise NoEligibleCandidate(
            f"of {given}, nothing is left to show {request.whom!r}: all are retired, not available, excluded or seen; "
            "accepted: at least one candidate"
        )
    return allowed


def best_of(agent: Agent, view: Overlay, candidates: Items, n: int, listed: Items = ALL_ITEMS) -> list[Placed]:
    """The n candidates with the best scores, best first, ties by position: as the policy lists them, or from a filled slate."""
    scores, means = agent.slate.scores, agent.slate.means
    best = agent.best(min(n, candidates.size), candidates.size, listed)
    return [Placed(view.name_of(int(candidates[at])), finite(scores[at]), finite(means[at]), None, False) for at in best]


def choose_best(agent: Agent, view: Overlay, user: int, candidates: Items, n: int, random: np.random.Generator) -> list[Placed]:
    """The n candidates with the best scores, best first, ties by position."""
    room = room_for_best(min(n, candidates.size))
    choose_counting(agent, user, candidates, NONE, random, room.size == 0, room)
    return best_of(agent, view, candidates, n, room)


def view_user(model: Model, user: str, n: int, history: Sequence[HistoryEntry] = ()) -> UserView:
    """The belief about a known user, and the best items for them."""
    row = model.row_of(user)
    region = region_of(model.accounts.of(model.agent, stream(model.genesis.seed, "viewing"), row, False))
    top: list[Placed] = []
    if model.shown.size and n > 0:
        top = choose_best(model.agent, Overlay(model), row, model.shown, n, stream(model.genesis.seed, "viewing"))
    return UserView(
        user=user,
        ratings=model.ratings_of(user),
        pending=[model.items.names[item] for item in waiting_at(model.pending.get(user), model.seq + 1)],
        vector=_vector(model.agent, row, region),
        ellipsoid=region,
        top=shown_items(top),
        model_seq=model.seq,
        history=list(history),
    )


def _vector(agent: Agent, row: int, region: ConfidenceRegion | None) -> list[float] | None:
    """The policy's own vector of a user, if it has one; else the center of its belief."""
    factors = getattr(agent.state, "user_factors", None)
    if isinstance(factors, np.ndarray) and factors.ndim == 2:
        vector: list[float] = factors[row].tolist()
        return vector
    return None if region is None else region.center
