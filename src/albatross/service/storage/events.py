"""What the log holds: the kinds of events, as they are written. Nothing here knows what can be asked or answered.

An event is a JSON array whose first element is its kind. A field may be added at the end, with a default, and a kind of event; then old
logs read as before. Anything else is a new format, with a function in `storage.migration`.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

FORMAT = 2
"""Version of the log's content."""


class Outside(Struct, frozen=True, array_like=True):
    """Where the policy of a folder comes from, if it is none of albatross."""

    reference: str
    """Its module, or the path of its file; and its class."""
    digest: str
    """Of its sources: others would learn something else from the same log."""


class Genesis(Struct, frozen=True, array_like=True, tag="genesis"):
    """The first event: what everything after it is to be understood by."""

    at: float
    format: int
    folder: str
    """A random name, so that decisions of one folder are strangers to another."""
    policy: str
    parameters: dict[str, Any]
    scale: tuple[float, float]
    seed: int
    floor: float
    closed: bool
    kernel: str
    """The code that learned first; other code may give other last bits."""
    users: list[str]
    items: list[str]
    inherited: int = 0
    """Events up to this one were taken over from a log under another policy."""
    outside: Outside | None = None
    """None: a policy of albatross."""
    events: dict[str, float] = {}
    """What events with names are worth, until it is changed."""
    shard: int = 0
    shards: int = 1
    """The log is that of one shard of so many, each with users of its own."""


class Item(Struct, frozen=True, array_like=True, tag="item"):
    """There is such an item, and it may be shown."""

    at: float
    item: str


class Retire(Struct, frozen=True, array_like=True, tag="retire"):
    at: float
    item: str


Attribute = str | list[str] | float
"""A label, labels, or a number."""


class Description(Struct, frozen=True, omit_defaults=True):
    """What was said of an item; what was not said is not there, and stays as it was."""

    attributes: dict[str, Attribute] | UnsetType = UNSET
    """All of them: these take the place of those before."""
    available_from: float | UnsetType | None = UNSET
    available_until: float | UnsetType | None = UNSET
    """Seconds since 1970; none: always."""
    in_stock: bool | UnsetType = UNSET


class Described(Struct, frozen=True, array_like=True, tag="description"):
    """An item is described anew, or otherwise."""

    at: float
    item: str
    said: Description


class Placed(Struct, frozen=True, array_like=True, gc=False):
    """One item of a decision."""

    item: str
    score: float
    mean: float
    propensity: float | None
    explored: bool


class Part(Struct, frozen=True):
    """A rating of the user's own, and what it adds to a mean."""

    item: str
    rating: float | None
    part: float


class ReasonForItem(Struct, frozen=True):
    item: str
    mean: float
    bonus: float
    score: float
    item_ratings: int
    own_ratings: int
    explored: bool
    width: float | None = None
    width_after: float | None = None
    base: float | None = None
    parts: list[Part] = []
    others: float = 0.0
    """Base + parts + others = mean, where the policy takes its mean apart."""
    why: list[str] = []


class Region(Struct, frozen=True):
    center: list[float]
    radius: float
    eigenvalues: list[float]
    axes: list[list[float]]


class Reasons(Struct, frozen=True):
    """Why a decision was made, where somebody asked."""

    user_ratings: int
    pending: list[str]
    items: list[ReasonForItem]
    ellipsoid: Region | None
    close: list[Placed] = []
    """The items with the next best scores, by the model of the decision."""


class Rules(Struct, frozen=True, array_like=True):
    """What a decision had to observe."""

    where: dict[str, Any] | None
    """The condition on items, as it was asked."""
    quotas: list[tuple[str, int]]
    """Attribute, and how many items may share a label of it."""
    fresh: list[float] | None
    """The share of new items, how often an item may have been shown and still be new, and 1 where the share is that of a slate."""
    by: Literal["policy", "popular", "new"]


class Decided(Struct, frozen=True, array_like=True, tag="decision", gc=False):
    at: float
    user: str
    n: int
    candidates: list[str] | None
    exclude: list[str]
    exclude_seen: str
    request_id: str | None
    model_seq: int
    user_ratings: int
    items: list[Placed]
    reasons: Reasons | None
    incarnation: str = ""
    """A random name of the engine's life, part of the decision's id: two copies of a folder never give the same id."""
    rules: Rules | None = None
    item_version: int = 0
    """What was known of items: the last version that was folded."""


class Rated(Struct, frozen=True, array_like=True, tag="feedback", gc=False):
    at: float
    event_id: str
    user: str
    item: str
    rating: float
    decision: int | None
    mean: float | None
    score: float | None
    """What the decision said of the item, where there was one."""
    again: bool = False
    """Whether the item of the decision had been rated before, which old logs allowed."""


class Reacted(Struct, frozen=True, array_like=True, tag="reaction", gc=False):
    """What somebody did with an item: an event with a name, worth a reward. Of the same item of a decision, the last one counts."""

    at: float
    event_id: str
    """Empty where nobody sent it: silence."""
    user: str
    item: str
    event: str
    """Empty where it is a rating that takes the place of silence."""
    rating: float
    """What the name was worth then."""
    decision: int | None
    mean: float | None
    score: float | None
    number: int = 0
    """How many answers of the same item of the decision came before."""
    replaces: int | None = None
    """The last of them, whose rating is taken back …"""
    before: float | None = None
    """… and how much that was."""


class Rewards(Struct, frozen=True, array_like=True, tag="rewards"):
    """From here on, these are the names of events, and what they are worth."""

    at: float
    number: int
    """The first change is 1."""
    events: dict[str, float]


class Forget(Struct, frozen=True, array_like=True, tag="forget"):
    """The events that were erased. Who it was is not said."""

    at: float
    erased: list[int]


class Dropped(Struct, frozen=True, array_like=True):
    """A decision that was erased because nobody answered it: what it showed still counts as shown. To whom is not said."""

    seq: int
    items: list[str]
    handle: str | None
    """What it was found by, if anything: two hexadecimal digits a byte."""


class Expire(Struct, frozen=True, array_like=True, tag="expire"):
    """Decisions that nobody answered in time, erased."""

    at: float
    decisions: list[Dropped]


class Adopt(Struct, frozen=True, array_like=True, tag="adopt"):
    """The sources of the policy have changed, and that was accepted: from here on, the model is what they make of the whole log."""

    at: float
    number: int
    """The first of a log is 1."""
    outside: Outside
    parameters: dict[str, Any]
    kernel: str


class Exchanged(Struct, frozen=True, array_like=True, tag="exchange"):
    """From here on, what the users of all shards have added to what is known of items is known here, up to this version."""

    at: float
    version: int
    digest: str
    """Of its payloads, which are kept beside the log."""


class Joined(Struct, frozen=True, array_like=True, tag="join"):
    """A visitor turned out to be a user: what they said, and what is said in their name from now on, is the user's."""

    at: float
    visitor: str
    user: str


Event = Genesis | Item | Retire | Decided | Rated | Forget | Expire | Adopt | Reacted | Rewards | Described | Joined | Exchanged

CATALOGUE = (Item, Retire, Described, Rewards)
"""What is the same for all shards: it stands in a log of its own, and a shard copies it into its log before it uses it."""
_OPENINGS = tuple(f'["{kind.__struct_config__.tag}"'.encode() for kind in CATALOGUE)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode
decode_all = msgspec.json.Decoder(list[Event]).decode


def is_shared(body: bytes | None) -> bool:
    """Whether an event is one of the catalogue, as it is written."""
    return body is not None and body.startswith(_OPENINGS)


def digest_of_version(contents: Iterable[bytes | None]) -> str:
    """A name for the payloads of a version."""
    digest = hashlib.blake2b(digest_size=16)
    for content in contents:
        digest.update(b"none" if content is None else hashlib.blake2b(content, digest_size=16).digest())
    return digest.hexdigest()


SILENCE = "silence"
"""The name of the event that nobody did anything, where it has no id."""


def event_handle(event_id: str) -> bytes:
    """What the same rating is recognised by, for ever."""
    return hashlib.blake2b(b"event " + event_id.encode(), digest_size=16).digest()


def request_handle(request_id: str) -> bytes:
    return hashlib.blake2b(b"request " + request_id.encode(), digest_size=16).digest()


def answer_handle(decision: int, item: str) -> bytes:
    """What is taken when an item of a decision was rated: it is rated once."""
    return hashlib.blake2b(b"answer %d " % decision + item.encode(), digest_size=16).digest()


def reaction_handle(decision: int, item: str, number: int) -> bytes:
    """What is taken when the answer to an item of a decision is replaced for the first, second, … time."""
    return hashlib.blake2b(b"answer %d.%d " % (decision, number) + item.encode(), digest_size=16).digest()


def rewards_handle(number: int) -> bytes:
    """What the changes of rewards are found by, one after the other."""
    return hashlib.blake2b(b"rewards %d" % number, digest_size=16).digest()


def adoption_handle(number: int) -> bytes:
    """What the changes of a policy's sources are found by, one after the other."""
    return hashlib.blake2b(b"adoption %d" % number, digest_size=16).digest()


def handles_of(event: Event) -> list[bytes]:
    """What an event can be found by."""
    if type(event) is Rated:
        own = event_handle(event.event_id)
        return [own] if event.decision is None or event.again else [own, answer_handle(event.decision, event.item)]
    if type(event) is Decided and event.request_id is not None:
        return [request_handle(event.request_id)]
    if type(event) is Reacted:
        found = [event_handle(event.event_id)] if event.event_id else []
        if event.decision is not None and event.number:
            found.append(reaction_handle(event.decision, event.item, event.number))
        elif event.decision is not None:
            found.append(answer_handle(event.decision, event.item))
        return found
    if type(event) is Adopt:
        return [adoption_handle(event.number)]
    if type(event) is Rewards:
        return [rewards_handle(event.number)]
    return []


def erased_by(event: Event) -> list[int]:
    """The rows whose content is gone because of an event."""
    if type(event) is Forget:
        return event.erased
    return [dropped.seq for dropped in event.decisions] if type(event) is Expire else []


class RatingContent(Struct, frozen=True):
    """What two deliveries of the same rating must have in common."""

    event_id: str
    rating: float
    decision_id: str | None
    user: str | None
    item: str | None


class ReactionContent(Struct, frozen=True):
    """What two deliveries of the same event with a name must have in common."""

    event_id: str
    event: str
    decision_id: str | None
    user: str | None
    item: str | None


class QuestionContent(Struct, frozen=True):
    """What two askings with the same request_id must have in common."""

    user: str
    """Empty where an id was asked for: a visitor."""
    n: int
    candidates: list[str] | None
    exclude: list[str]
    exclude_seen: str
    explain: bool
    request_id: str


class RuledContent(Struct, frozen=True):
    """The same where there are rules."""

    question: QuestionContent
    rules: Rules


def content_of(content: RatingContent | ReactionContent | QuestionContent | RuledContent) -> bytes:
    return hashlib.blake2b(encode(content), digest_size=16).digest()
