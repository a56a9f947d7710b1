"""A recommendation: a known one by its request id, or a new decision."""

from functools import partial

from msgspec.structs import replace

from albatross.service.api.answers import Decision
from albatross.service.api.errors import BadValue, UnknownDecision
from albatross.service.api.requests import Recommend
from albatross.service.api.values import MOST_NEW_ITEMS
from albatross.service.engine.answering import decision_of
from albatross.service.engine.checking import check_recommend
from albatross.service.engine.deciding.reasoning import explanation_of
from albatross.service.engine.deciding.ruling import by_of, candidates_for, decide, handles_of_request
from albatross.service.engine.group import Finish, Group
from albatross.service.engine.handling.visiting import visitor_name
from albatross.service.storage.events import Item


def recommend(group: Group, request: Recommend) -> Finish:
    check_recommend(request, group.model.items)
    handles = handles_of_request(request)
    for handle, content in handles:
        known = group.known(handle, content, "request_id")
        if known is not None:
            return partial(_decision_of_before, group, known)
    fresh = _fresh_candidates(group, request)
    seq = group.head + len(group.early) + len(fresh) + 1
    if request.user is None:
        genesis = group.model.genesis
        request = replace(request, user=visitor_name(group.engaged.incarnation, seq, genesis.shard, genesis.shards))
    else:
        request = replace(request, user=group.model.visitors.here(request.user))
    request = replace(request, by=by_of(group.model, request, group.engaged.strangers))
    if fresh and set(fresh) <= set(request.exclude):  # they may leave nothing to show; a refused request must add no items
        candidates_for(group.view, request, group.view.waiting_for(request.whom, group.head + len(group.early) + 1), group.now)
    view = group.view.with_items(fresh) if fresh else group.view
    event, explanation = decide(view, request, seq, group.head, group.now, group.engaged.incarnation)
    group.view = view  # only now: a failed decision must leave no items behind
    for name in fresh:
        group.put_early(Item(group.now, name))
    group.put_early(event, handles)
    group.view.show(event.user, event.items, seq)
    return lambda: decision_of(group.model.genesis, seq, event, explanation)


def _fresh_candidates(group: Group, request: Recommend) -> list[str]:
    """Candidates that become items because the request names them."""
    if group.model.genesis.closed or request.candidates is None:
        return []
    fresh = [name for name in dict.fromkeys(request.candidates) if group.view.number_of(name) is None]
    if len(fresh) > MOST_NEW_ITEMS:
        raise BadValue(f"{len(fresh)} candidates are not items yet; accepted: at most {MOST_NEW_ITEMS} in one request (upsert them first)")
    group.view.check_room(len(fresh))
    return fresh


def _decision_of_before(group: Group, seq: int) -> Decision:
    try:
        event = group.decided(seq)
    except UnknownDecision:
        raise UnknownDecision("the decision with this request_id was erased since; accepted: a new request_id") from None
    return decision_of(group.model.genesis, seq, event, None if event.reasons is None else explanation_of(event.reasons))
