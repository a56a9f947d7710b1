"""What the service answers: frozen, with outside ids and plain numbers only."""

from typing import Any, Literal

from msgspec import Struct


class Answer(Struct, frozen=True):
    """Anything that can be answered."""


class ShownItem(Answer, frozen=True, gc=False):
    """One item of a decision: score = mean + bonus."""

    item: str
    rank: int
    """1 is the first."""
    score: float
    mean: float
    bonus: float
    propensity: float | None
    """The probability of this item at this place, given the items before it; none where the policy cannot tell."""


class Contribution(Answer, frozen=True, gc=False):
    """A rating of the user's own, and what it adds to the mean of another item."""

    item: str
    rating: float | None
    """What was said of it, the mean where there are several."""
    part: float


class ItemExplanation(Answer, frozen=True, gc=False):
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
    """How far the expectation may be off; none where the policy does not say."""
    width_after: float | None = None
    """The same after one more rating of this item by this user."""
    base: float | None = None
    """What is expected without this user's ratings; none where the policy does not take its mean apart, and for a stranger."""
    parts: list[Contribution] = []
    """What ratings of the user add to that, the largest first, twelve at most."""
    others: float = 0.0
    """What all other ratings of the user add: base + parts + others = mean."""
    why: list[str] = []
    """The same in words, as "because you liked tea"."""


class ConfidenceRegion(Answer, frozen=True, gc=False):
    """Where a user may be: |q − center|_V ≤ radius, V the inverse covariance. `axes[i]` is the unit eigenvector of V for `eigenvalues[i]`.

    The least eigenvalue comes first. The radius is 1 where the belief is a normal distribution: one standard deviation.
    """

    center: list[float]
    radius: float
    eigenvalues: list[float]
    axes: list[list[float]]


class Explanation(Answer, frozen=True, gc=False):
    user_ratings: int
    pending: list[str]
    """What the user was shown and has not answered, as far as it counted."""
    items: list[ItemExplanation]
    ellipsoid: ConfidenceRegion | None
    """None where the policy does not say what it believes of a user."""
    close: list[ShownItem] = []
    """The items with the next best scores, which were not shown."""


class Decision(Answer, frozen=True, gc=False):
    decision_id: str
    user: str
    policy: str
    model_seq: int
    """The decision was made by a model that knows every event up to this one."""
    items: list[ShownItem]
    user_ratings: int
    explanation: Explanation | None = None
    item_version: int = 0
    """Of several shards: the last exchange of what is known of items that the model knew. Of one shard: 0."""

    @property
    def item(self) -> str:
        """The first item."""
        return self.items[0].item


class Accepted(Answer, frozen=True, gc=False):
    seq: int
    applied: bool
    """Whether the model knows it; false where the user was forgotten since."""
    duplicate: bool
    """Whether it had come before: then nothing was learned now."""
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
    """What became of one line: 200 and where it stands in the log, or why it was refused."""

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
    """Of an item: whether it is new."""


class ItemAccepted(Answer, frozen=True):
    item: str
    retired: bool
    created: bool
    seq: int
    """The event that made it so."""
    model_seq: int


class ItemsAccepted(Answer, frozen=True):
    """One answer or refusal per item, in order."""

    answers: list[ItemAccepted | Refusal]


class RewardsAccepted(Answer, frozen=True):
    events: dict[str, float]
    seq: int
    """The event that made it so."""
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
    """What the decision had said of the item, where there was one."""
    event: str | None = None
    """What was done, where it was an event with a name."""


class UserView(Answer, frozen=True):
    user: str
    ratings: int
    pending: list[str]
    vector: list[float] | None
    """The policy's own vector of the user, where it keeps one, else the center of what it believes; none where it does not say."""
    ellipsoid: ConfidenceRegion | None
    top: list[ShownItem]
    """The items with the best scores. Their propensity is none: nothing was drawn."""
    model_seq: int
    history: list[HistoryEntry] = []
    """The latest ratings, the latest first; as many as were asked for."""


class UsersJoined(Answer, frozen=True):
    visitor: str
    user: str
    """Whose ratings the visitor's are now."""
    joined: bool
    """False where they were one already."""
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
    """The hash that stands for the whole log up to there."""
    state_id: str | None
    """A name for exactly what was learned up to event `state_seq`. Of a large model, that of the last snapshot."""
    state_seq: int | None
    kernel: str
    users: int
    items: int
    retired: int
    ratings: int
    decisions: int
    durability: str
    events: dict[str, float] = {}
    """Names of events, and what they are worth."""
    item_version: int = 0
    """Of several shards: up to which exchange every shard knows of items."""
    shards: int = 1
    """Where there are several, numbers are sums over them, and chain and state_id are hashes of theirs."""


class Series(Answer, frozen=True):
    """Averages over equally many ratings each, oldest first. Where a group has none to average, none."""

    width: int
    """Ratings per group; the last one may have fewer."""
    ratings: list[int]
    reward: list[float | None]
    """Mean rating."""
    reward_error: list[float | None]
    """Its standard error, from the spread of the ratings in the group; none for fewer than two."""
    calibration: list[float | None]
    """Of the ratings of decisions, the share inside mean ± bonus."""
    optimism: list[float | None]
    """Of the same, the mean of score − rating."""


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
    """What an engine is doing; can be had at any time, from any thread."""

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
    """Why a request was not answered, as RFC 9457 has it."""

    type: str
    """What kind of problem, as a URI reference: stable, for programs."""
    title: str
    status: int
    detail: str
    """What was given, and what would be accepted."""
    code: str
    """The last part of `type`, for short."""
