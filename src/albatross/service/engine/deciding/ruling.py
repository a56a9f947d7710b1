"""A recommendation with rules: only items that satisfy a condition, quotas per slate, a share for new items, or another ranking.

At each place, with the probability given by `newcomers`, a uniformly drawn new item is shown; else with probability `floor` a uniformly
drawn item; else the one that ranks first. The propensity of an item is the sum over these ways, given the items before it. It stays
valid under all rules, because they only determine the items to choose from and the probabilities. With quotas, items that would leave no
room for the new items that are owed are not offered (`quotas`).
"""

import math
from typing import Any, cast

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.asking.together import best_of_slate
from albatross.core.streams import Turner
from albatross.kernels.operations import ALL_ITEMS, Items, Slate, offers, suppose
from albatross.service.api.requests import Recommend
from albatross.service.api.rules import By, Fresh, Quota, Where
from albatross.service.api.values import Seen
from albatross.service.engine.deciding import choosing
from albatross.service.engine.deciding.choosing import (
    Outcome,
    choose_counting,
    decision_stream,
    eligible,
    likelihood_of_other,
    others,
    outcome_of,
    room_for_close,
)
from albatross.service.engine.deciding.newcomers import FreshBesideQuotas, FreshByPlace, Newcomers
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.quotas import Quotas
from albatross.service.engine.deciding.reasoning import explain, finite
from albatross.service.engine.learned.descriptions import Mask
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.storage.events import Decided, Placed, Rules
from albatross.service.storage.handles import QuestionContent, RuledContent, content_of, request_handle

PER_SLATE, BESIDE_QUOTAS = 1.0, 2.0
"""After share and limit in the log: the share is that of a slate, not of each place; and quotas leave room for it."""


def is_ruled(request: Recommend) -> bool:
    return request.where is not None or bool(request.quotas) or request.fresh is not None or request.by != "policy"


def rules_of(request: Recommend) -> Rules | None:
    """The rules of a request, as written in the log."""
    if not is_ruled(request):
        return None
    where: dict[str, Any] | None = None if request.where is None else msgspec.to_builtins(request.where)
    quotas = [(quota.attribute, quota.most) for quota in request.quotas]
    meaning = BESIDE_QUOTAS if quotas else PER_SLATE
    return Rules(where, quotas, None if request.fresh is None else [request.fresh.share, request.fresh.below, meaning], request.by)


def handles_of_request(request: Recommend) -> list[tuple[bytes, bytes]]:
    """The handle of the request id, if there is one, with the content that another request of this id must have."""
    if request.request_id is None:
        return []
    question = QuestionContent(
        request.user or "", request.n, request.candidates, request.exclude, request.exclude_seen, request.explain, request.request_id
    )
    rules = rules_of(request)
    if rules is not None and rules.fresh is not None:  # whatever it means by now, the request is the same
        rules = replace(rules, fresh=[*rules.fresh[:2], PER_SLATE])
    return [(request_handle(request.request_id), content_of(question if rules is None else RuledContent(question, rules)))]


def request_of(event: Decided) -> Recommend:
    """The request, from the log."""
    asked = Recommend(event.user, event.n, event.candidates, event.exclude, cast(Seen, event.exclude_seen), False, event.request_id)
    rules = event.rules
    if rules is None:
        return asked
    return replace(
        asked,
        where=None if rules.where is None else msgspec.convert(rules.where, Where),
        quotas=[Quota(attribute, most) for attribute, most in rules.quotas],
        fresh=None if rules.fresh is None else _fresh_of(rules.fresh, bool(rules.quotas)),
        by=rules.by,
    )


def _fresh_of(said: list[float], with_quotas: bool) -> Fresh:
    share, below, meaning = said[0], int(said[1]), said[2:]
    if meaning == [PER_SLATE]:
        return FreshBesideQuotas(share, below) if with_quotas else Fresh(share, below)
    return Fresh(share, below) if meaning == [BESIDE_QUOTAS] else FreshByPlace(share, below)


def candidates_for(view: Overlay, request: Recommend, pending: Items, at: float) -> Items:
    """The items that may be shown under the rules. Refuses a request that leaves none."""
    allowed = eligible(view, request, pending, at)
    if request.where is None:
        return allowed
    return view.model.filters.satisfying(request.where, view.model.described, allowed, view.n_items)


def decide(view: Overlay, request: Recommend, seq: int, model_seq: int, at: float, incarnation: str = "") -> Outcome:
    """Decide what event `seq` shows, with or without rules."""
    if not is_ruled(request):
        return choosing.decide_plainly(view, request, seq, model_seq, at, incarnation)
    model, floor = view.model, view.model.genesis.floor
    pending = view.waiting_for(request.whom, seq)
    remaining = candidates_for(view, request, pending, at)
    user = model.row_of(request.whom)
    agent = view.agent_for(user)
    counted = pending if offers(agent.state, suppose) else NONE
    if pending.size and not counted.size:
        remaining = others(remaining, pending)
    random, turner = decision_stream(model, seq), model.turner
    by_policy = request.by == "policy"
    explained, whole = request.explain is not False and by_policy, request.explain is True
    quotas = Quotas.of(view, request.quotas)
    is_new = _times_shown(view) < request.fresh.below if request.fresh is not None else None
    newcomers = None if request.fresh is None else Newcomers(request.fresh, min(request.n, remaining.size))
    placed: list[Placed] = []
    offered, listed, new, share = remaining, ALL_ITEMS, NONE, 0.0
    while remaining.size:
        offered = _offered(quotas, remaining, is_new, newcomers)
        listed = room_for_close(offered) if explained and whole else ALL_ITEMS
        then = turner.position()
        best, certainty = _first(view, agent, user, offered, counted, random, request.by, listed)
        if best < 0:  # the policy would not use the pending items, and would show the same again
            remaining = others(remaining, pending)
            offered = _offered(quotas, remaining, is_new, newcomers)
            counted, then, listed = NONE, turner.position(), room_for_close(offered) if explained and whole else ALL_ITEMS
            best, certainty = _first(view, agent, user, offered, counted, random, request.by, listed)
        if is_new is not None and newcomers is not None:
            new = np.flatnonzero(is_new[offered]).astype(np.int32)
            share = newcomers.share() if new.size else 0.0
        position, by_chance = _drawn(random, share, new, floor, offered.size, best)
        if position != best and by_policy:  # only now more than the choice is needed
            _fill_slate(agent, user, offered, counted, turner, then)
        scores = agent.slate.scores
        likely = certainty if position == best else likelihood_of_other(scores[: offered.size], position, certainty)
        propensity = usual = floor / offered.size + (1.0 - floor) * likely
        if newcomers is not None and new.size:
            drawn = position in new
            propensity = (1.0 - share) * usual + (share / new.size if drawn else 0.0)
            newcomers.show(1.0 / new.size if drawn else 0.0, usual)
        number = offered.item(position)
        score, mean = finite(scores.item(position)), finite(agent.slate.means.item(position))
        placed.append(Placed(view.name_of(number), score, mean, None if math.isnan(propensity) else propensity, by_chance))
        if len(placed) == request.n:
            break
        remaining = quotas.left(remaining[remaining != number], number)
    explanation = None
    if explained:
        best_ranked = best_of_slate(agent, random, offered, listed) if whole else []
        explanation = explain(view, agent, request.whom, pending.tolist(), placed, best_ranked, whole)
    return outcome_of(model, request, model_seq, at, incarnation, placed, explanation, rules_of(request))


def _offered(quotas: Quotas, items: Items, is_new: Mask | None, newcomers: Newcomers | None) -> Items:
    """Those of the remaining items that leave room for the new items that are owed."""
    if is_new is None or newcomers is None or type(newcomers.fresh) is not Fresh:
        return items
    return quotas.offered(items, is_new, newcomers)


def by_of(model: Model, request: Recommend, strangers: By) -> By:
    """By what the items of a request are ranked. `strangers`: by what they are for users without ratings, if the request does not say."""
    return strangers if request.by == "policy" != strangers and not model.ratings_of(request.whom) else request.by


def _fill_slate(agent: Agent, user: int, items: Items, counted: Items, turner: Turner, then: bytes) -> None:
    """Let the policy choose again with the same random draws, and fill the scores of all items."""
    now = turner.position()
    choose_counting(agent, user, items, counted, turner.turn_back(then))
    turner.turn_back(now)


def _drawn(random: np.random.Generator, share: float, new: Items, floor: float, size: int, best: int) -> tuple[int, bool]:
    """The position to show, and whether it was drawn at random."""
    if share and random.random() < share:
        return int(new[random.integers(new.size)]), True
    if random.random() < floor:
        return int(random.integers(size)), True
    return best, False


def _first(
    view: Overlay, agent: Agent, user: int, items: Items, counted: Items, random: np.random.Generator, by: str, listed: Items
) -> tuple[int, float]:
    """The position of the item that ranks first, and its probability. Fills the slate there, and for `listed`."""
    if by == "policy":
        return choose_counting(agent, user, items, counted, random, False, listed)
    values = rank_without_policy(view.model, items, by)
    slate: Slate = agent.slate
    slate.scores[: items.size] = slate.means[: items.size] = values
    return int(np.argmax(values)), 1.0


def rank_without_policy(model: Model, items: Items, by: str) -> NDArray[np.float64]:
    """What a fallback ranks items by: their popularity, or how late they were added."""
    return popularity(model, items) if by == "popular" else items.astype(np.float64)


def popularity(model: Model, items: Items) -> NDArray[np.float64]:
    """Per item, the sum of its ratings above the bottom of the scale."""
    ledger, known = model.ledger, np.minimum(items, len(model.items.names) - 1)
    sums = ledger.item_sums[known] - model.genesis.scale[0] * ledger.item_ratings[known]
    return np.where(items < len(model.items.names), sums, 0.0)


def _times_shown(view: Overlay) -> NDArray[np.int64]:
    """How often each item was shown, including by this group."""
    times = np.zeros(view.n_items, np.int64)
    known = min(len(view.model.items.names), view.n_items)
    times[:known] = view.model.ledger.item_shown[:known]
    for number in view.showing():
        times[number] += 1
    return times
