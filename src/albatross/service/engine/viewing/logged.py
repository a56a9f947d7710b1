"""Events as the log has them, and the decision with a given id."""

from albatross.service.api.errors import NotFound, UnknownDecision
from albatross.service.api.requests import ListEvents
from albatross.service.api.values import MOST_LISTED, check_count
from albatross.service.api.views import EventList, LoggedEvent
from albatross.service.engine.answering import decision_name
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.series import BOUNDLESS
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
    Rated,
    Reacted,
    Retire,
    Rewards,
    decode,
)
from albatross.service.storage.store import ReadableLog


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


def list_events(model: Model, log: ReadableLog, request: ListEvents) -> EventList:
    check_count("n", request.n, 1, MOST_LISTED)
    if request.shard not in (None, model.genesis.shard):
        raise NotFound(f"shard is {request.shard}; accepted: none, or {model.genesis.shard}, which is the only one here")
    head = log.head.seq
    newest = head if request.before is None else min(head, request.before - 1)
    events = [logged(log, model.genesis, seq) for seq in range(newest, max(newest - request.n, 0), -1)]
    return EventList(events, head)


def logged(log: ReadableLog, genesis: Genesis, seq: int) -> LoggedEvent:
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
