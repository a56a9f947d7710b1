"""One group of requests: decide, commit once, update the model, answer all.

Order within a group: decisions and catalogue changes come first, and each sees those before it through an overlay; ratings follow.
Nothing is applied to the model before the commit has succeeded, so the model never knows more than the disk, and nothing is undone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from albatross.service.api.answers import Answer, Explanation
from albatross.service.api.errors import (
    EventReused,
    Refused,
    StorageFailed,
    UnknownDecision,
)
from albatross.service.api.requests import Recommend, Request
from albatross.service.api.rules import By
from albatross.service.engine.answering import decision_of
from albatross.service.engine.checking import handles_asked, is_likely_new
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.ruling import handles_of_request
from albatross.service.engine.deciding.together import decide_together
from albatross.service.engine.learned.model import Model
from albatross.service.engine.moving import Forwarded, passed, shard_of_user
from albatross.service.engine.tickets import Ticket
from albatross.service.storage.events import (
    Arrived,
    Decided,
    Description,
    Event,
    Item,
    Joined,
    Passed,
    Rated,
    Reacted,
    decode,
    encode,
)
from albatross.service.storage.reading import Sum, summed
from albatross.service.storage.store import Found, HandleTaken, Row, Store

Finish = Callable[[], Answer]
"""Returns the answer, after the group is on disk and applied."""
Handles = Sequence[tuple[bytes, bytes]]


class Engaged(NamedTuple):
    """What all groups of one engine share."""

    model: Model
    store: Store
    folder: Path
    durability: str
    strangers: By
    """By what items are ranked for users without ratings."""
    incarnation: str
    known_state: tuple[int, str] | None
    """Event and state id of the last snapshot."""
    handles: Sum


class Group:
    """Requests that are committed together. `run` settles them with the given handlers."""

    def __init__(self, engaged: Engaged, assume_new: bool = False) -> None:
        """`assume_new`: do not look for the handles of feedback that is likely new; then `run` may raise `HandleTaken`."""
        self.engaged, self._assume_new = engaged, assume_new
        self.model, self.store = engaged.model, engaged.store
        self.view = Overlay(self.model)
        self.head = self.store.head.seq
        self.now = time.time()
        self.handles = engaged.handles
        """The sum of the handles in the log."""
        self.early: list[tuple[Event, Handles]] = []
        self.described: dict[str, Description] = {}
        """Items that this group describes, with their new descriptions."""
        self.names: set[str] = set()
        """New attribute names."""
        self.rewards = self.model.rewards
        """Rewards of named events, as this group sees them."""
        self.late: list[tuple[Rated | Reacted, Handles]] = []
        self.seqs: list[int] = []
        """Numbers of the ratings' events, once they are known."""
        self.leaving: Arrived | None = None
        """A visitor who moves to another shard with this group."""
        self.sent: set[int] = set()
        """Shards to which this group sends something."""
        self._asked: set[bytes] = set()
        self.kept: dict[bytes, Found] = {}
        """The requested handles that are in the log."""
        self.fresh: dict[bytes, tuple[int, bytes]] = {}
        """Handles of this group: the number of the early event, or the place of the rating, and the content."""

    def run(self, tickets: Sequence[Ticket], writing: "Handlers", reading: "Handlers") -> None:
        """Settle all tickets; requests that only read still work when the disk is full.

        Raises `StorageFailed` if the commit failed, after all tickets got this error.
        """
        requests = [ticket.request for ticket in tickets]
        assumed = [self._assume_new and is_likely_new(request, self.rewards) for request in requests]
        self._asked = {handle for request, new in zip(requests, assumed, strict=True) if not new for handle in handles_asked(request)}
        self.kept = self.store.find_all(list(self._asked)) if self._asked else {}
        written: list[tuple[Ticket, Finish]] = []
        read: list[tuple[Ticket, Finish]] = []
        decided: list[tuple[Ticket, int, Decided, Explanation | Raw | None]] = []
        """With the numbers of their events."""
        try:
            engaged = self.engaged
            ahead = decide_together(self.view, requests, self.kept, self.head, self.now, engaged.incarnation, engaged.strangers)
        except Exception:  # a bug: handled one by one, it affects no other request
            self.view, ahead = Overlay(self.model), [None] * len(tickets)
        for ticket, request, new, outcome in zip(tickets, requests, assumed, ahead, strict=True):
            kind = type(request)
            if outcome is not None:
                assert isinstance(request, Recommend)
                seq = self.put_early(outcome.event, handles_of_request(request) if request.request_id is not None else ())
                decided.append((ticket, seq, outcome.event, _kept(ticket, outcome.explanation)))
                continue
            try:
                finish = (writing.get(kind) or reading[kind])(self, request)
            except Exception as refusal:  # a Refused, or a bug, which must not affect the others
                if new:
                    raise HandleTaken("perhaps: a repeated delivery is not refused") from refusal
                ticket.error = refusal
                continue
            (read if kind in reading else written).append((ticket, finish))
        try:
            self._commit()
        except Refused as refusal:
            failed = isinstance(refusal, StorageFailed)
            told = [*(one[0] for one in written), *(one[0] for one in decided), *(one[0] for one in read if failed)]
            for ticket in told:
                ticket.error = refusal
            if failed:
                raise
            written, decided = [], []
        for ticket, seq, event, explanation in decided:
            ticket.answer = decision_of(self.model.genesis, seq, event, explanation)
        for ticket, finish in written + read:
            try:
                ticket.answer = finish()
            except Exception as refusal:
                ticket.error = refusal
        if self.sent:
            for ticket, _ in written:
                if ticket.answer is not None:
                    ticket.answer = Forwarded(ticket.answer, sorted(self.sent))

    def _commit(self) -> None:
        """Write everything, then apply it to the model."""
        late: list[tuple[Event, Handles]] = []
        named: set[str] = set()
        known, before = self.model.items.numbers, self.head + len(self.early)
        for rated, handles in self.late:
            if type(rated) is Reacted and rated.replaces is not None and rated.replaces < 0:
                rated = replace(rated, replaces=self.seqs[-1 - rated.replaces])  # in this group: its number is known only now
            if rated.item not in known and rated.item not in named and self.view.number_of(rated.item) is None:
                late.append((Item(self.now, rated.item), ()))
                named.add(rated.item)
            late.append((rated, handles))
            self.seqs.append(before + len(late))
        rows = self.early + late
        if not rows:
            return
        self.store.append([Row(encode(event), handles, self._parcels(event)) for event, handles in rows])
        model, middle = self.model, self.head + len(self.early) + 1
        model.spare = self.view.agent if self.view.agent is not model.agent else None
        model.fold_all(range(self.head + 1, middle), [event for event, _ in self.early])
        model.spare = None
        model.fold_all(range(middle, middle + len(late)), [event for event, _ in late])
        model.learn()
        written = ((handle, seq) for seq, (_, handles) in enumerate(rows, start=self.head + 1) for handle, _ in handles)
        self.handles = summed(written, self.handles)

    def _parcels(self, event: Event) -> list[tuple[int, bytes]]:
        """What other shards are sent with an event."""
        message: Arrived | Passed | None = None
        if type(event) is Joined and event.away:
            message = self.leaving
        elif self.model.visitors.hosts and isinstance(event, Rated | Reacted) and event.user in self.model.visitors.hosts:
            assert event.decision is not None  # otherwise the other shard would have been asked
            message = passed(event, self.decided(event.decision).user)
        if message is None:
            return []
        shard = shard_of_user(self.model, message.user)
        self.sent.add(shard)
        return [(shard, encode(message))]

    def put_early(self, event: Event, handles: Handles = ()) -> int:
        """Put an event before the ratings. Returns its number."""
        self.early.append((event, handles))
        seq = self.head + len(self.early)
        for handle, content in handles:
            self.fresh[handle] = (seq, content)
        return seq

    def decided(self, seq: int) -> Decided:
        if self.head < seq <= self.head + len(self.early):
            event: Event | None = self.early[seq - self.head - 1][0]
        else:
            body = self.store.body(seq)
            event = None if body is None else decode(body)
        if not isinstance(event, Decided):
            raise UnknownDecision("there is no such decision, or it was erased since; accepted: the decision_id of an answer")
        return event

    def known(self, handle: bytes, content: bytes, what: str) -> int | None:
        """The number stored for a handle, if it is known. Refuses another content under the same handle."""
        found = self.fresh.get(handle) or self.kept.get(handle)
        if found is None:
            return None
        if found[1] and found[1] != content:
            raise EventReused(f"this {what} was used before with another content; accepted: a new id, or exactly the same again")
        return found[0]

    def is_taken(self, handle: bytes) -> bool:
        if handle in self.fresh or handle in self.kept:
            return True
        return handle not in self._asked and self.store.find(handle) is not None


def _kept(ticket: Ticket, explanation: Explanation | None) -> Explanation | Raw | None:
    """An explanation until its decision is on disk: a whole one as JSON if it becomes that, because its hundred numbers are at hand now."""
    whole = explanation is not None and ticket.request.explain is True  # type: ignore[attr-defined]
    return Raw(encode(explanation)) if whole and ticket.becomes_json else explanation


Handler = Callable[[Group, Any], Finish]
Handlers = Mapping[type[Request[Any]], Handler]
