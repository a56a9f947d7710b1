"""The kinds of events as they are written in the log. This module does not know the requests and answers of the API.

An event is a JSON array whose first element is its kind. A new field may be added at the end, with a default; a new kind may be added
too. Then old logs can still be read. Any other change is a new format, with a function in `storage.migration`.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

FORMAT = 2
"""Version of the log's content."""


class Outside(Struct, frozen=True, array_like=True):
    """Where a policy that is not part of albatross comes from."""

    reference: str
    """Its class, after its module or the path of its file."""
    digest: str
    """Of its sources. Other sources could learn something else from the same log."""


class Genesis(Struct, frozen=True, array_like=True, tag="genesis"):
    """The first event: the settings that all later events depend on."""

    at: float
    format: int
    folder: str
    """A random name, so that a decision of one folder is unknown to another."""
    policy: str
    parameters: dict[str, Any]
    scale: tuple[float, float]
    seed: int
    floor: float
    closed: bool
    kernel: str
    """Fingerprint of the code at the beginning. Other code may give other last bits."""
    users: list[str]
    items: list[str]
    inherited: int = 0
    """Events up to this one were copied from a log under another policy."""
    outside: Outside | None = None
    """None: a policy of albatross."""
    events: dict[str, float] = {}
    """Rewards of named events, until they are changed."""
    shard: int = 0
    shards: int = 1
    """The number of shards. Each shard has its own users and log."""


class Item(Struct, frozen=True, array_like=True, tag="item"):
    """The item exists and may be shown."""

    at: float
    item: str


class Retire(Struct, frozen=True, array_like=True, tag="retire"):
    at: float
    item: str


Attribute = str | list[str] | float
"""A label, labels, or a number."""


class Description(Struct, frozen=True, omit_defaults=True):
    """A description of an item. A field that is not given keeps its old value."""

    attributes: dict[str, Attribute] | UnsetType = UNSET
    """All attributes: they replace the earlier ones."""
    available_from: float | UnsetType | None = UNSET
    available_until: float | UnsetType | None = UNSET
    """Seconds since 1970; None: no limit."""
    in_stock: bool | UnsetType = UNSET


class Described(Struct, frozen=True, array_like=True, tag="description"):
    """An item was described, for the first time or again."""

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
    """A rating by the user, and its contribution to a mean."""

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
    """Base + parts + others = mean, if the policy can decompose its mean."""
    why: list[str] = []


class Region(Struct, frozen=True):
    center: list[float]
    radius: float
    eigenvalues: list[float]
    axes: list[list[float]]


class Reasons(Struct, frozen=True):
    """Why a decision was made, if the request asked for it."""

    user_ratings: int
    pending: list[str]
    items: list[ReasonForItem]
    ellipsoid: Region | None
    close: list[Placed] = []
    """The items with the next best scores, by the model that decided."""


class Rules(Struct, frozen=True, array_like=True):
    """The rules of a decision."""

    where: dict[str, Any] | None
    """The condition on items, as requested."""
    quotas: list[tuple[str, int]]
    """Attribute, and how many items may share one of its labels."""
    fresh: list[float] | None
    """The share of new items; how often a new item may have been shown; 1 if the share is that of a slate."""
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
    """A random id of the engine's incarnation, part of the decision's id: two copies of a folder never give the same id."""
    rules: Rules | None = None
    item_version: int = 0
    """The last version of the item exchange that was applied."""


class Rated(Struct, frozen=True, array_like=True, tag="feedback", gc=False):
    at: float
    event_id: str
    user: str
    item: str
    rating: float
    decision: int | None
    mean: float | None
    score: float | None
    """The decision's values for the item, if there was a decision."""
    again: bool = False
    """Whether the item of the decision was rated before, which old logs allowed."""


class Reacted(Struct, frozen=True, array_like=True, tag="reaction", gc=False):
    """A named event for an item, with its reward. The last event for the same item of a decision counts."""

    at: float
    event_id: str
    """Empty if no client sent it: silence."""
    user: str
    item: str
    event: str
    """Empty for a rating that replaces silence."""
    rating: float
    """The reward of the event at that time."""
    decision: int | None
    mean: float | None
    score: float | None
    number: int = 0
    """How many answers to the same item of the decision came before."""
    replaces: int | None = None
    """The row of the last of them, whose rating is undone …"""
    before: float | None = None
    """… and that rating."""


class Rewards(Struct, frozen=True, array_like=True, tag="rewards"):
    """The named events and their rewards from here on."""

    at: float
    number: int
    """The first change is 1."""
    events: dict[str, float]


class Forget(Struct, frozen=True, array_like=True, tag="forget"):
    """The numbers of the erased events, without the user."""

    at: float
    erased: list[int]


class Dropped(Struct, frozen=True, array_like=True):
    """A decision that was erased because it got no answer. Its items still count as shown. The user is not named."""

    seq: int
    items: list[str]
    handle: str | None
    """The handle of its request id in hexadecimal, if it had one."""


class Expire(Struct, frozen=True, array_like=True, tag="expire"):
    """Decisions that got no answer in time and were erased."""

    at: float
    decisions: list[Dropped]


class Adopt(Struct, frozen=True, array_like=True, tag="adopt"):
    """The policy's changed source was accepted: from here on, the model is what the new source learns from the whole log."""

    at: float
    number: int
    """The first change of a log is 1."""
    outside: Outside
    parameters: dict[str, Any]
    kernel: str


class Exchanged(Struct, frozen=True, array_like=True, tag="exchange"):
    """From here on, the model includes what all shards have learned of the items up to this version."""

    at: float
    version: int
    digest: str
    """Of the payloads, which are stored beside the log."""


class Based(Struct, frozen=True, array_like=True, tag="base"):
    """One payload per shard replaces all versions up to this one. From here on, the model is the result of replaying the log with them."""

    at: float
    version: int
    digest: str


class Joined(Struct, frozen=True, array_like=True, tag="join"):
    """A visitor is now known to be a user: the visitor's past and future events belong to that user."""

    at: float
    visitor: str
    user: str
    away: bool = False
    """The user lives on another shard: all that the visitor has rated has moved there."""


class Past(Struct, frozen=True, array_like=True, gc=False):
    """A rating from before a move."""

    item: str
    rating: float
    at: float


class Arrived(Struct, frozen=True, array_like=True, tag="arrival"):
    """A visitor comes from another shard, with all that was learned about them, and is joined with a user."""

    at: float
    visitor: str
    user: str
    visitors: list[str]
    """The visitors who were joined with this one before."""
    rows: bytes
    """The visitor's rows of the policy's state."""
    items: list[int]
    """The numbers of the rated items, once per rating, in order."""
    pending: list[int]
    """The numbers of the pending items, the latest last."""
    past: list[Past]
    """The latest ratings."""


class Passed(Struct, frozen=True, array_like=True, tag="passed"):
    """An answer to a decision of a visitor who has moved here since. The other shard has the decision, and all that names it."""

    at: float
    visitor: str
    user: str
    item: str
    rating: float
    mean: float | None
    score: float | None
    event: str
    before: float | None
    """The earlier rating that it replaces, if any."""


class Erase(Struct, frozen=True, array_like=True, tag="erase"):
    """Not an event, but a message between shards: events of these users are to be erased."""

    names: list[str]


Event = (
    Genesis
    | Item
    | Retire
    | Decided
    | Rated
    | Forget
    | Expire
    | Adopt
    | Reacted
    | Rewards
    | Described
    | Joined
    | Exchanged
    | Based
    | Arrived
    | Passed
)
Message = Arrived | Passed | Erase
"""What one shard sends to another."""

CATALOGUE = (Item, Retire, Described, Rewards)
"""Events that are the same for all shards. They are in a log of their own; a shard copies them into its log before it uses them."""
_OPENINGS = tuple(f'["{kind.__struct_config__.tag}"'.encode() for kind in CATALOGUE)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode
decode_message = msgspec.json.Decoder(Message).decode
decode_all = msgspec.json.Decoder(list[Event]).decode


def is_shared(body: bytes | None) -> bool:
    """Whether a written event belongs to the catalogue."""
    return body is not None and body.startswith(_OPENINGS)


_JOIN = f'["{Joined.__struct_config__.tag}"'.encode()


def is_join(body: bytes | None) -> bool:
    """Whether a written event joins two users."""
    return body is not None and body.startswith(_JOIN)


def digest_of_version(contents: Iterable[bytes | None]) -> str:
    """A digest of the payloads of a version."""
    digest = hashlib.blake2b(digest_size=16)
    for content in contents:
        digest.update(b"none" if content is None else hashlib.blake2b(content, digest_size=16).digest())
    return digest.hexdigest()


SILENCE = "silence"
"""The name of the event without id which says that there was no reaction."""


def erased_by(event: Event) -> list[int]:
    """The rows whose content an event erased."""
    if type(event) is Forget:
        return event.erased
    return [dropped.seq for dropped in event.decisions] if type(event) is Expire else []
