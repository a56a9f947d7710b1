"""What the service answers to those who look: users, items, events, one decision, the past, and what would be."""

from typing import Literal

from msgspec import field

from albatross.service.api.answers import Answer, Explanation, Series, ShownItem, UserView

Kind = Literal[
    "genesis", "item", "retire", "decision", "feedback", "forget", "rewards", "description", "join", "expire", "exchange", "erased"
]


class Access(Answer, frozen=True):
    """What whoever asks may do here."""

    key_needed: bool
    scopes: list[str]
    """Of the key that was shown; all of them where none is needed; none where it is missing."""
    key: str | None = None
    """The name of the key, never the key."""
    expires: str | None = None


class Disk(Answer, frozen=True):
    """What the folder takes, and what is left."""

    log_bytes: int | None
    """Of the log, its journal included; none where it is no file."""
    free_bytes: int | None
    snapshot_seq: int
    """The event of the newest snapshot; 0: there is none."""
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
    """Where to go on; none at the end."""
    total: int
    """How many users there are, found or not."""
    model_seq: int


class ListedItem(Answer, frozen=True):
    item: str
    ratings: int
    rating: float | None
    """The mean of its ratings; none before the first."""
    shown: int
    """How often a decision showed it."""
    retired: bool
    mean: float
    """What the policy expects of it for this user, or for a stranger."""
    bonus: float | None
    """What exploring adds to that: how unsure the policy is. None where it is boundless."""
    x: float | None
    """The item's vector on the two leading axes of all of them; none where the policy has no vectors."""
    y: float | None
    attributes: dict[str, str | list[str] | float] = field(default_factory=dict)
    available_from: float | None = None
    available_until: float | None = None
    """Seconds since 1970; none: always."""
    in_stock: bool = True


class SimilarItem(Answer, frozen=True):
    item: str
    similarity: float
    """The cosine of the angle between the vectors: 1 for the same direction."""
    ratings: int


class SimilarList(Answer, frozen=True):
    items: list[SimilarItem]
    """The most similar first. Items without a vector, as those nobody has rated, are left out."""
    model_seq: int


class ItemList(Answer, frozen=True):
    items: list[ListedItem]
    next: int | None
    """Where to go on; none at the end."""
    total: int
    """How many items there are, found or not."""
    explained: list[float] | None
    """The share of the variance of all vectors that each of the two axes has; none without vectors."""
    model_seq: int


class LoggedEvent(Answer, frozen=True, omit_defaults=True):
    """One row of the log, as far as it says something of anybody."""

    seq: int
    kind: Kind
    at: float | None = None
    """Seconds since 1970."""
    user: str | None = None
    item: str | None = None
    rating: float | None = None
    decision_id: str | None = None
    items: list[str] | None = None
    """What a decision showed."""
    mean: float | None = None
    score: float | None = None
    """Of a rating of a decision: what that had said of the item."""
    erased: int | None = None
    """How many events a forgetting erased."""
    event: str | None = None
    """Of an event with a name: which."""
    replaces: int | None = None
    """Which rating it takes the place of."""
    item_version: int | None = None
    """Of an exchange between shards: what is known of items from here on."""
    shard: int | None = None
    """Where there are several: whose log it stands in."""
    visitor: str | None = None
    """Who turned out to be the user."""


class EventList(Answer, frozen=True):
    events: list[LoggedEvent]
    """The newest first; of several shards, by time."""
    seq: int
    """The head of the log; of several shards, the sum of theirs."""


class Reason(Answer, frozen=True):
    """A rating of the user's own, and what it adds to the mean."""

    item: str
    rating: float | None
    """The mean, where there are several; none where it is not among the latest 200 of the user."""
    part: float


class Because(Answer, frozen=True):
    """Why the mean of an item is what it is now: base + the parts of all ratings of the user = mean."""

    mean: float
    base: float
    """What is expected without this user's ratings."""
    ratings: list[Reason]
    """Those that count most, for or against, the largest first."""
    others: float
    """The parts of all others together."""


class DecidedItem(Answer, frozen=True):
    """One item of a decision, and what came of it."""

    item: str
    rank: int
    score: float
    mean: float
    bonus: float
    propensity: float | None
    explored: bool
    """Whether chance, not the score, put it here."""
    rating: float | None
    """None while it waits."""
    rated_seq: int | None
    item_ratings: int
    """How many ratings the item has now, by anybody."""
    because: Because | None
    """By the present model. None where the policy's mean is not linear in ratings, for a stranger, and beyond the tenth item."""
    event: str | None = None
    """What was done last, where it was an event with a name."""


class DecisionView(Answer, frozen=True):
    decision_id: str
    seq: int
    at: float
    user: str
    policy: str
    model_seq: int
    user_ratings: int
    candidates: int | None
    """How many there were; none: the whole catalogue."""
    exclude_seen: str
    items: list[DecidedItem]
    close: list[ShownItem]
    """The items with the next best scores. Their propensity is none."""
    close_seq: int
    """By the model of which event: that of the decision where it was asked to explain itself, else the present one."""
    explanation: Explanation | None


class PastView(Answer, frozen=True):
    """The model as it was at one event."""

    seq: int
    at: float | None
    """When the event came; none where it was erased."""
    users: int
    items: int
    ratings: int
    decisions: int
    state_id: str
    series: Series
    user: UserView | None
    """None where nobody was asked for, or they had not rated anything."""


class VerifyReport(Answer, frozen=True):
    """The model rebuilt from the log alone, and whether that is what is served."""

    passed: bool
    seq: int
    chain: str
    state_id: str
    ratings: int
    decisions: int
    confirmed: list[int]
    """Events at which a snapshot has exactly the state the log gives."""
    contradicted: list[int]
    skipped: int
    """Snapshots that cannot be compared."""
    seconds: float
    detail: str | None = None
    """What is wrong, where something is."""


class WhatIf(Answer, frozen=True):
    """The best items before and after a rating that nobody gave."""

    user: str
    item: str
    rating: float
    before: list[ShownItem]
    after: list[ShownItem]
    model_seq: int
    state_id: str | None
    """The same before and after: nothing was learned. None where the model is too large to name in passing."""
