"""Answers for inspection: users, items, events, one decision, the past, and what-if."""

from typing import Literal

from msgspec import field

from albatross.service.api.answers import Answer, Explanation, Series, ShownItem, UserView
from albatross.service.api.rules import By, Quota, Where

Kind = Literal[
    "genesis", "item", "retire", "decision", "feedback", "forget", "rewards", "description", "join", "expire", "exchange", "erased"
]


class Access(Answer, frozen=True):
    """What the caller may do."""

    key_needed: bool
    scopes: list[str]
    """Of the given key; all scopes if no key is needed; empty if the key is missing."""
    key: str | None = None
    """The name of the key, never the key."""
    expires: str | None = None


class Disk(Answer, frozen=True):
    """Space taken by the log, and free space."""

    log_bytes: int | None
    """Size of the log with its journal; null if it is not a file."""
    free_bytes: int | None
    snapshot_seq: int
    """The event of the newest snapshot; 0 if there is none."""
    state_id: str | None
    """Of that snapshot."""
    seq: int
    """The head of the log."""


class ListedUser(Answer, frozen=True):
    user: str
    ratings: int


class UserList(Answer, frozen=True):
    users: list[ListedUser]
    next: int | None
    """Where to go on; null at the end."""
    total: int
    """Number of all users, not only of those found."""
    model_seq: int


class ListedItem(Answer, frozen=True):
    item: str
    ratings: int
    rating: float | None
    """The mean of its ratings; null before the first."""
    shown: int
    """How often decisions have shown it."""
    retired: bool
    mean: float
    """The predicted rating for this user, or for a user without ratings."""
    bonus: float | None
    """The exploration bonus, which grows with the uncertainty. Null if it is infinite."""
    x: float | None
    """The item's vector on the two leading principal axes of all items; null if the policy has no vectors."""
    y: float | None
    attributes: dict[str, str | list[str] | float] = field(default_factory=dict)
    available_from: float | None = None
    available_until: float | None = None
    """Seconds since 1970; null: no limit."""
    in_stock: bool = True


class SimilarItem(Answer, frozen=True):
    item: str
    similarity: float
    """The cosine of the angle between the vectors: 1 for the same direction."""
    ratings: int


class SimilarList(Answer, frozen=True):
    items: list[SimilarItem]
    """The most similar first. Items without a vector, for example unrated ones, are left out."""
    model_seq: int


class ItemList(Answer, frozen=True):
    items: list[ListedItem]
    next: int | None
    """Where to go on; null at the end."""
    total: int
    """Number of all items, not only of those found."""
    explained: list[float] | None
    """The share of the variance of all vectors that each of the two axes explains; null without vectors."""
    model_seq: int


class LoggedEvent(Answer, frozen=True, omit_defaults=True):
    """One row of the log, with the fields that its kind has."""

    seq: int
    kind: Kind
    at: float | None = None
    """Seconds since 1970."""
    user: str | None = None
    item: str | None = None
    rating: float | None = None
    decision_id: str | None = None
    items: list[str] | None = None
    """The items that a decision showed."""
    mean: float | None = None
    score: float | None = None
    """For a rating of a decision: the decision's values for the item."""
    erased: int | None = None
    """How many events were erased."""
    event: str | None = None
    """The name of a named event."""
    replaces: int | None = None
    """The rating that it replaces."""
    item_version: int | None = None
    """For an exchange between shards: the version that the model has from here on."""
    shard: int | None = None
    """With several shards: the shard whose log contains it."""
    visitor: str | None = None
    """The visitor who is now known to be the user."""


class EventList(Answer, frozen=True):
    events: list[LoggedEvent]
    """Newest first; with several shards, by time."""
    seq: int
    """The head of the log; with several shards, the sum of their heads."""


class Reason(Answer, frozen=True):
    """A rating by the user, and its contribution to the mean."""

    item: str
    rating: float | None
    """The mean if there are several; null if it is not among the user's latest 200."""
    part: float


class Because(Answer, frozen=True):
    """How the current mean of an item is composed: base + contributions of all ratings of the user = mean."""

    mean: float
    base: float
    """The prediction without this user's ratings."""
    ratings: list[Reason]
    """The ratings with the largest contributions, positive or negative, largest first."""
    others: float
    """The sum of all other contributions."""


class DecidedItem(Answer, frozen=True):
    """One item of a decision, and its feedback."""

    item: str
    rank: int
    score: float
    mean: float
    bonus: float
    propensity: float | None
    explored: bool
    """Whether it was drawn at random and not chosen by its score."""
    rating: float | None
    """Null while it is pending."""
    rated_seq: int | None
    item_ratings: int
    """Number of ratings of the item now, by all users."""
    because: Because | None
    """By the current model. Null if the policy's mean is not linear in ratings, if the policy did not rank the items, for a user without
    ratings, and after the tenth item."""
    event: str | None = None
    """The last event, if it was a named one."""


class NewItems(Answer, frozen=True):
    """The places for new items."""

    share: float
    below: int
    """How often a new item may have been shown, exclusive."""
    each_place: bool = False
    """In older logs: the share is a probability of each place, not a share of the slate."""


class DecisionView(Answer, frozen=True):
    decision_id: str
    seq: int
    at: float
    user: str
    policy: str
    model_seq: int
    user_ratings: int
    candidates: int | None
    """The number of candidates; null: the whole catalogue."""
    exclude_seen: str
    items: list[DecidedItem]
    close: list[ShownItem]
    """The items with the next best scores. Their propensity is null."""
    close_seq: int
    """The last event of the model for `close`: that of the decision if it was explained, otherwise the current one."""
    explanation: Explanation | None
    where: Where | None = None
    """The condition of the request on items."""
    quotas: list[Quota] = field(default_factory=list)
    fresh: NewItems | None = None
    by: By = "policy"
    """With popular and new, `score` and `mean` are popularity or age, not predictions."""
    unknown: list[str] = field(default_factory=list)
    """Attributes of the condition and the quotas that no item has now: perhaps typing errors."""


class PastView(Answer, frozen=True):
    """The model as it was at one event."""

    seq: int
    at: float | None
    """The time of the event; null if it was erased."""
    users: int
    items: int
    ratings: int
    decisions: int
    state_id: str
    series: Series
    user: UserView | None
    """Null if no user was requested, or the user had no ratings."""


class VerifyReport(Answer, frozen=True):
    """The model rebuilt from the log alone, compared with the serving one."""

    passed: bool
    seq: int
    chain: str
    state_id: str
    ratings: int
    decisions: int
    confirmed: list[int]
    """Events at which a snapshot has exactly the state that the log gives."""
    contradicted: list[int]
    skipped: int
    """Snapshots that cannot be compared."""
    seconds: float
    detail: str | None = None
    """What is wrong, if something is."""


class WhatIf(Answer, frozen=True):
    """The best items before and after a supposed rating."""

    user: str
    item: str
    rating: float
    before: list[ShownItem]
    after: list[ShownItem]
    model_seq: int
    state_id: str | None
    """The same before and after, because nothing was learned. Null if the model is too large to compute it here."""
