"""How a recommendation is made: who is eligible, a floor of chance, true propensities, and why."""

import hashlib
import math
import sys

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.streams import stream
from albatross.kernels.operations import Items
from albatross.service.api.answers import ConfidenceRegion, ShownItem, UserView
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import Recommend
from albatross.service.engine.ellipsoids import Place, choose_counting, counts_pending, place_of
from albatross.service.engine.ledger import rated_by
from albatross.service.engine.model import NONE, Model, waiting_at
from albatross.service.engine.overlay import Overlay
from albatross.service.storage.events import Decided, Placed, ReasonForItem, Reasons, Region


def decide(view: Overlay, request: Recommend, seq: int, model_seq: int, at: float, incarnation: str = "") -> Decided:
    """Decide what event `seq` shows. Its randomness is named by the seed and `seq` alone, so that decisions replay, too."""
    model = view.model
    pending = view.waiting_for(request.user, seq)
    remaining = eligible(view, request, pending)
    user = model.row_of(request.user)
    agent = view.agent_for(user)
    if pending.size and not counts_pending(agent, user):
        others = remaining[~np.isin(remaining, pending)]
        remaining = others if others.size else remaining
    random, floor, placed = _decision_stream(model, seq), model.genesis.floor, []
    while True:
        by_chance = random.random() < floor
        best, certainty = choose_counting(agent, user, remaining, pending, random, whole=by_chance)
        position = int(random.integers(remaining.size)) if by_chance else best
        propensity = _propensity(floor, remaining.size, certainty, position == best)
        score, mean = _finite(agent.slate.scores[position]), _finite(agent.slate.means[position])
        placed.append(Placed(view.name_of(int(remaining[position])), score, mean, propensity, by_chance))
        if len(placed) == request.n or remaining.size == 1:
            break
        remaining = np.delete(remaining, position)
    return Decided(
        at=at,
        user=request.user,
        n=request.n,
        candidates=request.candidates,
        exclude=request.exclude,
        exclude_seen=request.exclude_seen,
        request_id=request.request_id,
        model_seq=model_seq,
        user_ratings=model.ratings_of(request.user),
        items=placed,
        reasons=_reasons(view, agent, request.user, pending, placed) if request.explain else None,
        incarnation=incarnation,
    )


def _decision_stream(model: Model, seq: int) -> np.random.Generator:
    """Turn the model's generator to the stream of one decision: many times quicker than seeding a new one."""
    name = hashlib.blake2b(f"{model.genesis.seed} decision {seq}".encode(), digest_size=32).digest()
    position, increment = int.from_bytes(name[:16], "little"), int.from_bytes(name[16:], "little") | 1
    model.random.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": position, "inc": increment},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return model.random


def _propensity(floor: float, n_candidates: int, certainty: float, best: bool) -> float | None:
    """The probability of the item, over both ways it may be chosen; `certainty` is that of the policy's own choice."""
    by_chance = floor / n_candidates
    if best:
        return None if math.isnan(certainty) else by_chance + (1.0 - floor) * certainty
    return by_chance if certainty == 1.0 else None  # what else a drawing policy might have drawn, it does not tell


def _finite(value: float) -> float:
    """A policy that must try everything once scores it infinite, which JSON cannot say: the largest number there is stands for it."""
    return max(-sys.float_info.max, min(float(value), sys.float_info.max))


def eligible(view: Overlay, request: Recommend, pending: Items) -> Items:
    """The items that may be shown. Refuses a request that leaves none."""
    allowed = view.shown
    if request.candidates is not None:
        numbers = (view.number_of(name) for name in dict.fromkeys(request.candidates))
        retired = view.retired
        allowed = np.array([number for number in numbers if number is not None and number not in retired], np.int32)
    unwanted = [number for number in map(view.number_of, request.exclude) if number is not None]
    user = view.model.users.numbers.get(request.user)
    if unwanted or request.exclude_seen != "none":
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
            f"of {given}, nothing is left to show {request.user!r}: all are retired, excluded or seen; accepted: at least one candidate"
        )
    return allowed


def shown_items(placed: list[Placed]) -> list[ShownItem]:
    return [
        ShownItem(item.item, rank, item.score, item.mean, item.score - item.mean, item.propensity)
        for rank, item in enumerate(placed, start=1)
    ]


def _reasons(view: Overlay, agent: Agent, user: str, pending: Items, placed: list[Placed]) -> Reasons:
    model = view.model
    row = model.row_of(user)
    place = place_of(agent, row)
    own = rated_by(model.ledger, row) if user in model.users else NONE
    items = []
    for shown in placed:
        number = view.number_of(shown.item) or 0
        width, width_after = (None, None) if place is None else _widths(place, agent.state.item_factors[number])
        items.append(
            ReasonForItem(
                item=shown.item,
                mean=shown.mean,
                bonus=shown.score - shown.mean,
                score=shown.score,
                item_ratings=int(model.ledger.item_ratings[number]) if number < len(model.items) else 0,
                own_ratings=int(np.count_nonzero(own == number)),
                explored=shown.explored,
                width=width,
                width_after=width_after,
            )
        )
    waiting = [view.name_of(int(item)) for item in pending]
    return Reasons(model.ratings_of(user), waiting, items, None if place is None else Region(*_axes(place)))


def _widths(place: Place, vector: NDArray[np.float64]) -> tuple[float, float]:
    """The width for an item, radius · |x|_V⁻¹, and the same after one more rating of it, with the present radius."""
    try:
        solved = np.linalg.solve(place.gram, vector)
    except np.linalg.LinAlgError:  # ratings so large that the ridge is lost in them
        solved = np.linalg.lstsq(place.gram, vector)[0]
    square = max(float(vector @ solved), 0.0)
    return place.radius * math.sqrt(square), place.radius * math.sqrt(square / (1.0 + square))


def _axes(place: Place) -> tuple[list[float], float, list[float], list[list[float]]]:
    eigenvalues, vectors = np.linalg.eigh(place.gram)
    return place.center.tolist(), place.radius, eigenvalues.tolist(), vectors.T.tolist()


def view_user(model: Model, user: str, n: int) -> UserView:
    """What is believed of a known user, and what they would like best."""
    row = model.row_of(user)
    place = place_of(model.agent, row)
    top: list[Placed] = []
    if model.shown.size and n > 0:
        choose_counting(model.agent, row, model.shown, NONE, stream(model.genesis.seed, "viewing"))
        scores, means = model.agent.slate.scores[: model.shown.size], model.agent.slate.means
        best = np.argsort(-scores, kind="stable")[:n]
        top = [Placed(model.items.names[model.shown[at]], _finite(scores[at]), _finite(means[at]), None, False) for at in best]
    factors = getattr(model.agent.state, "user_factors", None)
    vector = factors[row].tolist() if isinstance(factors, np.ndarray) and factors.ndim == 2 else None
    return UserView(
        user=user,
        ratings=model.ratings_of(user),
        pending=[model.items.names[item] for item in waiting_at(model.pending.get(user), model.seq + 1)],
        vector=vector,
        ellipsoid=None if place is None else ConfidenceRegion(*_axes(place)),
        top=shown_items(top),
        model_seq=model.seq,
    )
