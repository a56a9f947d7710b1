"""How a recommendation is made: who is eligible, a floor of chance, true propensities, and why."""

import hashlib
import math
import sys

import numpy as np
from numpy.typing import NDArray

from albatross.core.streams import stream
from albatross.kernels.operations import Items
from albatross.service.ellipsoids import Place, choose_counting, counts_pending, place_of
from albatross.service.events import Decided, Placed
from albatross.service.ledger import rated_by
from albatross.service.messages import (
    Ellipsoid,
    Explanation,
    ItemExplanation,
    NoEligibleCandidate,
    Recommend,
    ShownItem,
    UserView,
)
from albatross.service.model import NONE, Model


def decide(model: Model, request: Recommend, seq: int, model_seq: int, at: float) -> Decided:
    """Decide what event `seq` shows. Its randomness is named by the seed and `seq` alone, so that decisions replay, too."""
    user = model.row_of(request.user)
    if user == len(model.users):
        model.make_room(user + 1, len(model.items))
    pending = model.waiting_for(request.user, seq)
    remaining = _eligible(model, request, pending)
    if pending.size and not counts_pending(model.agent, user):
        others = remaining[~np.isin(remaining, pending)]
        remaining = others if others.size else remaining
    random, floor, placed = _decision_stream(model, seq), model.genesis.floor, []
    while True:
        by_chance = random.random() < floor
        best, certainty = choose_counting(model.agent, user, remaining, pending, random)
        position = int(random.integers(remaining.size)) if by_chance else best
        propensity = _propensity(floor, remaining.size, certainty, position == best)
        score, mean = _finite(model.agent.slate.scores[position]), _finite(model.agent.slate.means[position])
        placed.append(Placed(model.items.names[remaining[position]], score, mean, propensity, by_chance))
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
        explanation=_explain(model, request.user, pending, placed) if request.explain else None,
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


def _eligible(model: Model, request: Recommend, pending: Items) -> Items:
    eligible = model.shown
    if request.candidates is not None:
        numbers = (model.items.numbers.get(name) for name in dict.fromkeys(request.candidates))
        eligible = np.array([number for number in numbers if number is not None and number not in model.retired], np.int32)
    barred: NDArray[np.bool_] | None = None
    unwanted = [model.items.numbers[name] for name in request.exclude if name in model.items.numbers]
    user = model.users.numbers.get(request.user)
    if unwanted or request.exclude_seen != "none":
        barred = np.zeros(len(model.items), np.bool_)
        barred[unwanted] = True
        if user is not None and request.exclude_seen != "none":
            barred[rated_by(model.ledger, user)] = True
        if request.exclude_seen == "pending":
            barred[pending] = True
        eligible = eligible[~barred[eligible]]
    if eligible.size == 0:
        if not len(model.items):
            raise NoEligibleCandidate("there are no items yet; accepted: candidates, or items that were upserted or rated before")
        given = "the catalogue" if request.candidates is None else f"{len(request.candidates)} candidates"
        raise NoEligibleCandidate(
            f"of {given}, nothing is left to show {request.user!r}: all are retired, excluded or seen; accepted: at least one candidate"
        )
    return eligible


def shown_items(placed: list[Placed]) -> list[ShownItem]:
    return [
        ShownItem(item.item, rank, item.score, item.mean, item.score - item.mean, item.propensity)
        for rank, item in enumerate(placed, start=1)
    ]


def _explain(model: Model, user: str, pending: Items, placed: list[Placed]) -> Explanation:
    row = model.row_of(user)
    place = place_of(model.agent, row)
    own = rated_by(model.ledger, row)
    items = []
    for shown in placed:
        number = model.items.numbers[shown.item]
        width, width_after = (None, None) if place is None else _widths(place, model.agent.state.item_factors[number])
        items.append(
            ItemExplanation(
                item=shown.item,
                mean=shown.mean,
                bonus=shown.score - shown.mean,
                score=shown.score,
                item_ratings=int(model.ledger.item_ratings[number]),
                own_ratings=int(np.count_nonzero(own == number)),
                explored=shown.explored,
                width=width,
                width_after=width_after,
            )
        )
    waiting = [model.items.names[item] for item in pending]
    return Explanation(model.ratings_of(user), waiting, items, None if place is None else _ellipsoid(place))


def _widths(place: Place, vector: NDArray[np.float64]) -> tuple[float, float]:
    """The width for an item, radius · |x|_V⁻¹, and the same after one more rating of it, with the present radius."""
    square = max(float(vector @ np.linalg.solve(place.gram, vector)), 0.0)
    return place.radius * math.sqrt(square), place.radius * math.sqrt(square / (1.0 + square))


def _ellipsoid(place: Place) -> Ellipsoid:
    eigenvalues, vectors = np.linalg.eigh(place.gram)
    return Ellipsoid(place.center.tolist(), place.radius, eigenvalues.tolist(), vectors.T.tolist())


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
        pending=[model.items.names[item] for item in model.waiting_for(user, model.seq + 1)],
        vector=vector,
        ellipsoid=None if place is None else _ellipsoid(place),
        top=shown_items(top),
        model_seq=model.seq,
    )
