"""The verbs of `Recommender` and `Client`: the same words, embedded and over HTTP."""

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
from albatross.service.api.values import Seen
from albatross.service.api.views import SimilarList

A = TypeVar("A", bound=Answer)


class Verbs(ABC):
    """Everything a service can be asked, as methods. Whoever derives from this says how a request gets its answer."""

    @abstractmethod
    def ask(self, request: Request[A]) -> A:
        """The answer, or an exception that says why there is none."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held."""

    def recommend(
        self,
        user: str | None,
        n: int = 1,
        candidates: Sequence[str] | None = None,
        *,
        exclude: Sequence[str] = (),
        exclude_seen: Seen = "none",
        explain: bool = False,
        request_id: str | None = None,
        where: Where | Mapping[str, Any] | None = None,
        quotas: Mapping[str, int] | None = None,
        fresh: Fresh | None = None,
        by: By = "policy",
    ) -> Decision:
        """What to show this user: one item, or n of them, best first. With None, a visitor whom nobody knows: `Decision.user` is their id.

        where: a condition on items, as {"attribute": "category", "is": "tea"}. quotas: how many items of a slate may share a label, by
        attribute. fresh: a share of the places for items that were seldom shown. by: policy, or, as a fallback, popular or new.
        """
        request = Recommend(
            user=None if user is None else _text("user", user),
            n=n,
            candidates=None if candidates is None else _texts("candidates", candidates),
            exclude=_texts("exclude", exclude),
            exclude_seen=exclude_seen,
            explain=explain,
            request_id=request_id,
            where=where if where is None or isinstance(where, Where) else _condition(where),
            quotas=[Quota(_text("attribute", attribute), most) for attribute, most in (quotas or {}).items()],
            fresh=fresh,
            by=by,
        )
        return self.ask(request)

    def rate(
        self, decision: Decision | str, rating: float, item: str | None = None, *, user: str | None = None, event_id: str | None = None
    ) -> Accepted:
        """The rating of a decision, or of its id; of several items, say which. Send it as often as you like with the same event_id."""
        name = decision.decision_id if isinstance(decision, Decision) else _text("decision", decision)
        return self.ask(Feedback(_fresh(event_id), rating, name, user, item))

    def rate_item(self, user: str, item: str, rating: float, *, event_id: str | None = None) -> Accepted:
        """A rating without a decision: the user chose the item by themselves."""
        return self.ask(Feedback(_fresh(event_id), rating, None, _text("user", user), _text("item", item)))

    def report(
        self, decision: Decision | str, event: str, item: str | None = None, *, user: str | None = None, event_id: str | None = None
    ) -> Accepted:
        """What was done with an item of a decision, as click. A later event replaces the earlier one: click, then purchase."""
        name = decision.decision_id if isinstance(decision, Decision) else _text("decision", decision)
        return self.ask(Feedback(_fresh(event_id), None, name, user, item, _text("event", event)))

    def report_item(self, user: str, item: str, event: str, *, event_id: str | None = None) -> Accepted:
        """What was done with an item that no decision showed: counted by itself, as a rating of what the event is worth."""
        return self.ask(Feedback(_fresh(event_id), None, None, _text("user", user), _text("item", item), _text("event", event)))

    def set_rewards(self, events: Mapping[str, float]) -> RewardsAccepted:
        """From now on, these are the names of events, and what they are worth."""
        return self.ask(SetRewards(dict(events)))

    def upsert_item(
        self,
        item: str,
        *,
        attributes: Mapping[str, str | list[str] | float] | None = None,
        available_from: float | UnsetType | None = UNSET,
        available_until: float | UnsetType | None = UNSET,
        in_stock: bool | UnsetType = UNSET,
    ) -> ItemAccepted:
        """There is such an item, and it may be shown, with these attributes, in this time (seconds since 1970), in stock or not.

        What is not said stays as it was; attributes take the place of all that there were.
        """
        given = UNSET if attributes is None else dict(attributes)
        return self.ask(UpsertItem(_text("item", item), given, available_from, available_until, in_stock))

    def similar_items(self, item: str, n: int = 10) -> SimilarList:
        """The n items whose vectors point most in the direction of this one's."""
        return self.ask(SimilarItems(_text("item", item), n))

    def retire_item(self, item: str) -> ItemAccepted:
        """Never show it again; what was learned of it stays."""
        return self.ask(RetireItem(_text("item", item)))

    def restore_item(self, item: str) -> ItemAccepted:
        """It may be shown again."""
        return self.ask(RestoreItem(_text("item", item)))

    def user(self, user: str, n: int = 10) -> UserView:
        """What is believed of a user, and the n items with the best scores."""
        return self.ask(ViewUser(_text("user", user), n))

    def join(self, visitor: str, user: str) -> UsersJoined:
        """A visitor turned out to be this user: all they said, and will say, is the user's. Send it as often as you like."""
        return self.ask(JoinUsers(_text("visitor", visitor), _text("user", user)))

    def forget_user(self, user: str) -> Forgotten:
        """Erase a user from the log, and rebuild the model as if they had never come."""
        return self.ask(ForgetUser(_text("user", user)))

    def version(self) -> Version:
        """The state id, the head of the log, and what the folder began with."""
        return self.ask(AskVersion())

    def series(self) -> Series:
        """How it went so far: mean rating, calibration and optimism."""
        return self.ask(AskSeries())

    def snapshot(self) -> SnapshotTaken:
        """Write the model beside the log now."""
        return self.ask(TakeSnapshot())

    def backup(self) -> BackupTaken:
        """Copy the whole folder to a new one below its `backups`, while it serves."""
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


def _condition(where: Mapping[str, Any]) -> Where:
    try:
        return msgspec.convert(dict(where), Where)
    except msgspec.ValidationError as error:
        raise BadValue(f"where cannot be read: {error}") from error


def _texts(name: str, values: Any) -> list[str]:
    if isinstance(values, str):
        raise BadValue(f"{name} is the text {values!r}; accepted: a list of ids")
    return [_text(name, value) for value in values]
