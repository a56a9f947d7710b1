"""Simple recommendations of a group, decided in a few calls of compiled code: one item for a known user, perhaps under a condition.

The results are the same as one by one, bit for bit. Other requests, and refusals, are left to the usual path.
"""

import math
from collections.abc import Container, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from albatross.core.asking.together import NOT_CHOSEN, Chosen, choose_together
from albatross.kernels.operations import Items, offers, suppose
from albatross.service.api.answers import Explanation
from albatross.service.api.errors import Refused
from albatross.service.api.requests import Feedback, Recommend, Request
from albatross.service.api.rules import By
from albatross.service.api.values import Explain, check_id
from albatross.service.engine.checking import EXPLAINED
from albatross.service.engine.deciding.choosing import Outcome, eligible, outcome_of, stream_name
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.reasoning import CLOSE, explained, finite, reasons_for
from albatross.service.engine.deciding.ruling import by_of, decide, rules_of
from albatross.service.engine.learned.filtering import check_where
from albatross.service.engine.learned.model import NONE
from albatross.service.storage.events import Placed
from albatross.service.storage.handles import request_handle

_further = attrgetter(*(name for name in Recommend.__struct_fields__ if name not in ("user", "explain", "where", "request_id")))
PLAIN = _further(Recommend(""))
"""What a simple request says in its further fields."""


class Asked(NamedTuple):
    place: int
    """The request's place in the group."""
    seq: int
    """The number of the decision."""
    request: Recommend


class Alike(NamedTuple):
    """Requests with the same items to choose from."""

    candidates: Items
    asked: list[Asked]


def decide_together(
    view: Overlay,
    requests: Sequence[Request[Any]],
    known: Container[bytes],
    head: int,
    at: float,
    incarnation: str,
    strangers: By = "policy",
) -> list[Outcome | None]:
    """The decisions of a group up to the first request that is neither simple nor a rating: they take the next numbers after the head.

    None for every request that is left to the usual path. `known` are handles in the log: such a request is not decided again.
    """
    outcomes: list[Outcome | None] = [None] * len(requests)
    model, seq = view.model, head
    if model.turner.addresses is None or not offers(model.agent.state, suppose) or view.n_items > model.agent.n_items:
        return outcomes
    everything: Items | None = None
    alike: dict[tuple[int, Explain], Alike] = {}
    users: set[str | None] = set()
    named: set[str] = set()
    for place, request in enumerate(requests):
        if type(request) is Feedback:
            continue
        if type(request) is not Recommend or not _is_simple(view, request) or by_of(view.model, request, strangers) != "policy":
            break
        try:
            if request.request_id is not None:
                check_id("request_id", request.request_id)
                if request.request_id in named or request_handle(request.request_id) in known:
                    continue  # it gets the earlier decision, and takes no number
                named.add(request.request_id)
            if everything is None:
                everything = eligible(view, request, NONE, at)
            candidates = everything if request.where is None else _satisfying(view, request, everything)
        except Refused:
            break
        if request.user in users:  # the second decision sees the first
            _decide_all(view, alike, outcomes, head, at, incarnation)
            alike, users = {}, set()
        seq += 1
        users.add(request.user)
        alike.setdefault((id(candidates), request.explain), Alike(candidates, [])).asked.append(Asked(place, seq, request))
    _decide_all(view, alike, outcomes, head, at, incarnation)
    return outcomes


def _is_simple(view: Overlay, request: Recommend) -> bool:
    user, model = request.user, view.model
    if type(user) is not str or user not in model.users.numbers or user in model.visitors.users or user in model.visitors.elsewhere:
        return False
    return _further(request) == PLAIN and request.explain in EXPLAINED


def _satisfying(view: Overlay, request: Recommend, items: Items) -> Items:
    assert request.where is not None
    check_where(request.where)
    return view.model.filters.satisfying(request.where, view.model.described, items, view.n_items)


def _decide_all(
    view: Overlay, alike: dict[tuple[int, Explain], Alike], outcomes: list[Outcome | None], head: int, at: float, incarnation: str
) -> None:
    model, floor = view.model, view.model.genesis.floor
    user_numbers, item_names = model.users.numbers, model.items.names
    for candidates, asked in alike.values():
        rows = [user_numbers[request.whom] for _, _, request in asked]
        pending = [view.waiting_numbers(request.whom, seq) for _, seq, request in asked]
        names = [stream_name(model.genesis, seq) for _, seq, _ in asked]
        first = asked[0].request
        whole = first.explain is True
        rules, n_best = rules_of(first), min(CLOSE + 1, candidates.size) if whole else 0
        # Without rules the random number is drawn first, with rules last: logged decisions depend on this order.
        chosen = choose_together(model.agent, model.turner, names, floor, rules is None, rows, candidates, pending, n_best)
        numbers = [candidates.item(max(position, 0)) for position in chosen.positions]
        placed = [
            Placed(item_names[number], finite(score), finite(mean), _propensity(likely, floor, candidates.size), False)
            for number, score, mean, likely in zip(numbers, chosen.scores, chosen.means, chosen.certainties, strict=True)
        ]
        alone: dict[int, Explanation | None] = {}
        for order, (_, seq, request) in enumerate(asked):
            if chosen.positions[order] == NOT_CHOSEN:
                event, alone[order] = decide(view, request if whole else replace(request, explain=False), seq, head, at, incarnation)
                placed[order], numbers[order] = event.items[0], view.number_of(event.items[0].item) or 0
        told = _told(view, asked, rows, pending, numbers, placed, chosen, alone)
        for (place, seq, request), shown, explanation in zip(asked, placed, told, strict=True):
            outcome = outcomes[place] = outcome_of(model, request, head, at, incarnation, [shown], explanation, rules)
            view.show(request.whom, outcome.event.items, seq)


def _propensity(likely: float, floor: float, size: int) -> float | None:
    return None if math.isnan(likely) else floor / size + (1.0 - floor) * likely


def _told(
    view: Overlay,
    asked: Sequence[Asked],
    rows: list[int],
    pending: Sequence[Sequence[int]],
    numbers: list[int],
    placed: list[Placed],
    chosen: Chosen,
    alone: Mapping[int, Explanation | None],
) -> Sequence[Explanation | None]:
    """What the requests want to know about their items. `alone`: by order, the explanations of items that were not chosen together."""
    level = asked[0].request.explain
    if not level:
        return [None] * len(asked)
    model, users = view.model, [request.whom for _, _, request in asked]
    random = model.turner.random
    if level is True:
        reports = model.accounts.of_each(model.agent, random, rows, True, [[number] for number in numbers], view.average)
        every = zip(users, pending, placed, numbers, chosen.best, reports, strict=True)
        return [
            alone[order] if order in alone else explained(view, user, waiting, [one], [number], best, report)
            for order, (user, waiting, one, number, best, report) in enumerate(every)
        ]
    briefs = model.accounts.reasons_for_one(model.agent, random, rows, numbers, view.average)
    count_of = model.ledger.user_ratings.item
    return [
        Explanation(count_of(row), [], [reason], None)
        for row, reason in zip(rows, reasons_for(view, users, placed, numbers, briefs), strict=True)
    ]
