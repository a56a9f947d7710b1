"""Requests to an engine. `Request[Answer]` names the type of the answer."""

from typing import Annotated, Generic, Literal, TypeVar, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from albatross.service.api.answers import (
    Accepted,
    Answer,
    BackupTaken,
    BatchAccepted,
    Decision,
    Forgotten,
    ItemAccepted,
    ItemsAccepted,
    RewardsAccepted,
    Series,
    SnapshotTaken,
    UsersJoined,
    UserView,
    Version,
)
from albatross.service.api.rules import Attributes, By, Fresh, Quotas, Where
from albatross.service.api.values import (
    MOST_LISTED,
    MOST_SHOWN,
    MOST_VIEWED,
    Candidates,
    Explain,
    HotId,
    Id,
    Ids,
    Listed,
    Position,
    Rewarded,
    Seen,
)
from albatross.service.api.views import DecisionView, Disk, EventList, ItemList, PastView, SimilarList, UserList, VerifyReport, WhatIf

A = TypeVar("A", bound=Answer, covariant=True)


class Request(Struct, Generic[A], frozen=True, forbid_unknown_fields=True):
    """Base class of all requests."""


class Recommend(Request[Decision], frozen=True, gc=False):
    """Recommend items to a user."""

    user: HotId | None
    """None: an unknown visitor. The answer contains a new id for them."""
    n: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = 1
    candidates: Candidates | None = None
    """Only these items; None: the whole catalogue. Unknown ones become items, unless the catalogue is closed."""
    exclude: Ids = []
    exclude_seen: Seen = "none"
    explain: Explain = False
    """Why each item is shown: true for everything that is known about it, "reasons" for the words and the numbers behind them."""
    request_id: HotId | None = None
    """A repeated request with the same id gets the same decision again."""
    where: Where | None = None
    """Only items that satisfy this condition."""
    quotas: Quotas = []
    """How many items of the slate may share a label."""
    fresh: Fresh | None = None
    """A share of the places for items that were rarely shown."""
    by: By = "policy"
    """Rank by the policy or, as a fallback, by popularity or by novelty."""

    @property
    def whom(self) -> str:
        """The user, after an id was made for a visitor."""
        assert self.user is not None
        return self.user


class Feedback(Request[Accepted], frozen=True, gc=False):
    """A rating, or a named event instead of one, with or without a decision."""

    event_id: HotId
    rating: float | None = None
    """Leave it out with `event`."""
    decision_id: HotId | None = None
    user: HotId | None = None
    """Optional with a decision; if given, it must be the user of the decision."""
    item: HotId | None = None
    """Optional with a decision that has one item."""
    event: Id | None = None
    """A named event, for example click, instead of a rating. The last event for the same item of a decision counts."""


class SetRewards(Request[RewardsAccepted], frozen=True):
    """Set the named events and their rewards from now on. Earlier events keep their rewards."""

    events: Rewarded


class FeedbackBatch(Request[BatchAccepted], frozen=True):
    """Ratings that are committed together."""

    events: list[Feedback]


class UpsertItem(Request[ItemAccepted], frozen=True):
    """Add an item, change it, or show a retired one again. Fields that are not given keep their values."""

    item: Id
    attributes: Attributes | UnsetType = UNSET
    """All attributes: they replace the earlier ones."""
    available_from: float | UnsetType | None = UNSET
    available_until: float | UnsetType | None = UNSET
    """Seconds since 1970, the end not included; null: no limit."""
    in_stock: bool | UnsetType = UNSET


class UpsertItems(Request[ItemsAccepted], frozen=True):
    """Items that are committed together."""

    items: list[UpsertItem]


class SimilarItems(Request[SimilarList], frozen=True):
    """Items whose vectors have a similar direction."""

    item: Id
    n: Listed = 10


class RetireItem(Request[ItemAccepted], frozen=True):
    """Stop showing an item. What was learned about it is kept."""

    item: Id


class RestoreItem(Request[ItemAccepted], frozen=True):
    """Show a retired item again."""

    item: Id


class ViewUser(Request[UserView], frozen=True):
    """The belief about a user. Changes and logs nothing."""

    user: Id
    n: Annotated[int, Meta(ge=0, le=MOST_VIEWED)] = 10
    """How many of the items with the best scores to return."""
    history: Annotated[int, Meta(ge=0, le=MOST_LISTED)] = 0
    """How many of the user's latest ratings to return."""


class JoinUsers(Request[UsersJoined], frozen=True):
    """A visitor is now known to be this user. The visitor's past and future events belong to the user, as if there had been one id."""

    visitor: Id
    user: Id


class ForgetUser(Request[Forgotten], frozen=True):
    """Erase a user from the log and rebuild the model without them."""

    user: Id


class AskVersion(Request[Version], frozen=True):
    """What is served, and the head of the log."""

    state: Literal["now", "cheap", "none"] = "now"
    """Computing the state id reads the whole model. cheap: for a large model, that of the last snapshot."""


class AskDisk(Request[Disk], frozen=True):
    """The size of the log on disk, free space, and the newest snapshot."""


class AskSeries(Request[Series], frozen=True):
    """Reward, calibration and optimism so far."""


class TakeSnapshot(Request[SnapshotTaken], frozen=True):
    """Write a snapshot of the model now."""


class TakeBackup(Request[BackupTaken], frozen=True):
    """Copy the whole folder, while it is served, to a new folder below `backups`."""


class ListUsers(Request[UserList], frozen=True):
    """Users with at least one rating, oldest first."""

    n: Listed = 100
    after: Position = 0
    """How many to skip: the `next` of the previous answer."""
    search: Id | None = None
    """Only those whose id contains this text, ignoring case."""


class ListItems(Request[ItemList], frozen=True):
    """Items, oldest first, including retired ones."""

    n: Listed = 100
    after: Position = 0
    """How many to skip: the `next` of the previous answer."""
    search: Id | None = None
    """Only those whose id contains this text, ignoring case."""
    user: Id | None = None
    """The user for mean and bonus; null: a user without ratings."""


class ListEvents(Request[EventList], frozen=True):
    """Events of the log, newest first."""

    n: Listed = 20
    before: Position | None = None
    """Only events before this one; null: from the head of the log. With several shards, `shard` is needed too."""
    shard: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """The shard whose log is read; null: the newest events of all shards."""


class ViewDecision(Request[DecisionView], frozen=True):
    """A decision, the items with the next best scores, and the feedback."""

    decision_id: Id
    n: Annotated[int, Meta(ge=0, le=MOST_SHOWN)] = 5
    """How many of the items with the next best scores to return, at most."""


class Suppose(Request[WhatIf], frozen=True):
    """What a user would be shown after one more rating. Nothing is learned or written."""

    user: Id
    item: Id
    rating: float
    n: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = 10


class LookBack(Request[PastView], frozen=True):
    """The model as it was at an event, rebuilt from the log beside the serving model."""

    seq: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    user: Id | None = None
    n: Annotated[int, Meta(ge=0, le=MOST_SHOWN)] = 10
    shard: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """The shard whose log is read, with several shards; null: the user's shard."""


class Verify(Request[VerifyReport], frozen=True):
    """Rebuild the model from the log alone, beside the serving model, and compare."""


def answer_of(request: type[Request[Answer]]) -> type[Answer]:
    """The type of the answer to a request.

    >>> answer_of(Recommend).__name__
    'Decision'
    """
    (base,) = request.__orig_bases__  # type: ignore[attr-defined]
    answer: type[Answer] = get_args(base)[0]
    return answer
