"""Answers of the service: frozen, with outside ids and plain numbers only."""

from typing import Any, Literal

from msgspec import Struct


class Answer(Struct, frozen=True):
    """Base class of all answers."""


class ShownItem(Answer, frozen=True, gc=False):
    """One item of a decision: score = mean + bonus."""

    item: str
    rank: int
    """1 is the first."""
    score: float
    mean: float
    bonus: float
    propensity: float | None
    """The probability of this item at this place, given the items before it; null if the policy cannot tell."""


class Contribution(Answer, frozen=True, gc=False):
    """A rating by the user, and its contribution to the mean of another item."""

    item: str
    rating: float | None
    """The rating of the item; the mean if there are several."""
    part: float


class ItemExplanation(Answer, frozen=True, gc=False):
    """Why an item was shown, in numbers."""

    item: str
    mean: float
    bonus: float
    score: float
    item_ratings: int
    """Number of ratings of the item, by all users."""
    own_ratings: int
    """Number of them by this user."""
    explored: bool
    """Whether it was drawn at random and not chosen by its score."""
    width: float | None = None
    """Half width of the confidence interval of the mean; null if the policy does not give it, and with `reasons`."""
    width_after: float | None = None
    """The same after one more rating of this item by this user."""
    base: float | None = None
    """The prediction without this user's ratings; null if the policy cannot decompose its mean, and for a user without ratings."""
    parts: list[Contribution] = []
    """Contributions of the user's ratings, largest first: at most twelve, or with `reasons` those that are named."""
    others: float = 0.0
    """The contributions of all other ratings of the user: base + parts + others = mean."""
    why: list[str] = []
    """The same in words, for example "because you liked tea"."""


class ConfidenceRegion(Answer, frozen=True, gc=False):
    """The confidence ellipsoid of a user's vector: |q − center|_V ≤ radius, where V is the inverse covariance.

    `axes[i]` is the unit eigenvector of V for `eigenvalues[i]`, smallest eigenvalue first. For a normal distribution the radius is 1: one
    standard deviation.
    """

    center: list[float]
    radius: float
    eigenvalues: list[float]
    axes: list[list[float]]


class Explanation(Answer, frozen=True, gc=False):
    user_ratings: int
    pending: list[str]
    """Items shown to the user without feedback, as far as they counted."""
    items: list[ItemExplanation]
    ellipsoid: ConfidenceRegion | None
    """Null if the policy does not implement `believe`, and with `reasons`."""
    close: list[ShownItem] = []
    """Items with the next best scores, which were not shown; with `reasons` none are listed."""


class Decision(Answer, frozen=True, gc=False):
    decision_id: str
    user: str
    policy: str
    model_seq: int
    """The last event that the model had learned."""
    items: list[ShownItem]
    user_ratings: int
    explanation: Explanation | None = None
    item_version: int = 0
    """With several shards: the last version of the item exchange that the model had applied. With one shard: 0."""

    @property
    def item(self) -> str:
        """The first item."""
        return self.items[0].item


class Accepted(Answer, frozen=True, gc=False):
    seq: int
    applied: bool
    """Whether the model has learned it; false if the user has been forgotten since."""
    duplicate: bool
    """Whether it had been sent before: then nothing was learned now."""
    model_seq: int


class Refusal(Answer, frozen=True):
    """Why one rating of a batch was refused."""

    status: int
    code: str
    detail: str


class BatchAccepted(Answer, frozen=True):
    """One answer or refusal per rating, in order."""

    answers: list[Accepted | Refusal]


class LineAnswer(Answer, frozen=True, omit_defaults=True):
    """The result of one line: 200 with its place in the log, or the reason for the refusal."""

    line: int
    """1 is the first."""
    status: int
    seq: int | None = None
    applied: bool | None = None
    duplicate: bool | None = None
    model_seq: int | None = None
    code: str | None = None
    detail: str | None = None
    created: bool | None = None
    """For an item: whether it is new."""


class ItemAccepted(Answer, frozen=True):
    item: str
    retired: bool
    created: bool
    seq: int
    """The event that did this."""
    model_seq: int


class ItemsAccepted(Answer, frozen=True):
    """One answer or refusal per item, in order."""

    answers: list[ItemAccepted | Refusal]


class RewardsAccepted(Answer, frozen=True):
    events: dict[str, float]
    seq: int
    """The event that did this."""
    model_seq: int


class HistoryEntry(Answer, frozen=True):
    """One rating of a user."""

    seq: int
    at: float
    item: str
    rating: float
    decision_id: str | None
    mean: float | None
    score: float | None
    """The decision's values for the item, if there was a decision."""
    event: str | None = None
    """The name of the event, if it was a named event."""


class UserView(Answer, frozen=True):
    user: str
    ratings: int
    pending: list[str]
    vector: list[float] | None
    """The policy's vector of the user, or else the center of its belief; null if it has neither."""
    ellipsoid: ConfidenceRegion | None
    top: list[ShownItem]
    """The items with the best scores. Their propensity is null: nothing was drawn."""
    model_seq: int
    history: list[HistoryEntry] = []
    """The latest ratings, newest first, as many as requested."""


class UsersJoined(Answer, frozen=True):
    visitor: str
    user: str
    """The user to whom the visitor's ratings belong now."""
    joined: bool
    """False if they were joined already."""
    seq: int
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
    """The hash of the whole log up to the head."""
    state_id: str | None
    """A digest of the state learned up to event `state_seq`. For a large model, that of the last snapshot."""
    state_seq: int | None
    kernel: str
    users: int
    items: int
    retired: int
    ratings: int
    decisions: int
    durability: str
    events: dict[str, float] = {}
    """Named events and their rewards."""
    item_version: int = 0
    """With several shards: the version of the item exchange that every shard has applied."""
    shards: int = 1
    """With several shards, the counts are sums over them, and chain and state_id are hashes of theirs."""


class Series(Answer, frozen=True):
    """Averages over groups of ratings of equal size, oldest first; null if a group has nothing to average."""

    width: int
    """Ratings per group; the last group may have fewer."""
    ratings: list[int]
    reward: list[float | None]
    """Mean rating."""
    reward_error: list[float | None]
    """Its standard error, from the spread within the group; null for fewer than two ratings."""
    calibration: list[float | None]
    """For ratings of decisions: the share inside mean ± bonus."""
    optimism: list[float | None]
    """For the same ratings: the mean of score − rating."""


class SnapshotTaken(Answer, frozen=True):
    seq: int
    state_id: str
    path: str


class BackupTaken(Answer, frozen=True):
    seq: int
    """The last event in it."""
    chain: str
    path: str


Phase = Literal["opening", "compiling", "replaying", "ready", "draining", "closed", "failed"]


class Readiness(Answer, frozen=True):
    """The state of an engine. Available at any time, from any thread."""

    ready: bool
    phase: Phase
    done: int
    """Events checked or replayed so far …"""
    total: int
    """… of so many."""
    waiting: int
    """Requests in the queue."""
    detail: str | None = None
    """What failed."""


class Alive(Answer, frozen=True):
    alive: bool


class Problem(Answer, frozen=True):
    """Why a request was refused, as RFC 9457 problem details."""

    type: str
    """The kind of problem as a URI reference: stable, for programs."""
    title: str
    status: int
    detail: str
    """What was given, and what is accepted."""
    code: str
    """The last part of `type`."""
