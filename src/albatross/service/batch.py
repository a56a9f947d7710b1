"""One group of requests: decide, commit once, learn, answer all.

Order within a group: decisions and changes of the catalogue come first and see the model as it was; ratings come behind them and
are learned only when the commit has succeeded. So the model never knows more than the disk, and nothing that was learned has to be undone.
"""

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import albatross
from albatross.service.deciding import decide, shown_items, view_user
from albatross.service.events import Decided, Event, Item, Rated, Retire, content_of, decode, encode, event_key, request_key
from albatross.service.log import Row, Store
from albatross.service.messages import (
    MOST_CANDIDATES,
    MOST_ITEMS,
    Accepted,
    AskSeries,
    AskVersion,
    BadValue,
    BatchAccepted,
    Decision,
    EventReused,
    Feedback,
    FeedbackBatch,
    ItemAccepted,
    Recommend,
    Refusal,
    Refused,
    Request,
    RestoreItem,
    RetireItem,
    StorageFailed,
    UnknownDecision,
    UnknownItem,
    UnknownUser,
    UpsertItem,
    Version,
    ViewUser,
    check_id,
    check_rating,
)
from albatross.service.model import Model
from albatross.service.snapshot import kernel_of

Waiting = tuple[Request, "Future[Any]"]


def decision_name(folder: str, seq: int) -> str:
    """A decision's number, and a few letters that only this folder would put behind it: a wrong id finds nothing."""
    return f"{seq}-{hashlib.blake2b(f'{folder} {seq}'.encode(), digest_size=4).hexdigest()}"


class Batch:
    """Requests that are committed together. `run` answers all of them."""

    def __init__(self, model: Model, store: Store, durability: str) -> None:
        self.model, self.store, self.durability = model, store, durability
        self.head = store.head.seq
        self.before = (len(model.items), set(model.retired), model.decisions, model.seq, model.growths)
        self.early: list[tuple[Event, Row]] = []
        self.ratings: list[tuple[Rated, bytes, bytes]] = []
        """Each with its key and content."""
        self.seqs: list[int] = []
        """Of the ratings, once they are known."""
        self.keys: dict[bytes, tuple[int, bytes]] = {}
        """Of this batch: the event's number, or the rating's place among the ratings, and its content."""
        self.new: set[str] = set()
        """Items that the ratings of this batch bring."""
        self.pending: dict[str, dict[int, int]] = {}
        """What users were waited for before this batch decided for them."""
        self.finishing: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.reading: list[tuple[Future[Any], Callable[[], Any]]] = []

    def run(self, waiting: list[Waiting]) -> None:
        """Answer all. Raises `StorageFailed` where the disk did not keep the commit, having told everybody."""
        for request, future in waiting:
            try:
                handle: Callable[[Any], Callable[[], Any]] = HANDLERS[type(request)].__get__(self)
                done = handle(request)
            except Exception as refusal:  # a Refused, or a mistake of ours, which must not take the others with it
                future.set_exception(refusal)
                continue
            (self.reading if isinstance(request, READING) else self.finishing).append((future, done))
        try:
            self._commit()
        except Refused as refusal:
            told = self.finishing + (self.reading if isinstance(refusal, StorageFailed) else [])
            for future, _ in told:
                future.set_exception(refusal)
            if isinstance(refusal, StorageFailed):
                raise
            self._take_back()
            self.finishing = []
        for future, done in self.finishing + self.reading:
            try:
                answer = done()
            except Exception as refusal:
                future.set_exception(refusal)
            else:
                future.set_result(answer)

    @property
    def spoiled(self) -> bool:
        """Whether what was taken back had made the model grow: then it must be recovered from the log."""
        return self.model.growths != self.before[4] and self.store.head.seq == self.head

    def _commit(self) -> None:
        late: list[tuple[Event, Row]] = []
        written: set[str] = set()
        now = time.time()
        for rated, key, content in self.ratings:
            if rated.item not in self.model.items.numbers and rated.item not in written:
                written.add(rated.item)
                item = Item(now, rated.item)
                late.append((item, Row(encode(item))))
            late.append((rated, Row(encode(rated), key, content)))
            self.seqs.append(self.head + len(self.early) + len(late))
        if not self.early and not late:
            return
        self.store.append([row for _, row in self.early + late])
        first = self.head + len(self.early) + 1
        self.model.fold_all(range(first, first + len(late)), [event for event, _ in late])
        self.model.learn()

    def _take_back(self) -> None:
        n_items, retired, decisions, seq, _ = self.before
        self.model.take_back(n_items, retired, self.pending, decisions, seq)

    def _early(self, event: Event, key: bytes | None = None, content: bytes = b"") -> int:
        """Put an event that takes effect at once in front of the ratings; returns its number."""
        self.early.append((event, Row(encode(event), key, content)))
        seq = self.head + len(self.early)
        self.model.fold(seq, event)
        return seq

    def recommend(self, request: Recommend) -> Callable[[], Decision]:
        self._check_recommend(request)
        model, key, content = self.model, None, b""
        if request.request_id is not None:
            key, content = request_key(request.request_id), content_of(request)
            known = self._known(key, content, f"request_id {request.request_id!r}")
            if known is not None:
                return lambda: self._decision(known, self._decided(known))
        for name in request.candidates or ():
            if name not in model.items.numbers and not model.genesis.closed:
                self._add_item(name)
        self.pending.setdefault(request.user, dict(model.pending.get(request.user, {})))
        event = decide(model, request, self.head + len(self.early) + 1, self.head, time.time())
        seq = self._early(event, key, content)
        if key is not None:
            self.keys[key] = (seq, content)
        return lambda: self._decision(seq, event)

    def _check_recommend(self, request: Recommend) -> None:
        check_id("user", request.user)
        if isinstance(request.n, bool) or not isinstance(request.n, int) or not 1 <= request.n <= MOST_ITEMS:
            raise BadValue(f"n is {request.n!r}; accepted: a whole number from 1 to {MOST_ITEMS}")
        if request.exclude_seen not in ("rated", "pending", "none"):
            raise BadValue(f"exclude_seen is {request.exclude_seen!r}; accepted: rated, pending, none")
        if request.request_id is not None:
            check_id("request_id", request.request_id)
        for what, names in (("candidate", request.candidates), ("exclude", request.exclude)):
            if names is not None and len(names) > MOST_CANDIDATES:
                raise BadValue(f"{what} is given {len(names)} times; accepted: at most {MOST_CANDIDATES}")
            for name in names or ():
                if name not in self.model.items.numbers:
                    check_id(what, name)

    def _decided(self, seq: int) -> Decided:
        if seq > self.head and seq - self.head <= len(self.early):
            event: Event | None = self.early[seq - self.head - 1][0]
        else:
            body = self.store.body(seq)
            event = None if body is None else decode(body)
        if not isinstance(event, Decided):
            raise UnknownDecision("there is no such decision, or its user was forgotten since; accepted: the decision_id of an answer")
        return event

    def _decision(self, seq: int, event: Decided) -> Decision:
        return Decision(
            decision_id=decision_name(self.model.genesis.folder, seq),
            user=event.user,
            policy=self.model.genesis.policy,
            model_seq=event.model_seq,
            items=shown_items(event.items),
            user_ratings=event.user_ratings,
            explanation=event.explanation,
        )

    def _known(self, key: bytes, content: bytes, what: str) -> int | None:
        """The number kept for a key, if it is known; refuses another content under the same key."""
        found = self.keys.get(key) or self.store.find(key)
        if found is None:
            return None
        if found[1] != content:
            raise EventReused(f"{what} was used before with another content; accepted: a new id, or exactly the same again")
        return found[0]

    def feedback(self, request: Feedback) -> Callable[[], Accepted]:
        check_id("event_id", request.event_id)
        key = event_key(request.event_id)
        check_rating(request.rating, self.model.genesis.scale)
        content = content_of(Feedback(request.event_id, float(request.rating), request.decision_id, request.user, request.item))
        place = self.keys.get(key)
        known = self._known(key, content, f"event_id {request.event_id!r}")
        if known is not None and place is not None:
            return lambda: Accepted(self.seqs[known], applied=True, duplicate=True, model_seq=self.model.seq)
        if known is not None:
            present = self.store.body(known) is not None
            return lambda: Accepted(known, applied=present, duplicate=True, model_seq=self.model.seq)
        self.keys[key] = (len(self.ratings), content)
        try:
            rated = self._rated(request)
        except Refused:
            del self.keys[key]
            raise
        position = len(self.ratings)
        self.ratings.append((rated, key, content))
        return lambda: Accepted(self.seqs[position], applied=True, duplicate=False, model_seq=self.model.seq)

    def _rated(self, request: Feedback) -> Rated:
        at, rating = time.time(), float(request.rating)
        if request.decision_id is None:
            if request.user is None or request.item is None:
                raise BadValue("a rating needs a decision_id, or a user and an item")
            check_id("user", request.user)
            check_id("item", request.item)
            self._check_item(request.item)
            return Rated(at, request.event_id, request.user, request.item, rating, None, None, None)
        seq = self._number(request.decision_id)
        decision = self._decided(seq)
        if request.user is not None and request.user != decision.user:
            raise BadValue(f"user is {request.user!r}; accepted with this decision: the one it was made for, or none")
        if request.item is None and len(decision.items) > 1:
            raise BadValue(f"item is missing; accepted: one of the {len(decision.items)} items of the decision")
        placed = next((placed for placed in decision.items if request.item in (None, placed.item)), None)
        if placed is None:
            raise BadValue(f"item is {request.item!r}, which this decision did not show; accepted: an item of the decision")
        return Rated(at, request.event_id, decision.user, placed.item, rating, seq, placed.mean, placed.score)

    def _number(self, decision_id: str) -> int:
        digits = decision_id.partition("-")[0]
        if digits.isascii() and digits.isdigit() and len(digits) < 19:
            seq = int(digits)
            if seq <= self.head and decision_name(self.model.genesis.folder, seq) == decision_id:
                return seq
        raise UnknownDecision(f"decision_id is {decision_id[:80]!r}, which nobody was given; accepted: the decision_id of an answer")

    def _check_item(self, item: str) -> None:
        """An item that is rated must exist, or be allowed to come into being."""
        if item in self.model.items.numbers or item in self.new:
            return
        if self.model.genesis.closed:
            raise UnknownItem(f"item is {item!r}; accepted, as the catalogue is closed: an item that was upserted")
        self.model.check_room(len(self.model.items) + len(self.new) + 1)
        self.new.add(item)

    def _add_item(self, item: str) -> int:
        if item not in self.model.items.numbers:
            self.model.check_room(len(self.model.items) + len(self.new) + 1)
        return self._early(Item(time.time(), item))

    def feedback_batch(self, request: FeedbackBatch) -> Callable[[], BatchAccepted]:
        def attempt(event: Feedback) -> Callable[[], Accepted | Refusal]:
            try:
                return self.feedback(event)
            except Refused as refusal:
                told = Refusal(refusal.status, refusal.code, str(refusal))
                return lambda: told

        answers = [attempt(event) for event in request.events]
        return lambda: BatchAccepted([answer() for answer in answers])

    def upsert_item(self, request: UpsertItem) -> Callable[[], ItemAccepted]:
        check_id("item", request.item)
        return self._offer(request.item, request.item not in self.model.items.numbers)

    def restore_item(self, request: RestoreItem) -> Callable[[], ItemAccepted]:
        self._check_known(request.item)
        return self._offer(request.item, False)

    def retire_item(self, request: RetireItem) -> Callable[[], ItemAccepted]:
        self._check_known(request.item)
        retired = self.model.items.numbers[request.item] in self.model.retired
        seq = self.head if retired else self._early(Retire(time.time(), request.item))
        return lambda: ItemAccepted(request.item, retired=True, created=False, seq=seq, model_seq=self.model.seq)

    def _offer(self, item: str, new: bool) -> Callable[[], ItemAccepted]:
        changed = new or self.model.items.numbers[item] in self.model.retired
        seq = self._add_item(item) if changed else self.head
        return lambda: ItemAccepted(item, retired=False, created=new, seq=seq, model_seq=self.model.seq)

    def _check_known(self, item: str) -> None:
        check_id("item", item)
        if item not in self.model.items.numbers:
            raise UnknownItem(f"item is {item!r}; accepted: an item there is")

    def view_user(self, request: ViewUser) -> Callable[[], Any]:
        check_id("user", request.user)
        if isinstance(request.n, bool) or not isinstance(request.n, int) or not 0 <= request.n <= MOST_ITEMS:
            raise BadValue(f"n is {request.n!r}; accepted: a whole number from 0 to {MOST_ITEMS}")

        def read() -> Any:
            if request.user not in self.model.users.numbers:
                raise UnknownUser(f"user {request.user[:80]!r} has not rated anything; accepted: a user who has")
            return view_user(self.model, request.user, request.n)

        return read

    def version(self, request: AskVersion) -> Callable[[], Version]:
        return lambda: version_of(self.model, self.store, self.durability, request.state)

    def series(self, request: AskSeries) -> Callable[[], Any]:
        return self.model.series.series


def version_of(model: Model, store: Store, durability: str, state: bool) -> Version:
    return Version(
        version=albatross.__version__,
        policy=model.genesis.policy,
        parameters=model.policy.parameters(),
        scale=model.genesis.scale,
        seed=model.genesis.seed,
        seq=store.head.seq,
        chain=store.head.chain.hex(),
        state_id=model.state_id if state else None,
        kernel=kernel_of(model),
        users=len(model.users),
        items=len(model.items),
        retired=len(model.retired),
        ratings=model.ratings,
        decisions=model.decisions,
        durability=durability,
    )


READING = (ViewUser, AskVersion, AskSeries)
"""Requests that write nothing, and go on when there is no room on the disk."""

HANDLERS: dict[type[Request], Any] = {
    Recommend: Batch.recommend,
    Feedback: Batch.feedback,
    FeedbackBatch: Batch.feedback_batch,
    UpsertItem: Batch.upsert_item,
    RetireItem: Batch.retire_item,
    RestoreItem: Batch.restore_item,
    ViewUser: Batch.view_user,
    AskVersion: Batch.version,
    AskSeries: Batch.series,
}
