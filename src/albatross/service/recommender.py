"""The engine in your own process: the same folder, the same promises, no server."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from albatross import policies
from albatross.core.policy import Policy
from albatross.service.engine import Engine, Options
from albatross.service.messages import (
    Accepted,
    AskSeries,
    AskVersion,
    BadValue,
    Decision,
    Feedback,
    ForgetUser,
    Forgotten,
    ItemAccepted,
    Recommend,
    RestoreItem,
    RetireItem,
    Seen,
    Series,
    SnapshotTaken,
    TakeSnapshot,
    UpsertItem,
    UserView,
    Version,
    ViewUser,
)


class Recommender:
    """Shows items to users and learns from their ratings, at once; every rating is on disk before `rate` returns.

    Any thread may use it; one process at a time may open a folder. `Client` has the same verbs over HTTP.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> with Recommender(folder.name + "/shop", scale=(1, 5)) as shop:
    ...     decision = shop.recommend("ann", candidates=["tea", "coffee", "mate"])
    ...     shop.rate(decision, 4.0).applied
    True
    >>> with Recommender(folder.name + "/shop") as shop:
    ...     shop.user("ann").ratings
    1
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | Path,
        scale: tuple[float, float] | None = None,
        *,
        policy: Policy | str | None = None,
        seed: int | None = None,
        floor: float | None = None,
        closed_catalogue: bool | None = None,
        items: Sequence[str] = (),
        users: Sequence[str] = (),
        durability: str = "commit",
    ) -> None:
        """Open a folder, and make it if there is none. Returns when everything in it has been checked and replayed.

        scale: lowest and highest rating; needed for a new folder.
        policy: a policy, or the name of one; for a new folder, ALB unless given. What a folder began with cannot be changed.
        floor: share of decisions left to chance, 0.05 unless given.
        closed_catalogue: whether items appear only by `upsert_item`.
        items, users: known from the beginning, in a new folder.
        durability: commit, or relaxed.
        """
        options = Options(
            policy=policies.create(policy) if isinstance(policy, str) else policy,
            scale=scale,
            seed=seed,
            floor=floor,
            closed=closed_catalogue,
            items=tuple(items),
            users=tuple(users),
            durability=durability,
        )
        self.engine = Engine(folder, options)
        try:
            self.engine.wait_ready()
        except BaseException:
            self.engine.close()
            raise

    def recommend(
        self,
        user: str,
        n: int = 1,
        candidates: Sequence[str] | None = None,
        *,
        exclude: Sequence[str] = (),
        exclude_seen: Seen = "none",
        explain: bool = False,
        request_id: str | None = None,
    ) -> Decision:
        """What to show this user: one item, or n of them, best first."""
        request = Recommend(
            user=_text("user", user),
            n=n,
            candidates=None if candidates is None else _texts("candidates", candidates),
            exclude=_texts("exclude", exclude),
            exclude_seen=exclude_seen,
            explain=explain,
            request_id=request_id,
        )
        answer: Decision = self.engine.ask(request)
        return answer

    def rate(
        self, decision: Decision | str, rating: float, item: str | None = None, *, user: str | None = None, event_id: str | None = None
    ) -> Accepted:
        """The rating of a decision, or of its id; of several items, say which. Send it as often as you like with the same event_id."""
        name = decision.decision_id if isinstance(decision, Decision) else _text("decision", decision)
        answer: Accepted = self.engine.ask(Feedback(event_id or secrets.token_hex(16), rating, name, user, item))
        return answer

    def rate_item(self, user: str, item: str, rating: float, *, event_id: str | None = None) -> Accepted:
        """A rating without a decision: the user chose the item by themselves."""
        event = Feedback(event_id or secrets.token_hex(16), rating, None, _text("user", user), _text("item", item))
        answer: Accepted = self.engine.ask(event)
        return answer

    def upsert_item(self, item: str) -> ItemAccepted:
        """There is such an item, and it may be shown."""
        answer: ItemAccepted = self.engine.ask(UpsertItem(_text("item", item)))
        return answer

    def retire_item(self, item: str) -> ItemAccepted:
        """Never show it again; what was learned of it stays."""
        answer: ItemAccepted = self.engine.ask(RetireItem(_text("item", item)))
        return answer

    def restore_item(self, item: str) -> ItemAccepted:
        """It may be shown again."""
        answer: ItemAccepted = self.engine.ask(RestoreItem(_text("item", item)))
        return answer

    def user(self, user: str, n: int = 10) -> UserView:
        """What is believed of a user, and the n items with the best scores."""
        answer: UserView = self.engine.ask(ViewUser(_text("user", user), n))
        return answer

    def forget_user(self, user: str) -> Forgotten:
        """Erase a user from the log, and rebuild the model as if they had never come."""
        answer: Forgotten = self.engine.ask(ForgetUser(_text("user", user)))
        return answer

    def version(self) -> Version:
        """The state id, the head of the log, and what the folder began with."""
        answer: Version = self.engine.ask(AskVersion())
        return answer

    def series(self) -> Series:
        """How it went so far: mean rating, calibration and optimism."""
        answer: Series = self.engine.ask(AskSeries())
        return answer

    def snapshot(self) -> SnapshotTaken:
        """Write the model beside the log now."""
        answer: SnapshotTaken = self.engine.ask(TakeSnapshot())
        return answer

    def close(self) -> None:
        """Answer what waits, write a snapshot, give the folder free."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadValue(f"{name} is {value!r}; accepted: text")
    return value


def _texts(name: str, values: Any) -> list[str]:
    if isinstance(values, str):
        raise BadValue(f"{name} is the text {values!r}; accepted: a list of ids")
    return [_text(name, value) for value in values]
