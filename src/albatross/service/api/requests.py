"""What can be asked of an engine. `Request[Answer]`: each knows the type of its answer."""

from typing import Annotated, Generic, Literal, TypeVar, get_args

from msgspec import Meta, Struct

from albatross.service.api.answers import (
    Accepted,
    Answer,
    BackupTaken,
    BatchAccepted,
    Decision,
    Forgotten,
    ItemAccepted,
    Series,
    SnapshotTaken,
    UserView,
    Version,
)
from albatross.service.api.values import MOST_SHOWN, MOST_VIEWED, Candidates, Id, Ids, Seen

A = TypeVar("A", bound=Answer, covariant=True)


class Request(Struct, Generic[A], frozen=True, forbid_unknown_fields=True):
    """Anything an engine can be asked."""


class Recommend(Request[Decision], frozen=True):
    """Show this user something."""

    user: Id
    n: Annotated[int, Meta(ge=1, le=MOST_SHOWN)] = 1
    candidates: Candidates | None = None
    """Only these; none: the whole catalogue. Unknown ones become items, unless the catalogue is closed."""
    exclude: Ids = []
    exclude_seen: Seen = "none"
    explain: bool = False
    request_id: Id | None = None
    """Asked again with the same one, the engine gives the same decision again."""


class Feedback(Request[Accepted], frozen=True):
    """A rating, of a decision or by itself."""

    event_id: Id
    rating: float
    decision_id: Id | None = None
    user: Id | None = None
    """With a decision: not needed; if given, it must be the decision's."""
    item: Id | None = None
    """With a decision for one item: not needed."""


class FeedbackBatch(Request[BatchAccepted], frozen=True):
    """Ratings that are committed together."""

    events: list[Feedback]


class UpsertItem(Request[ItemAccepted], frozen=True):
    """There is such an item; a retired one may be shown again."""

    item: Id


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


class ForgetUser(Request[Forgotten], frozen=True):
    """Erase a user from the log and rebuild the model as if they had never come."""

    user: Id


class AskVersion(Request[Version], frozen=True):
    """What is served, and how far it has come."""

    state: Literal["now", "cheap", "none"] = "now"
    """The state id reads the whole model. cheap: of a large model, that of the last snapshot."""


class AskSeries(Request[Series], frozen=True):
    """How it went so far."""


class TakeSnapshot(Request[SnapshotTaken], frozen=True):
    """Write the model beside the log now."""


class TakeBackup(Request[BackupTaken], frozen=True):
    """Copy the whole folder, while it serves, to a new folder below `backups`."""


def answer_of(request: type[Request[Answer]]) -> type[Answer]:
    """The type a request is answered by.

    >>> answer_of(Recommend).__name__
    'Decision'
    """
    (base,) = request.__orig_bases__  # type: ignore[attr-defined]
    answer: type[Answer] = get_args(base)[0]
    return answer
