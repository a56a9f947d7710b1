"""Read-only views: lists of users, items and events, one decision, and its reasons. Nothing here changes or writes anything."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace
from numpy.typing import NDArray

from albatross.core.streams import stream
from albatross.service.api.answers import HistoryEntry, ShownItem, UserView
from albatross.service.api.errors import NoEligibleCandidate, NotFound, UnknownDecision, UnknownUser
from albatross.service.api.requests import ListEvents, ListItems, ListUsers, ViewDecision, ViewUser
from albatross.service.api.values import MOST_LISTED, MOST_SEARCHED, MOST_SHOWN, MOST_VIEWED, check_count, check_id
from albatross.service.api.views import (
    Because,
    DecidedItem,
    DecisionView,
    EventList,
    ItemList,
    ListedItem,
    ListedUser,
    LoggedEvent,
    Reason,
    UserList,
)
from albatross.service.engine.answering import decision_name
from albatross.service.engine.deciding.choosing import choose_best, choose_counting, view_user
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.reasoning import explanation_of, shown_items
from albatross.service.engine.deciding.ruling import candidates_for, request_of
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.engine.learned.series import BOUNDLESS
from albatross.service.engine.moving import latest_ratings
from albatross.service.storage.events import (
    Arrived,
    Based,
    Decided,
    Described,
    Event,
    Exchanged,
    Expire,
    Forget,
    Genesis,
    Item,
    Joined,
    Passed,
    Past,
    Placed,
    Rated,
    Reacted,
    Retire,
    Rewards,
    decode,
)
from albatross.service.storage.numbering import answering_handle, answers_before
from albatross.service.storage.store import ReadableLog

MOST_EXPLAINED = 10
"""Limit of items of a decision whose mean is decomposed."""
MOST_REASONS = 12
"""Limit of ratings given for each."""
MOST_READ = 200
"""Limit of ratings of a user that are read for that: the latest."""


def find_decision(log: ReadableLog, genesis: Genesis, decision_id: str) -> tuple[int, Decided]:
    """The decision with this id, and its event."""
    digits = decision_id.partition("-")[0]
    if digits.isascii() and digits.isdigit() and len(digits) < 19 and int(digits) <= log.head.seq:
        seq = int(digits)
        body = log.body(seq)
        event = None if body is None else decode(body)
        if isinstance(event, Decided) and decision_name(event.incarnation or genesis.folder, seq) == decision_id:
            return seq, event
    raise UnknownDecision("decision_id is unknown, or its user was forgotten; accepted: the decision_id of an answer")


def list_users(model: Model, log: ReadableLog, request: ListUsers) -> UserList:
    _check_list(request)
    names = model.users.names
    found, following = _search(names, request.search, request.after, request.n)
    users = [
        ListedUser(names[number], int(model.ledger.user_ratings[number]))
        for number in found
        if model.visitors.known_as(names[number]) == names[number]
    ]
    return UserList(users, following, model.n_users, model.seq)


def list_items(model: Model, log: ReadableLog, request: ListItems) -> ItemList:
    _check_list(request)
    if request.user is not None:
        check_id("user", request.user)
    names, ledger = model.items.names, model.ledger
    found, following = _search(names, request.search, request.after, request.n)
    numbers = np.array(found, np.int32)
    means, scores = np.empty(0), np.empty(0)
    if numbers.size:
        row = len(model.users) if request.user is None else model.row_of(model.visitors.here(request.user))
        agent = Overlay(model).agent_for(row)
        choose_counting(agent, row, numbers, NONE, stream(model.genesis.seed, "viewing"))
        means, scores = agent.slate.means[: numbers.size], agent.slate.scores[: numbers.size]
    places = leading_axes(getattr(model.agent.state, "item_factors", None), len(names))
    items = [
        ListedItem(
            item=names[number],
            ratings=(ratings := int(ledger.item_ratings[number])),
            rating=float(ledger.item_sums[number]) / ratings if ratings else None,
            shown=int(ledger.item_shown[number]),
            retired=number in model.retired,
            mean=float(mean),
            bonus=float(score - mean) if abs(score) < BOUNDLESS else None,
            x=None if places is None else float(places.points[number, 0]),
            y=None if places is None else float(places.points[number, 1]),
            **_described(model, number),
        )
        for number, mean, score in zip(found, means, scores, strict=True)
    ]
    return ItemList(items, following, len(names), None if places is None else places.explained, model.seq)


def _described(model: Model, number: int) -> dict[str, Any]:
    """The description of an item."""
    known = model.described.known.get(number)
    if known is None:
        return {}
    return {name: value for name in known.__struct_fields__ if (value := getattr(known, name)) is not UNSET}


class Places(NamedTuple):
    points: NDArray[np.float64]
    explained: list[float]


def leading_axes(vectors: object, n_items: int) -> Places | None:
    """The item vectors on the two axes along which they vary most.

    >>> leading_axes(np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]), 4).explained
    [0.9, 0.1]
    """
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.shape[1] < 2 or n_items == 0:
        return None
    known = np.asarray(vectors[:n_items], np.float64)
    centred = known - known.mean(axis=0)
    eigenvalues, axes = np.linalg.eigh(centred.T @ centred)
    leading = axes[:, ::-1][:, :2]
    leading = leading * np.where(leading[np.abs(leading).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # fix the arbitrary sign of an axis
    total = float(eigenvalues.sum())
    shares = [float(value / total) if total > 0 else 0.0 for value in eigenvalues[::-1][:2]]
    return Places(centred @ leading, [round(max(share, 0.0), 12) for share in shares])


def list_events(model: Model, log: ReadableLog, request: ListEvents) -> EventList:
    check_count("n", request.n, 1, MOST_LISTED)
    if request.shard not in (None, model.genesis.shard):
        raise NotFound(f"shard is {request.shard}; accepted: none, or {model.genesis.shard}, which is the only one here")
    head = log.head.seq
    newest = head if request.before is None else min(head, request.before - 1)
    events = [_logged(log, model.genesis, seq) for seq in range(newest, max(newest - request.n, 0), -1)]
    return EventList(events, head)


def _logged(log: ReadableLog, genesis: Genesis, seq: int) -> LoggedEvent:
    body = log.body(seq)
    if body is None:
        return LoggedEvent(seq, "erased")
    event: Event = decode(body)
    if isinstance(event, Rated | Reacted):
        name = None if event.decision is None else _name_of(log, genesis, event.decision)
        done, replaces = (event.event or None, event.replaces) if isinstance(event, Reacted) else (None, None)
        return LoggedEvent(
            seq,
            "feedback",
            event.at,
            event.user,
            event.item,
            event.rating,
            name,
            mean=event.mean,
            score=_bounded(event.score),
            event=done,
            replaces=replaces,
        )
    if isinstance(event, Decided):
        name = decision_name(event.incarnation or genesis.folder, seq)
        return LoggedEvent(seq, "decision", event.at, event.user, decision_id=name, items=[placed.item for placed in event.items])
    if isinstance(event, Item):
        return LoggedEvent(seq, "item", event.at, item=event.item)
    if isinstance(event, Retire):
        return LoggedEvent(seq, "retire", event.at, item=event.item)
    if isinstance(event, Described):
        return LoggedEvent(seq, "description", event.at, item=event.item)
    if isinstance(event, Rewards):
        return LoggedEvent(seq, "rewards", event.at)
    if isinstance(event, Passed):
        done = event.event or None
        return LoggedEvent(
            seq, "feedback", event.at, event.user, event.item, event.rating, mean=event.mean, score=_bounded(event.score), event=done
        )
    if isinstance(event, Joined | Arrived):
        return LoggedEvent(seq, "join", event.at, event.user, visitor=event.visitor)
    if isinstance(event, Forget):
        return LoggedEvent(seq, "forget", event.at, erased=len(event.erased))
    if isinstance(event, Expire):
        return LoggedEvent(seq, "expire", event.at, erased=len(event.decisions))
    if isinstance(event, Exchanged | Based):
        return LoggedEvent(seq, "exchange", event.at, item_version=event.version)
    return LoggedEvent(seq, "genesis", event.at)


def _name_of(log: ReadableLog, genesis: Genesis, seq: int) -> str | None:
    body = log.body(seq)
    event = None if body is None else decode(body)
    return decision_name(event.incarnation or genesis.folder, seq) if isinstance(event, Decided) else None


def _bounded(score: float | None) -> float | None:
    return score if score is None or abs(score) < BOUNDLESS else None


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
    told = _logged(log, genesis, seq)
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
    )


def _decided(
    model: Model, log: ReadableLog, event: Decided, seq: int, rank: int, placed: Placed, given: dict[str, list[float]]
) -> DecidedItem:
    answers = answers_before(lambda handle: log.find(handle) is not None, seq, placed.item)
    found = log.find(answering_handle(seq, placed.item, answers - 1)) if answers else None
    body = None if found is None else log.body(found.seq)
    rated = None if body is None else decode(body)
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
        because=because(model, given, event.user, placed.item) if rank <= MOST_EXPLAINED else None,
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
    asked = replace(request_of(event), n=1, exclude=[*event.exclude, *shown], exclude_seen="none")
    view = Overlay(model)
    try:
        candidates = candidates_for(view, asked, NONE, time.time())
    except NoEligibleCandidate:
        return []
    row = model.row_of(event.user)
    agent = view.agent_for(row)
    return shown_items(choose_best(agent, view, row, candidates, n, stream(model.genesis.seed, "viewing")))


def _check_list(request: ListUsers | ListItems) -> None:
    check_count("n", request.n, 1, MOST_LISTED)
    check_count("after", request.after, 0, 2**53 - 1)
    if request.search is not None:
        check_id("search", request.search)


def _search(names: Sequence[str], search: str | None, after: int, n: int) -> tuple[list[int], int | None]:
    """The numbers of the next n names, or of those that contain a text, and where to go on."""
    if search is None:
        end = min(after + n, len(names))
        return list(range(min(after, len(names)), end)), end if end < len(names) else None
    wanted, found = search.casefold(), []
    end = min(after + MOST_SEARCHED, len(names))
    for number in range(after, end):
        if wanted in names[number].casefold():
            found.append(number)
            if len(found) == n:
                end = number + 1
                break
    return found, end if end < len(names) else None
