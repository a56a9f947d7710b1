"""What can be asked of an engine, what it answers, and what it refuses.

Requests and answers are frozen and hold outside names and plain numbers only: the embedded recommender, HTTP and its client share them.
"""

import math
from typing import Any, ClassVar, Literal

from msgspec import Struct

from albatross.core.errors import InvalidInput

MOST_BYTES = 256
"""Length of an outside id, at most, as UTF-8."""
MOST_ITEMS = 1_000
"""Items in one slate, at most."""
MOST_CANDIDATES = 100_000
"""Candidates, or excluded items, in one request, at most."""

Seen = Literal["rated", "pending", "none"]
"""Which items not to show again: those the user rated; those and what they were shown and have not answered; none."""


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """Anything an engine can be asked."""


class Answer(Struct, frozen=True):
    """Anything an engine can answer."""


class Recommend(Request, frozen=True):
    """Show this user something. Answered by `Decision`."""

    user: str
    n: int = 1
    candidates: list[str] | None = None
    """Only these; none: the whole catalogue. Unknown ones become items, unless the catalogue is closed."""
    exclude: list[str] = []
    exclude_seen: Seen = "none"
    explain: bool = False
    request_id: str | None = None
    """Asked again with the same one, the engine gives the same decision again."""


class Feedback(Request, frozen=True):
    """A rating, of a decision or by itself. Answered by `Accepted`."""

    event_id: str
    rating: float
    decision_id: str | None = None
    user: str | None = None
    """With a decision: not needed; if given, it must be the decision's."""
    item: str | None = None
    """With a decision for one item: not needed."""


class FeedbackBatch(Request, frozen=True):
    """Ratings that are committed together. Answered by `BatchAccepted`: one answer or refusal per rating, in order."""

    events: list[Feedback]


class UpsertItem(Request, frozen=True):
    """There is such an item; a retired one may be shown again. Answered by `ItemAccepted`."""

    item: str


class RetireItem(Request, frozen=True):
    """Never show this item again; what was learned of it stays. Answered by `ItemAccepted`."""

    item: str


class RestoreItem(Request, frozen=True):
    """A retired item may be shown again. Answered by `ItemAccepted`."""

    item: str


class ViewUser(Request, frozen=True):
    """What is believed of a user. Answered by `UserView`. Changes and logs nothing."""

    user: str
    n: int = 10
    """How many of the items with the best scores to tell."""


class ForgetUser(Request, frozen=True):
    """Erase a user from the log and rebuild the model as if they had never come. Answered by `Forgotten`."""

    user: str


class AskVersion(Request, frozen=True):
    """Answered by `Version`."""

    state: bool = True
    """Whether to compute the state id, which reads the whole model."""


class AskSeries(Request, frozen=True):
    """How it went so far. Answered by `Series`."""


class TakeSnapshot(Request, frozen=True):
    """Write the model beside the log now. Answered by `SnapshotTaken`."""


class ShownItem(Answer, frozen=True):
    """One item of a decision: score = mean + bonus."""

    item: str
    rank: int
    """1 is the first."""
    score: float
    mean: float
    bonus: float
    propensity: float | None
    """The probability of this item at this place, given the items before it; none where the policy cannot tell."""


class ItemExplanation(Answer, frozen=True):
    """Why an item was shown, in numbers."""

    item: str
    mean: float
    bonus: float
    score: float
    item_ratings: int
    """How many ratings the item has, by anybody."""
    own_ratings: int
    """How many of them by this user."""
    explored: bool
    """Whether chance, not the score, put it here."""
    width: float | None = None
    """How far the expectation may be off; none where the policy has no ellipsoid."""
    width_after: float | None = None
    """The same after one more rating of this item by this user."""


class Ellipsoid(Answer, frozen=True):
    """Where a user may be: |q − center|_V ≤ radius. `axes[i]` is the unit eigenvector of V for `eigenvalues[i]`, in ascending order."""

    center: list[float]
    radius: float
    eigenvalues: list[float]
    axes: list[list[float]]


class Explanation(Answer, frozen=True):
    user_ratings: int
    pending: list[str]
    """What the user was shown and has not answered, as far as it counted."""
    items: list[ItemExplanation]
    ellipsoid: Ellipsoid | None
    """None where the policy has none."""


class Decision(Answer, frozen=True):
    decision_id: str
    user: str
    policy: str
    model_seq: int
    """The decision was made by a model that knows every event up to this one."""
    items: list[ShownItem]
    user_ratings: int
    explanation: Explanation | None = None

    @property
    def item(self) -> str:
        """The first item."""
        return self.items[0].item


class Accepted(Answer, frozen=True):
    seq: int
    applied: bool
    """Whether the model has learned from it; false where it had before, or where the user was forgotten since."""
    duplicate: bool
    model_seq: int


class Refusal(Answer, frozen=True):
    """Why one rating of a batch was refused."""

    status: int
    code: str
    detail: str


class BatchAccepted(Answer, frozen=True):
    answers: list[Accepted | Refusal]


class ItemAccepted(Answer, frozen=True):
    item: str
    retired: bool
    created: bool
    seq: int
    """The event that made it so."""
    model_seq: int


class UserView(Answer, frozen=True):
    user: str
    ratings: int
    pending: list[str]
    vector: list[float] | None
    """The policy's vector of the user, where it has one; `ellipsoid.center` is the mean vector."""
    ellipsoid: Ellipsoid | None
    top: list[ShownItem]
    """The items with the best scores. Their propensity is none: nothing was drawn."""
    model_seq: int


class Forgotten(Answer, frozen=True):
    user: str
    seq: int
    events: int
    """How many events were erased."""
    model_seq: int


class Version(Answer, frozen=True):
    version: str
    policy: str
    parameters: dict[str, Any]
    scale: tuple[float, ...]
    """Lowest and highest rating."""
    seed: int
    seq: int
    """The head of the log."""
    chain: str
    """The hash that stands for the whole log up to there."""
    state_id: str | None
    kernel: str
    users: int
    items: int
    retired: int
    ratings: int
    decisions: int
    durability: str


class Series(Answer, frozen=True):
    """Averages over equally many ratings each, oldest first. Where a group has none to average, none."""

    width: int
    """Ratings per group; the last one may have fewer."""
    ratings: list[int]
    reward: list[float | None]
    """Mean rating."""
    calibration: list[float | None]
    """Of the ratings of decisions, the share inside mean ± bonus."""
    optimism: list[float | None]
    """Of the same, the mean of score − rating."""


class SnapshotTaken(Answer, frozen=True):
    seq: int
    state_id: str
    path: str


class Readiness(Answer, frozen=True):
    """What an engine is doing; can be had at any time, from any thread."""

    ready: bool
    phase: Literal["opening", "checking", "replaying", "ready", "draining", "closed", "failed"]
    done: int
    """Events checked or replayed so far …"""
    total: int
    """… of so many."""
    waiting: int
    """Requests in the queue."""
    detail: str | None = None
    """What failed."""


class Refused(InvalidInput):
    """A request was not accepted. `status` is what HTTP says; `code` is one word for programs; the message is for people."""

    status: ClassVar[int] = 422
    code: ClassVar[str] = "refused"


class BadValue(Refused):
    code = "bad-value"


class EventReused(Refused):
    code = "event-reused"


class NoEligibleCandidate(Refused):
    code = "no-eligible-candidate"


class UnknownItem(Refused):
    """The catalogue is closed, or there is nothing to retire."""

    code = "unknown-item"


class UnknownDecision(Refused):
    status = 404
    code = "unknown-decision"


class UnknownUser(Refused):
    status = 404
    code = "unknown-user"


class EventInFlight(Refused):
    status = 409
    code = "event-in-flight"


class Overloaded(Refused):
    status = 429
    code = "overloaded"
    retry_after: ClassVar[int] = 1
    """Seconds."""


class NotReady(Refused):
    """Replaying, draining, or closed."""

    status = 503
    code = "not-ready"


class StorageFailed(Refused):
    """The disk did not keep a commit: nothing more is accepted, and the process should end."""

    status = 503
    code = "storage-failed"


class DiskFull(Refused):
    status = 507
    code = "disk-full"


def check_id(name: str, value: str) -> None:
    """Refuse what cannot name anything: empty, over-long, with control characters, or not text that UTF-8 can hold."""
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        raise BadValue(f"{name} holds half a character (a lone surrogate); accepted: text") from error
    if not 1 <= length <= MOST_BYTES:
        raise BadValue(f"{name} has {length} bytes; accepted: 1 to {MOST_BYTES}")
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in value):
        raise BadValue(f"{name} is {value!r}; accepted: text without control characters")


def check_rating(rating: float, scale: tuple[float, float]) -> None:
    low, high = scale
    if isinstance(rating, bool) or not isinstance(rating, int | float) or not math.isfinite(rating) or not low <= rating <= high:
        raise BadValue(f"rating is {rating!r}; accepted: a number from {low:g} to {high:g}")
