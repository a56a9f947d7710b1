"""Handles: by them a repeated delivery, a repeated question and an answered item are recognised, for ever.

A handle is a digest of what it stands for. It is stored with a digest of its content, which two deliveries must have in common.
"""

import hashlib

from msgspec import Struct

from albatross.service.storage.events import Adopt, Based, Decided, Event, Rated, Reacted, Rewards, Rules, encode


def event_handle(event_id: str) -> bytes:
    """The handle by which a repeated delivery of the same rating is recognised, for ever."""
    return hashlib.blake2b(b"event " + event_id.encode(), digest_size=16).digest()


def request_handle(request_id: str) -> bytes:
    return hashlib.blake2b(b"request " + request_id.encode(), digest_size=16).digest()


def answer_handle(decision: int, item: str) -> bytes:
    """The handle that is taken once an item of a decision is rated, so that it is rated once."""
    return hashlib.blake2b(b"answer %d " % decision + item.encode(), digest_size=16).digest()


def reaction_handle(decision: int, item: str, number: int) -> bytes:
    """The handle that is taken when the answer to an item of a decision is replaced for the first, second, … time."""
    return hashlib.blake2b(b"answer %d.%d " % (decision, number) + item.encode(), digest_size=16).digest()


def rewards_handle(number: int) -> bytes:
    """The handle of the first, second, … change of rewards."""
    return hashlib.blake2b(b"rewards %d" % number, digest_size=16).digest()


def adoption_handle(number: int) -> bytes:
    """The handle of the first, second, … accepted change of the policy's source."""
    return hashlib.blake2b(b"adoption %d" % number, digest_size=16).digest()


def base_handle(version: int) -> bytes:
    """The handle of the event of a base."""
    return hashlib.blake2b(b"base %d" % version, digest_size=16).digest()


def handles_of(event: Event) -> list[bytes]:
    """The handles of an event."""
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
    if type(event) is Based:
        return [base_handle(event.version)]
    return []


class RatingContent(Struct, frozen=True):
    """What must be equal in two deliveries of the same rating."""

    event_id: str
    rating: float
    decision_id: str | None
    user: str | None
    item: str | None


class ReactionContent(Struct, frozen=True):
    """What must be equal in two deliveries of the same named event."""

    event_id: str
    event: str
    decision_id: str | None
    user: str | None
    item: str | None


class QuestionContent(Struct, frozen=True):
    """What must be equal in two requests with the same request_id."""

    user: str
    """Empty for a visitor without an id."""
    n: int
    candidates: list[str] | None
    exclude: list[str]
    exclude_seen: str
    explain: bool | str
    request_id: str


class RuledContent(Struct, frozen=True):
    """The same for a request with rules."""

    question: QuestionContent
    rules: Rules


def content_of(content: RatingContent | ReactionContent | QuestionContent | RuledContent) -> bytes:
    return hashlib.blake2b(encode(content), digest_size=16).digest()
