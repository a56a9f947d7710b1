"""What can be asked of an engine. `Request[Answer]`: each knows the type of its answer."""

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
from albatross.service.api.values import MOST_LISTED, MOST_SHOWN, MOST_VIEWED, Candidates, HotId, Id, Ids, Listed, Position, Rewarded, Seen
from albatross.service.api.views import DecisionView, Disk, EventList, ItemList, PastView, SimilarList, UserList, VerifyReport, WhatIf

A = TypeVar("A", bound=Answer, covariant=True)


class Request(Struct, Generic[A], frozen=True, forbid_unknown_fields=True):
    """Anything an engine can be asked."""


class Recommend(Request[Decision], frozen=True, gc=False):
    """Show this user something."""

    user: HotId | None
    """None: a visitor whom nobody knows. An id is made for them, and stands in the answer."""
    n: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = 1
    candidates: Candidates | None = None
    """Only these; none: the whole catalogue. Unknown ones become items, unless the catalogue is closed."""
    exclude: Ids = []
    exclude_seen: Seen = "none"
    explain: bool = False
    request_id: HotId | None = None
    """Asked again with the same one, the engine gives the same decision again."""
    where: Where | None = None
    """Only items for which this holds."""
    quotas: Quotas = []
    """How many items of the slate may share a label."""
    fresh: Fresh | None = None
    """A share of the places for items that were seldom shown."""
    by: By = "policy"
    """What to rank by: the policy; or, as a fallback, what is popular, or what is new."""

    @property
    def whom(self) -> str:
        """The user, once an id was made for a visitor."""
        assert self.user is not None
        return self.user


class Feedback(Request[Accepted], frozen=True, gc=False):
    """A rating, or an event with a name that stands for one; of a decision or by itself."""

    event_id: HotId
    rating: float | None = None
    """Not needed with `event`."""
    decision_id: HotId | None = None
    user: HotId | None = None
    """With a decision: not needed; if given, it must be the decision's."""
    item: HotId | None = None
    """With a decision for one item: not needed."""
    event: Id | None = None
    """What was done, as click: instead of a rating. Of the same item of a decision, the last one counts."""


class SetRewards(Request[RewardsAccepted], frozen=True):
    """From now on, these are the names of events, and what they are worth. What came before stays as it was."""

    events: Rewarded


class FeedbackBatch(Request[BatchAccepted], frozen=True):
    """Ratings that are committed together."""

    events: list[Feedback]


class UpsertItem(Request[ItemAccepted], frozen=True):
    """There is such an item; a retired one may be shown again. What is not said of it stays as it was."""

    item: Id
    attributes: Attributes | UnsetType = UNSET
    """All of them: these take the place of those before."""
    available_from: float | UnsetType | None = UNSET
    available_until: float | UnsetType | None = UNSET
    """Seconds since 1970, the end not included; none: always."""
    in_stock: bool | UnsetType = UNSET


class UpsertItems(Request[ItemsAccepted], frozen=True):
    """Items that are committed together."""

    items: list[UpsertItem]


class SimilarItems(Request[SimilarList], frozen=True):
    """Items whose vectors point in the direction of this one's."""

    item: Id
    n: Listed = 10


class RetireItem(Request[ItemAccepted], frozen=True):
    """Never show this item again; what was learned of it stays."""

    item: Id


class RestoreItem(Request[ItemAccepted], frozen=True):
    """A retired item may be shown again."""

    item: Id


class ViewUser(Request[UserView], frozen=True):
    """What is believed of a user. Changes and logs nothing."""

    user: Id
    n: Annotated[int, Meta(ge=0, le=MOST_VIEWED)] = 10
    """How many of the items with the best scores to tell."""
    history: Annotated[int, Meta(ge=0, le=MOST_LISTED)] = 0
    """How many of their latest ratings to tell."""


class JoinUsers(Request[UsersJoined], frozen=True):
    """A visitor turned out to be this user: what they said, and will say, is the user's, as if all had come from the one."""

    visitor: Id
    user: Id


class ForgetUser(Request[Forgotten], frozen=True):
    """Erase a user from the log and rebuild the model as if they had never come."""

    user: Id


class AskVersion(Request[Version], frozen=True):
    """What is served, and how far it has come."""

    state: Literal["now", "cheap", "none"] = "now"
    """The state id reads the whole model. cheap: of a large model, that of the last snapshot."""


class AskDisk(Request[Disk], frozen=True):
    """What the folder takes on disk, and which snapshot is the newest."""


class AskSeries(Request[Series], frozen=True):
    """How it went so far."""


class TakeSnapshot(Request[SnapshotTaken], frozen=True):
    """Write the model beside the log now."""


class TakeBackup(Request[BackupTaken], frozen=True):
    """Copy the whole folder, while it serves, to a new folder below `backups`."""


class ListUsers(Request[UserList], frozen=True):
    """Users who have rated something, in the order in which they came."""

    n: Listed = 100
    after: Position = 0
    """How many to pass over: what the answer before called `next`."""
    search: Id | None = None
    """Only those whose id contains this, in capitals or not."""


class ListItems(Request[ItemList], frozen=True):
    """Items, in the order in which they came, retired ones included."""

    n: Listed = 100
    after: Position = 0
    """How many to pass over: what the answer before called `next`."""
    search: Id | None = None
    """Only those whose id contains this, in capitals or not."""
    user: Id | None = None
    """For whom to tell mean and bonus; none: for a stranger."""


class ListEvents(Request[EventList], frozen=True):
    """What stands in the log, the newest first."""

    n: Listed = 20
    before: Position | None = None
    """Only events before this one; none: from the head of the log. Of several shards, `shard` must be said, too."""
    shard: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """Whose log, where there are several shards; none: the newest events of all of them."""


class ViewDecision(Request[DecisionView], frozen=True):
    """A decision, what else was close, and what came of it."""

    decision_id: Id
    n: Annotated[int, Meta(ge=0, le=MOST_SHOWN)] = 5
    """How many items that were close to tell, at most."""


class Suppose(Request[WhatIf], frozen=True):
    """What a user would be shown after one more rating. Nothing is learned and nothing is written."""

    user: Id
    item: Id
    rating: float
    n: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = 10


class LookBack(Request[PastView], frozen=True):
    """The model as it was at an event, rebuilt from the log beside the one that serves."""

    seq: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    user: Id | None = None
    n: Annotated[int, Meta(ge=0, le=MOST_SHOWN)] = 10


class Verify(Request[VerifyReport], frozen=True):
    """Rebuild the model from the log alone, beside the one that serves, and compare."""


def answer_of(request: type[Request[Answer]]) -> type[Answer]:
    """The type a request is answered by.

    >>> answer_of(Recommend).__name__
    'Decision'
    """
    (base,) = request.__orig_bases__  # type: ignore[attr-defined]
    answer: type[Answer] = get_args(base)[0]
    return answer
