"""One group of requests: decide, commit once, fold, answer all.

Order within a group: decisions and changes of the catalogue come first, each seeing those before it through an overlay; ratings come behind
them. Nothing is folded before the commit has succeeded, so the model never knows more than the disk, and nothing has to be undone.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import (
    Accepted,
    Answer,
    BatchAccepted,
    Decision,
    ItemAccepted,
    ItemsAccepted,
    Refusal,
    RewardsAccepted,
    Series,
    Version,
)
from albatross.service.api.errors import (
    AlreadyRated,
    BadValue,
    EventReused,
    Refused,
    StorageFailed,
    UnknownDecision,
    UnknownItem,
)
from albatross.service.api.requests import (
    AskDisk,
    AskSeries,
    AskVersion,
    Feedback,
    FeedbackBatch,
    ListEvents,
    ListItems,
    ListUsers,
    Recommend,
    Request,
    RestoreItem,
    RetireItem,
    SetRewards,
    SimilarItems,
    Suppose,
    UpsertItem,
    UpsertItems,
    ViewDecision,
    ViewUser,
)
from albatross.service.api.values import (
    MOST_EVENTS,
    MOST_NEW_ITEMS,
    check_count,
    check_id,
)
from albatross.service.api.views import Disk
from albatross.service.engine.answering import decision_name, decision_of, disk_of, version_of
from albatross.service.engine.checking import check_feedback, check_recommend, handles_asked
from albatross.service.engine.describing import check_description, description_of
from albatross.service.engine.descriptions import merged
from albatross.service.engine.likeness import similar_items
from albatross.service.engine.model import Model
from albatross.service.engine.overlay import Overlay
from albatross.service.engine.reacting import Earlier, check_replaces, check_rewards, content_of_request, reaction, reward_of
from albatross.service.engine.ruling import candidates_for, decide, rules_of
from albatross.service.engine.silence import GiveUp, Hushed
from albatross.service.engine.supposing import suppose
from albatross.service.engine.tickets import Ticket
from albatross.service.engine.viewing import find_decision, list_events, list_items, list_users, read_decision, read_user
from albatross.service.storage.events import (
    SILENCE,
    Decided,
    Described,
    Description,
    Event,
    Item,
    QuestionContent,
    Rated,
    Reacted,
    Retire,
    Rewards,
    RuledContent,
    content_of,
    decode,
    encode,
    event_handle,
    request_handle,
    rewards_handle,
)
from albatross.service.storage.migration import ANSWERED
from albatross.service.storage.numbering import answering_handle, answers_before, last_number
from albatross.service.storage.reading import Sum, summed
from albatross.service.storage.store import Found, Row, Store

Finish = Callable[[], Answer]
"""Gives the answer, once the group is on disk and folded."""
Handles = Sequence[tuple[bytes, bytes]]


class Engaged(NamedTuple):
    """What the groups of one engine have in common."""

    model: Model
    store: Store
    folder: Path
    durability: str
    incarnation: str
    known_state: tuple[int, str] | None
    """Event and state id of the last snapshot."""
    handles: Sum


class Group:
    """Requests that are committed together. `run` settles all of them."""

    def __init__(self, engaged: Engaged) -> None:
        self.engaged = engaged
        self.model, self.store = engaged.model, engaged.store
        self.view = Overlay(self.model)
        self.head = self.store.head.seq
        self.now = time.time()
        self.handles = engaged.handles
        """The sum of the handles in the log."""
        self._early: list[tuple[Event, Handles]] = []
        self._described: dict[str, Description] = {}
        """Items that this group describes, and what is then known of them."""
        self._names: set[str] = set()
        """Names of attributes that it brings."""
        self.rewards = self.model.rewards
        """What events with names are worth, as this group sees it."""
        self._late: list[tuple[Rated | Reacted, Handles]] = []
        self._seqs: list[int] = []
        """Of the ratings, once they are known."""
        self._asked: set[bytes] = set()
        self._kept: dict[bytes, Found] = {}
        """What the log has of the handles that are asked for."""
        self._fresh: dict[bytes, tuple[int, bytes]] = {}
        """Handles of this group: the number of the early event, or the place of the rating, and the content."""

    def run(self, tickets: Sequence[Ticket]) -> None:
        """Settle all. Raises `StorageFailed` where the disk did not keep the commit, having told everybody."""
        self._asked = {handle for ticket in tickets for handle in handles_asked(ticket.request)}
        self._kept = self.store.find_all(list(self._asked))
        writing: list[tuple[Ticket, Finish]] = []
        reading: list[tuple[Ticket, Finish]] = []
        for ticket in tickets:
            try:
                finish = HANDLERS[type(ticket.request)](self, ticket.request)
            except Exception as refusal:  # a Refused, or a mistake of ours, which must not take the others with it
                ticket.error = refusal
                continue
            (reading if isinstance(ticket.request, READING) else writing).append((ticket, finish))
        try:
            self._commit()
        except Refused as refusal:
            failed = isinstance(refusal, StorageFailed)
            for ticket, _ in writing + reading if failed else writing:
                ticket.error = refusal
            if failed:
                raise
            writing = []
        for ticket, finish in writing + reading:
            try:
                ticket.answer = finish()
            except Exception as refusal:
                ticket.error = refusal

    def _commit(self) -> None:
        """Write everything, then fold it."""
        late: list[tuple[Event, Handles]] = []
        named: set[str] = set()
        for rated, handles in self._late:
            if type(rated) is Reacted and rated.replaces is not None and rated.replaces < 0:
                rated = replace(rated, replaces=self._seqs[-1 - rated.replaces])  # of this group: now its number is known
            if rated.item not in named and self.view.number_of(rated.item) is None:
                late.append((Item(self.now, rated.item), ()))
            named.add(rated.item)
            late.append((rated, handles))
            self._seqs.append(self.head + len(self._early) + len(late))
        rows = self._early + late
        if not rows:
            return
        self.store.append([Row(encode(event), handles) for event, handles in rows])
        model, middle = self.model, self.head + len(self._early) + 1
        model.spare = self.view.agent if self.view.agent is not model.agent else None
        model.fold_all(range(self.head + 1, middle), [event for event, _ in self._early])
        model.spare = None
        model.fold_all(range(middle, middle + len(late)), [event for event, _ in late])
        model.learn()
        written = ((handle, seq) for seq, (_, handles) in enumerate(rows, start=self.head + 1) for handle, _ in handles)
        self.handles = summed(written, self.handles)

    def _put_early(self, event: Event, handles: Handles = ()) -> int:
        """Put an event in front of the ratings; returns its number."""
        self._early.append((event, handles))
        return self.head + len(self._early)

    def recommend(self, request: Recommend) -> Finish:
        check_recommend(request, self.model.items)
        rules = rules_of(request)
        handles: Handles = ()
        if request.request_id is not None:
            handle = request_handle(request.request_id)
            question = QuestionContent(
                request.user,
                request.n,
                request.candidates,
                request.exclude,
                request.exclude_seen,
                request.explain,
                request.request_id,
            )
            content = content_of(question if rules is None else RuledContent(question, rules))
            known = self._known(handle, content, "request_id")
            if known is not None:
                return lambda: self._decision(known, self._decided(known))
            handles = ((handle, content),)
        fresh = self._fresh_candidates(request)
        if fresh and set(fresh) <= set(request.exclude):  # then they may leave nothing to show, and a refusal brings nothing into being
            candidates_for(self.view, request, self.view.waiting_for(request.user, self.head + len(self._early) + 1), self.now)
        view = self.view.with_items(fresh) if fresh else self.view
        seq = self.head + len(self._early) + len(fresh) + 1
        event = decide(view, request, seq, self.head, self.now, self.engaged.incarnation)
        self.view = view  # only now: a decision that fails leaves no items behind
        for name in fresh:
            self._put_early(Item(self.now, name))
        self._put_early(event, handles)
        self.view.show(event.user, event.items, seq)
        for handle, content in handles:
            self._fresh[handle] = (seq, content)
        return lambda: self._decision(seq, event)

    def _fresh_candidates(self, request: Recommend) -> list[str]:
        """Candidates that become items by being named."""
        if self.model.genesis.closed or request.candidates is None:
            return []
        fresh = [name for name in dict.fromkeys(request.candidates) if self.view.number_of(name) is None]
        if len(fresh) > MOST_NEW_ITEMS:
            raise BadValue(
                f"{len(fresh)} candidates are not items yet; accepted: at most {MOST_NEW_ITEMS} in one request (upsert them first)"
            )
        self.view.check_room(len(fresh))
        return fresh

    def _decided(self, seq: int) -> Decided:
        if self.head < seq <= self.head + len(self._early):
            event: Event | None = self._early[seq - self.head - 1][0]
        else:
            body = self.store.body(seq)
            event = None if body is None else decode(body)
        if not isinstance(event, Decided):
            raise UnknownDecision("there is no such decision, or its user was forgotten since; accepted: the decision_id of an answer")
        return event

    def _decision(self, seq: int, event: Decided) -> Decision:
        genesis = self.model.genesis
        return decision_of(decision_name(event.incarnation or genesis.folder, seq), genesis.policy, event)

    def _known(self, handle: bytes, content: bytes, what: str) -> int | None:
        """The number kept for a handle, if it is known; refuses another content under the same handle."""
        found = self._fresh.get(handle) or self._kept.get(handle)
        if found is None:
            return None
        if found[1] and found[1] != content:
            raise EventReused(f"this {what} was used before with another content; accepted: a new id, or exactly the same again")
        return found[0]

    def feedback(self, request: Feedback) -> Callable[[], Accepted]:
        check_feedback(request)
        handle = event_handle(request.event_id)
        rating = self._worth(request, handle)
        content = content_of(content_of_request(request, rating))
        fresh = handle in self._fresh
        known = self._known(handle, content, "event_id")
        if known is not None and fresh:
            return lambda: Accepted(self._seqs[known], applied=True, duplicate=True, model_seq=self.model.seq)
        if known is not None:
            present = self.store.body(known) is not None
            return lambda: Accepted(known, applied=present, duplicate=True, model_seq=self.model.seq)
        rated = self._answer(self._rated(request, rating), request.event)
        handles = [(handle, content)]
        if rated.decision is not None:
            answer = answering_handle(rated.decision, rated.item, rated.number if isinstance(rated, Reacted) else 0)
            handles.append((answer, ANSWERED))
        if isinstance(rated, Rated) or rated.replaces is None:
            self._check_rated(rated)
        place = len(self._late)
        self._late.append((rated, handles))
        for one, kept in handles:
            self._fresh[one] = (place, kept)
        return lambda: Accepted(self._seqs[place], applied=True, duplicate=False, model_seq=self.model.seq)

    def _worth(self, request: Feedback, handle: bytes) -> float:
        """The rating, or what the event is worth now. One that was delivered before is recognised by its name, whatever that is worth."""
        if request.event is not None and request.rating is None and (handle in self._fresh or handle in self._kept):
            return self.rewards.get(request.event, 0.0)
        return reward_of(request, self.model.genesis.scale, self.rewards)

    def _is_taken(self, handle: bytes) -> bool:
        if handle in self._fresh or handle in self._kept:
            return True
        return handle not in self._asked and self.store.find(handle) is not None

    def _answer(self, rated: Rated, event: str | None) -> Rated | Reacted:
        """A rating as it is, or, where there was an answer before, in the place of that. Refuses a second rating."""
        if event is None:
            if rated.decision is None or not self._is_taken(answering_handle(rated.decision, rated.item, 0)):
                return rated
            only = answers_before(self._is_taken, rated.decision, rated.item) == 1
            if not (only and self._earlier(answering_handle(rated.decision, rated.item, 0)).silent):
                raise AlreadyRated("this item of the decision has been rated; accepted: one rating for each item that a decision showed")
        return reaction(rated, event or "", self._is_taken, self._earlier)

    def give_up(self, request: GiveUp) -> Finish:
        """Let silence answer what nobody has answered."""
        before = len(self._late)
        for seq in request.decisions:
            decided = self._decided(seq)
            for placed in decided.items:
                handle = answering_handle(seq, placed.item, 0)
                if not self._is_taken(handle):
                    said = (placed.item, SILENCE, request.reward, seq, placed.mean, placed.score)
                    silent = Reacted(self.now, "", decided.user, *said)
                    self._check_rated(silent)
                    self._fresh[handle] = (len(self._late), ANSWERED)
                    self._late.append((silent, ((handle, ANSWERED),)))
        items = len(self._late) - before
        return lambda: Hushed(items)

    def _earlier(self, handle: bytes) -> Earlier:
        """The answer with this handle, which there is."""
        if handle in self._fresh:
            place = self._fresh[handle][0]
            waiting = self._late[place][0]
            return Earlier(-1 - place, waiting.rating, not waiting.event_id)
        found = self.store.find(handle)
        body = None if found is None else self.store.body(found.seq)
        event = None if body is None else decode(body)
        assert found is not None  # as `answers_before` saw
        assert isinstance(event, Rated | Reacted)  # or its decision would be erased, too
        return Earlier(found.seq, event.rating, not event.event_id)

    def _rated(self, request: Feedback, rating: float) -> Rated:
        if request.decision_id is None:
            assert request.user is not None  # as `check_feedback` saw
            assert request.item is not None
            return Rated(self.now, request.event_id, request.user, request.item, rating, None, None, None)
        seq, decision = find_decision(self.store, self.model.genesis, request.decision_id)
        if request.user is not None and request.user != decision.user:
            raise BadValue("user is not the one this decision was made for; accepted: that one, or none")
        if request.item is None and len(decision.items) > 1:
            raise BadValue(f"item is missing; accepted: one of the {len(decision.items)} items of the decision")
        placed = next((placed for placed in decision.items if request.item in (None, placed.item)), None)
        if placed is None:
            raise BadValue("item is one that this decision did not show; accepted: an item of the decision")
        return Rated(self.now, request.event_id, decision.user, placed.item, rating, seq, placed.mean, placed.score)

    def _check_rated(self, rated: Rated | Reacted) -> None:
        """Whoever rates, and what is rated, must exist, or be allowed to come into being."""
        view, known = self.view, self.view.number_of(rated.item) is not None or rated.item in self.view.late_items
        if not known and self.model.genesis.closed:
            raise UnknownItem(f"item is {rated.item!r}; accepted, as the catalogue is closed: an item that was upserted")
        view.late_ratings += 1
        stranger = rated.user not in self.model.users and rated.user not in view.late_users
        if known and not stranger and view.late_ratings <= self.model.affordable:
            return
        if not known:
            view.late_items.add(rated.item)
        if stranger:
            view.late_users.add(rated.user)
        try:
            view.check_room()
        except Refused:
            view.late_ratings -= 1
            if not known:
                view.late_items.discard(rated.item)
            if stranger:
                view.late_users.discard(rated.user)
            raise

    def feedback_batch(self, request: FeedbackBatch) -> Finish:
        check_count("the number of events", len(request.events), 0, MOST_EVENTS)
        answers = [_attempt(self.feedback, event) for event in request.events]
        return lambda: BatchAccepted([answer() for answer in answers])

    def set_rewards(self, request: SetRewards) -> Finish:
        check_rewards(request.events, self.model.genesis.scale)
        try:
            check_replaces(self.model.genesis.policy, self.model.agent.state)
        except InvalidInput as error:
            raise BadValue(str(error)) from error
        events, seq = {name: float(reward) for name, reward in request.events.items()}, self.head
        if events != self.rewards:
            number = 1 + last_number(lambda number: self._is_taken(rewards_handle(number)))
            handle = rewards_handle(number)
            seq = self._put_early(Rewards(self.now, number, events), ((handle, ANSWERED),))
            self._fresh[handle] = (seq, ANSWERED)
            self.rewards = events
        return lambda: RewardsAccepted(events, seq, self.model.seq)

    def upsert_item(self, request: UpsertItem) -> Callable[[], ItemAccepted]:
        check_id("item", request.item)
        said = description_of(request)
        check_description(said, {*self.model.described.names, *self._names})
        offered = self._offer(request.item)
        number = self.view.number_of(request.item)
        before = self._described.get(request.item) or self.model.described.known.get(-1 if number is None else number, Description())
        after = merged(before, said)
        if after == before:
            return offered
        self._described[request.item] = after
        self._names.update(said.attributes or ())
        seq = self._put_early(Described(self.now, request.item, said))
        return lambda: replace(offered(), seq=seq)

    def upsert_items(self, request: UpsertItems) -> Finish:
        check_count("the number of items", len(request.items), 0, MOST_EVENTS)
        answers = [_attempt(self.upsert_item, item) for item in request.items]
        return lambda: ItemsAccepted([answer() for answer in answers])

    def restore_item(self, request: RestoreItem) -> Finish:
        self._check_known(request.item)
        return self._offer(request.item)

    def retire_item(self, request: RetireItem) -> Finish:
        number = self._check_known(request.item)
        seq = self.head
        if number not in self.view.retired:
            seq = self._put_early(Retire(self.now, request.item))
            self.view.retire(number)
        return lambda: ItemAccepted(request.item, retired=True, created=False, seq=seq, model_seq=self.model.seq)

    def _offer(self, item: str) -> Callable[[], ItemAccepted]:
        number = self.view.number_of(item)
        created, seq = number is None, self.head
        if created:
            self.view.check_room(1)
        if number is None or number in self.view.retired:
            seq = self._put_early(Item(self.now, item))
            self.view.offer(item)
        return lambda: ItemAccepted(item, retired=False, created=created, seq=seq, model_seq=self.model.seq)

    def _check_known(self, item: str) -> int:
        check_id("item", item)
        number = self.view.number_of(item)
        if number is None:
            raise UnknownItem(f"item is {item!r}; accepted: an item there is")
        return number

    def version(self, request: AskVersion) -> Callable[[], Version]:
        engaged = self.engaged
        return lambda: version_of(self.model, self.store.head, engaged.durability, request.state, engaged.known_state)

    def disk(self, request: AskDisk) -> Callable[[], Disk]:
        return lambda: disk_of(self.engaged.folder, self.store, self.engaged.known_state)

    def series(self, request: AskSeries) -> Callable[[], Series]:
        return self.model.series.series


R = TypeVar("R", bound=Request[Any])
A = TypeVar("A", bound=Answer)


def _attempt(handle: Callable[[R], Callable[[], A]], request: R) -> Callable[[], A | Refusal]:
    """What becomes of one of many; whatever is wrong with it, the others have nothing to do with it."""
    try:
        return handle(request)
    except Refused as refusal:
        told = Refusal(refusal.status, refusal.code, str(refusal))
    except Exception as error:  # a mistake of ours, which must not take the others with it
        told = Refusal(500, "failed", f"the service failed to look at this one ({type(error).__name__})")
    return lambda: told


def looking(read: Callable[[Model, Store, Any], Answer]) -> Callable[[Group, Any], Finish]:
    """A handler that only looks, once the group is folded."""
    return lambda group, request: lambda: read(group.model, group.store, request)


LOOKING: dict[type[Request[Any]], Callable[[Model, Store, Any], Answer]] = {
    ViewUser: read_user,
    ListUsers: list_users,
    ListItems: list_items,
    ListEvents: list_events,
    ViewDecision: read_decision,
    Suppose: suppose,
    SimilarItems: similar_items,
}
READING: tuple[type[Request[Any]], ...] = (AskVersion, AskSeries, AskDisk, *LOOKING)
"""Requests that write nothing, and go on when there is no room on the disk."""

HANDLERS: dict[type[Request[Any]], Callable[[Group, Any], Finish]] = {
    Recommend: Group.recommend,
    Feedback: Group.feedback,
    FeedbackBatch: Group.feedback_batch,
    UpsertItem: Group.upsert_item,
    UpsertItems: Group.upsert_items,
    GiveUp: Group.give_up,
    SetRewards: Group.set_rewards,
    RetireItem: Group.retire_item,
    RestoreItem: Group.restore_item,
    AskVersion: Group.version,
    AskSeries: Group.series,
    AskDisk: Group.disk,
    **{kind: looking(read) for kind, read in LOOKING.items()},
}
