"""One user, or one decision with the ratings behind it."""

import time

import numpy as np
from msgspec.structs import replace

from albatross.core.streams import stream
from albatross.service.api.answers import HistoryEntry, ShownItem, UserView
from albatross.service.api.errors import NoEligibleCandidate, UnknownUser
from albatross.service.api.requests import Recommend, ViewDecision, ViewUser
from albatross.service.api.rules import Fresh
from albatross.service.api.values import MOST_LISTED, MOST_SHOWN, MOST_VIEWED, Seen, check_count, check_id
from albatross.service.api.views import Because, DecidedItem, DecisionView, NewItems, Reason
from albatross.service.engine.deciding.choosing import choose_best, choose_counting, view_user
from albatross.service.engine.deciding.newcomers import FreshByPlace
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.reasoning import explanation_of, shown_items
from albatross.service.engine.deciding.ruling import candidates_for, rank_without_policy, request_of
from albatross.service.engine.learned.filtering import attributes_of
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.engine.moving import latest_ratings
from albatross.service.engine.viewing.logged import find_decision, logged
from albatross.service.storage.events import Decided, Genesis, Past, Placed, Rated, Reacted, decode
from albatross.service.storage.numbering import answering_handle, answers_before
from albatross.service.storage.store import ReadableLog

MOST_EXPLAINED = 10
"""Limit of items of a decision whose mean is decomposed."""
MOST_REASONS = 12
"""Limit of ratings given for each."""
MOST_READ = 200
"""Limit of ratings of a user that are read for that: the latest."""


def read_user(model: Model, log: ReadableLog, request: ViewUser) -> UserView:
    check_id("user", request.user)
    check_count("n", request.n, 0, MOST_VIEWED)
    check_count("history", request.history, 0, MOST_LISTED)
    user = model.visitors.here(request.user)
    number = model.users.numbers.get(user)
    if number is None:
        raise UnknownUser("this user has not rated anything; accepted: a user who has")
    history = [_entry(log, model.genesis, seq, past) for seq, past in latest_ratings(model, log, number, request.history)]
    return view_user(model, user, request.n, history)


def _entry(log: ReadableLog, genesis: Genesis, seq: int, past: Past) -> HistoryEntry:
    told = logged(log, genesis, seq)
    if told.kind != "feedback":  # it came from another shard, with others
        return HistoryEntry(seq, past.at, past.item, past.rating, None, None, None, None)
    return HistoryEntry(seq, past.at, past.item, past.rating, told.decision_id, told.mean, told.score, told.event)


def read_decision(model: Model, log: ReadableLog, request: ViewDecision) -> DecisionView:
    check_id("decision_id", request.decision_id)
    check_count("n", request.n, 0, MOST_SHOWN)
    seq, event = find_decision(log, model.genesis, request.decision_id)
    if event.reasons is not None and event.reasons.close:
        close, close_seq = shown_items(event.reasons.close[: request.n]), event.model_seq
    else:
        close, close_seq = _close_now(model, event, request.n), model.seq
    event = replace(event, user=model.visitors.known_as(event.user))
    asked = request_of(event)
    given = _ratings_by_item(model, log, event.user)
    return DecisionView(
        decision_id=request.decision_id,
        seq=seq,
        at=event.at,
        user=event.user,
        policy=model.genesis.policy,
        model_seq=event.model_seq,
        user_ratings=event.user_ratings,
        candidates=None if event.candidates is None else len(event.candidates),
        exclude_seen=event.exclude_seen,
        items=[_decided(model, log, event, seq, rank, placed, given) for rank, placed in enumerate(event.items, start=1)],
        close=close,
        close_seq=close_seq,
        explanation=None if event.reasons is None else explanation_of(event.reasons),
        where=asked.where,
        quotas=asked.quotas,
        fresh=new_items(asked.fresh),
        by=asked.by,
        unknown=[name for name in _attributes(asked) if name not in model.described.names],
    )


def _attributes(asked: Recommend) -> list[str]:
    """The attributes that the rules name, each once."""
    named = [] if asked.where is None else attributes_of(asked.where)
    return list(dict.fromkeys([*named, *(quota.attribute for quota in asked.quotas)]))


def new_items(fresh: Fresh | None) -> NewItems | None:
    """The places for new items, as they are told."""
    return None if fresh is None else NewItems(fresh.share, fresh.below, isinstance(fresh, FreshByPlace))


def _decided(
    model: Model, log: ReadableLog, event: Decided, seq: int, rank: int, placed: Placed, given: dict[str, list[float]]
) -> DecidedItem:
    answers = answers_before(lambda handle: log.find(handle) is not None, seq, placed.item)
    found = log.find(answering_handle(seq, placed.item, answers - 1)) if answers else None
    body = None if found is None else log.body(found.seq)
    rated = None if body is None else decode(body)
    by_policy = event.rules is None or event.rules.by == "policy"
    return DecidedItem(
        item=placed.item,
        rank=rank,
        score=placed.score,
        mean=placed.mean,
        bonus=placed.score - placed.mean,
        propensity=placed.propensity,
        explored=placed.explored,
        rating=rated.rating if isinstance(rated, Rated | Reacted) else None,
        rated_seq=found.seq if found is not None and isinstance(rated, Rated | Reacted) else None,
        item_ratings=int(model.ledger.item_ratings[model.items.numbers[placed.item]]),
        because=because(model, given, event.user, placed.item) if by_policy and rank <= MOST_EXPLAINED else None,
        event=rated.event or None if isinstance(rated, Reacted) else None,
    )


def because(model: Model, given: dict[str, list[float]], user: str, item: str) -> Because | None:
    """The contributions of the user's own ratings to the mean of an item, by the current model."""
    row, number = model.users.numbers.get(user), model.items.numbers[item]
    found = None if row is None else model.accounts.parts_of_mean(model.agent, model.turner.random, row, number)
    if row is None or found is None or not found.items.size:
        return None
    choose_counting(model.agent, row, np.array([number], np.int32), NONE, stream(model.genesis.seed, "viewing"))
    mean, total = float(model.agent.slate.means[0]), float(found.parts.sum())
    largest = np.argsort(-np.abs(found.parts), kind="stable")[:MOST_REASONS]
    named = [(model.items.names[found.items[at]], float(found.parts[at])) for at in largest]
    reasons = [Reason(name, sum(given[name]) / len(given[name]) if name in given else None, part) for name, part in named]
    return Because(mean, mean - total, reasons, total - sum(reason.part for reason in reasons))


def _ratings_by_item(model: Model, log: ReadableLog, user: str) -> dict[str, list[float]]:
    """The latest ratings of a user, by item."""
    given: dict[str, list[float]] = {}
    row = model.users.numbers.get(user)
    for _, past in () if row is None else latest_ratings(model, log, row, MOST_READ):
        given.setdefault(past.item, []).append(past.rating)
    return given


def _close_now(model: Model, event: Decided, n: int) -> list[ShownItem]:
    """The next best items if the decision were made now by the current model."""
    shown = [placed.item for placed in event.items]
    seen: Seen = "none" if event.exclude_seen == "none" else "rated"
    asked = replace(request_of(event), n=1, exclude=[*event.exclude, *shown], exclude_seen=seen)
    view = Overlay(model)
    try:
        candidates = candidates_for(view, asked, NONE, time.time())
    except NoEligibleCandidate:
        return []
    if asked.by != "policy":
        values = rank_without_policy(model, candidates, asked.by)
        best = np.argsort(-values, kind="stable")[:n]
        named = [(view.name_of(candidates.item(at)), values.item(at)) for at in best]
        return shown_items([Placed(name, value, value, None, False) for name, value in named])
    row = model.row_of(event.user)
    agent = view.agent_for(row)
    return shown_items(choose_best(agent, view, row, candidates, n, stream(model.genesis.seed, "viewing")))
