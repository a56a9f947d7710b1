"""What the log holds: the kinds of events, as they are written."""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from albatross.service.messages import Explanation, Seen

FORMAT = 1
"""Version of the log's content."""


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


class Item(Struct, frozen=True, array_like=True, tag="item"):
    """There is such an item, and it may be shown."""

    at: float
    item: str


class Retire(Struct, frozen=True, array_like=True, tag="retire"):
    at: float
    item: str


class Placed(Struct, frozen=True, array_like=True):
    """One item of a decision."""

    item: str
    score: float
    mean: float
    propensity: float | None
    explored: bool


class Decided(Struct, frozen=True, array_like=True, tag="decision"):
    at: float
    user: str
    n: int
    candidates: list[str] | None
    exclude: list[str]
    exclude_seen: Seen
    request_id: str | None
    model_seq: int
    user_ratings: int
    items: list[Placed]
    explanation: Explanation | None


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


class Forget(Struct, frozen=True, array_like=True, tag="forget"):
    """The events that were erased. Who it was is not said."""

    at: float
    erased: list[int]


Event = Genesis | Item | Retire | Decided | Rated | Forget

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode
decode_all = msgspec.json.Decoder(list[Event]).decode


def event_key(event_id: str) -> bytes:
    """What the same rating is recognised by, for ever."""
    return hashlib.blake2b(b"event " + event_id.encode(), digest_size=16).digest()


def request_key(request_id: str) -> bytes:
    return hashlib.blake2b(b"request " + request_id.encode(), digest_size=16).digest()


def content_of(request: Struct) -> bytes:
    """What two deliveries of the same must have in common."""
    return hashlib.blake2b(encode(request), digest_size=16).digest()
