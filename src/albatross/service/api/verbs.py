"""The methods of `Recommender` and `Client`: the same, embedded and over HTTP."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from albatross.service.api.answers import (
    Accepted,
    Answer,
    BackupTaken,
    Decision,
    Forgotten,
    ItemAccepted,
    RewardsAccepted,
    Series,
    SnapshotTaken,
    UsersJoined,
    UserView,
    Version,
)
from albatross.service.api.errors import BadValue
from albatross.service.api.requests import (
    AskSeries,
    AskVersion,
    Feedback,
    ForgetUser,
    JoinUsers,
    Recommend,
    Request,
    RestoreItem,
    RetireItem,
    SetRewards,
    SimilarItems,
    TakeBackup,
    TakeSnapshot,
    UpsertItem,
    ViewUser,
)
from albatross.service.api.rules import By, Fresh, Quota, Where
from albatross.service.api.values import Explain, Seen
from albatross.service.api.views import SimilarList

A = TypeVar("A", bound=Answer)
P = TypeVar("P", bound=Where | Fresh)


class Verbs(ABC):
    """All requests to a service, as methods. A subclass defines how a request gets its answer."""

    @abstractmethod
    def ask(self, request: Request[A]) -> A:
        """The answer. Raises an exception that says why there is none."""

    @abstractmethod
    def close(self) -> None:
        """Free all resources."""

    def recommend(
        self,
        user: str | None,
        n: int = 1,
        candidates: Sequence[str] | None = None,
        *,
        exclude: Sequence[str] = (),
        exclude_seen: Seen = "none",
        explain: Explain = False,
        request_id: str | None = None,
        where: Where | Mapping[str, Any] | None = None,
        quotas: Mapping[str, int] | None = None,
        fresh: Fresh | Mapping[str, Any] | None = None,
        by: By = "policy",
    ) -> Decision:
        """Items to show a user: one, or n of them, best first. With None, an unknown visitor: `Decision.user` is a new id for them.

        explain: "reasons" to say why, in words and in numbers; True to say everything that is known about the choice.
        where: a condition on items, for example {"attribute": "category", "is": "tea"}. quotas: by attribute, how many items of a slate
        may share a label. fresh: a share of the places for items that were rarely shown. by: policy or, as a fallback, popular or new.
        """
        request = Recommend(
            user=None if user is None else _text("user", user),
            n=n,
            candidates=None if candidates is None else _texts("candidates", candidates),
            exclude=_texts("exclude", exclude),
            exclude_seen=exclude_seen,
            explain=explain,
            request_id=request_id,
            where=None if where is None else _part("where", where, Where),
            quotas=[Quota(_text("attribute", attribute), most) for attribute, most in _table("quotas", quotas or {}).items()],
            fresh=None if fresh is None else _part("fresh", fresh, Fresh),
            by=by,
        )
        return self.ask(request)

    def rate(
        self, decision: Decision | str, rating: float, item: str | None = None, *, user: str | None = None, event_id: str | None = None
    ) -> Accepted:
        """Rate a decision, given as such or by its id; with several items, say which. It may be repeated with the same event_id."""
        name = decision.decision_id if isinstance(decision, Decision) else _text("decision", decision)
        return self.ask(Feedback(_fresh(event_id), rating, name, user, item))

    def rate_item(self, user: str, item: str, rating: float, *, event_id: str | None = None) -> Accepted:
        """A rating without a decision: the user found the item without a recommendation."""
        return self.ask(Feedback(_fresh(event_id), rating, None, _text("user", user), _text("item", item)))

    def report(
        self, decision: Decision | str, event: str, item: str | None = None, *, user: str | None = None, event_id: str | None = None
    ) -> Accepted:
        """A named event for an item of a decision, for example click. A later event replaces the earlier one: click, then purchase."""
        name = decision.decision_id if isinstance(decision, Decision) else _text("decision", decision)
        return self.ask(Feedback(_fresh(event_id), None, name, user, item, _text("event", event)))

    def report_item(self, user: str, item: str, event: str, *, event_id: str | None = None) -> Accepted:
        """A named event for an item that no decision showed. It counts as a rating with the reward of the event."""
        return self.ask(Feedback(_fresh(event_id), None, None, _text("user", user), _text("item", item), _text("event", event)))

    def set_rewards(self, events: Mapping[str, float]) -> RewardsAccepted:
        """Set the named events and their rewards from now on."""
        return self.ask(SetRewards(dict(_table("events", events))))

    def upsert_item(
        self,
        item: str,
        *,
        attributes: Mapping[str, str | list[str] | float] | None = None,
        available_from: float | UnsetType | None = UNSET,
        available_until: float | UnsetType | None = UNSET,
        in_stock: bool | UnsetType = UNSET,
    ) -> ItemAccepted:
        """Add or change an item: attributes, time of availability (seconds since 1970), stock. It may be shown.

        Fields that are not given keep their values. Attributes replace all earlier ones.
        """
        given = UNSET if attributes is None else dict(_table("attributes", attributes))
        return self.ask(UpsertItem(_text("item", item), given, available_from, available_until, in_stock))

    def similar_items(self, item: str, n: int = 10) -> SimilarList:
        """The n items whose vectors have the most similar direction."""
        return self.ask(SimilarItems(_text("item", item), n))

    def retire_item(self, item: str) -> ItemAccepted:
        """Stop showing an item. What was learned about it is kept."""
        return self.ask(RetireItem(_text("item", item)))

    def restore_item(self, item: str) -> ItemAccepted:
        """Show a retired item again."""
        return self.ask(RestoreItem(_text("item", item)))

    def user(self, user: str, n: int = 10) -> UserView:
        """The belief about a user, and the n items with the best scores."""
        return self.ask(ViewUser(_text("user", user), n))

    def join(self, visitor: str, user: str) -> UsersJoined:
        """A visitor is now known to be this user: the visitor's past and future events belong to the user. It may be repeated."""
        return self.ask(JoinUsers(_text("visitor", visitor), _text("user", user)))

    def forget_user(self, user: str) -> Forgotten:
        """Erase a user from the log, and rebuild the model without them."""
        return self.ask(ForgetUser(_text("user", user)))

    def version(self) -> Version:
        """The state id, the head of the log, and the settings of the folder."""
        return self.ask(AskVersion())

    def series(self) -> Series:
        """Mean rating, calibration and optimism so far."""
        return self.ask(AskSeries())

    def snapshot(self) -> SnapshotTaken:
        """Write a snapshot of the model now."""
        return self.ask(TakeSnapshot())

    def backup(self) -> BackupTaken:
        """Copy the whole folder, while it is served, to a new one below its `backups`."""
        return self.ask(TakeBackup())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _fresh(event_id: str | None) -> str:
    return secrets.token_hex(16) if event_id is None else _text("event_id", event_id)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadValue(f"{name} is {value!r}; accepted: text")
    return value


def _part(name: str, given: Any, kind: type[P]) -> P:
    if isinstance(given, kind):
        return given
    try:
        return msgspec.convert(dict(_table(name, given)), kind)
    except msgspec.ValidationError as error:
        raise BadValue(f"{name} cannot be read: {error}") from error


def _table(name: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise BadValue(f"{name} is {given!r}; accepted: a dictionary")
    return given


def _texts(name: str, values: Any) -> list[str]:
    if isinstance(values, str):
        raise BadValue(f"{name} is the text {values!r}; accepted: a list of ids")
    return [_text(name, value) for value in values]
