"""Requests and answers between fronts and shards, as bytes. What arrives is checked against the expected types."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import astuple

from albatross.service.api.answers import Accepted, Answer, BatchAccepted, ItemAccepted, ItemsAccepted, Refusal
from albatross.service.api.errors import BY_CODE, BadValue, Refused, TooLarge
from albatross.service.api.requests import FeedbackBatch, Request, UpsertItems, answer_of
from albatross.service.api.routes import BY_REQUEST
from albatross.service.cluster.lines.frames import MOST_BYTES, framed
from albatross.service.engine.learned.visitors import Moved
from albatross.service.engine.moving import Forwarded
from albatross.service.engine.sharing import AskSums, FollowCatalogue, TakeParcels
from albatross.service.engine.tickets import Settled

ASKED: tuple[type[Request[Any]], ...] = (*BY_REQUEST, FeedbackBatch, UpsertItems, AskSums, FollowCatalogue, TakeParcels)
"""What fronts ask of shards."""
ANSWER, FORWARDED, REFUSED, FAILED = b"a", b"f", b"r", b"x"
"""The first byte of an answer."""
LONGEST_NAME = 100
REFUSALS = {**BY_CODE, Moved.code: Moved}

_pack = msgspec.msgpack.Encoder().encode
_names = {kind: bytes([len(kind.__name__)]) + kind.__name__.encode() for kind in ASKED}
"""By name: while processes are replaced by those of a newer version, the other side may know other kinds."""
_requests = {kind.__name__.encode(): msgspec.msgpack.Decoder(kind).decode for kind in ASKED}
_unpack_rows = msgspec.msgpack.Decoder(list[list[Any]]).decode
_unpack_refusal = msgspec.msgpack.Decoder(tuple[str, str]).decode
_unpack_forwarded = msgspec.msgpack.Decoder(tuple[list[int], bytes]).decode


class ShardFailed(Exception):
    """A shard has met an error that nobody foresaw. Its type is known, its message is not: that may contain what a client sent."""


def packed_request(number: int, request: Request[Any]) -> bytes:
    """A message. Raises `Refused` if the request cannot be sent."""
    try:
        content = _names[type(request)] + _pack(request)
    except UnicodeEncodeError:
        raise BadValue("a name holds half a character (a lone surrogate); accepted: text") from None
    if len(content) > MOST_BYTES:
        raise TooLarge(f"the request has {len(content)} bytes; accepted: up to {MOST_BYTES}")
    return framed(number, content)


def unpacked_request(content: bytes) -> Request[Any]:
    """Raises `ValueError` if it is none that a front may send."""
    first = 1 + (content[0] if content else 0)
    decode = _requests.get(content[1:first])
    if decode is None:
        raise ValueError("a message that is no request")
    request: Request[Any] = decode(memoryview(content)[first:])
    return request


def packed_answer(number: int, settled: Settled) -> bytes:
    """A message."""
    content = _packed(settled)
    if len(content) > MOST_BYTES:
        content = _packed(TooLarge(f"the answer has {len(content)} bytes; accepted: up to {MOST_BYTES}; ask for less"))
    return framed(number, content)


def _packed(settled: Settled) -> bytes:
    if isinstance(settled, Forwarded):
        return FORWARDED + _pack((settled.shards, _packed_answer(settled.answer)))
    if isinstance(settled, Answer):
        return ANSWER + _packed_answer(settled)
    if isinstance(settled, Refused):
        return REFUSED + _pack((settled.code, str(settled).encode(errors="replace").decode()))
    return FAILED + type(settled).__name__.encode()


def _packed_answer(answer: Answer) -> bytes:
    if isinstance(answer, BatchAccepted | ItemsAccepted):
        return _pack([astuple(one) for one in answer.answers])
    return _pack(answer)


def unpacked_answer(content: bytes, request: Request[Any]) -> Settled:
    """The answer to a request; `ShardFailed` if it is none."""
    kind, rest = content[:1], memoryview(content)[1:]
    try:
        if kind == ANSWER:
            return _answers[type(request)](rest)
        if kind == FORWARDED:
            shards, answer = _unpack_forwarded(rest)
            return Forwarded(_answers[type(request)](answer), shards)
        if kind == REFUSED:
            code, message = _unpack_refusal(rest)
            refusal: Refused = REFUSALS.get(code, Refused)(message)
            return refusal
    except (ValueError, TypeError):
        return ShardFailed("an answer of another type than expected")
    return ShardFailed(bytes(rest[:LONGEST_NAME]).decode(errors="replace"))


def _rows_of(whole: Callable[[list[Any]], Answer], each: type[Answer]) -> Callable[[Any], Answer]:
    """Reads a list of answers and refusals: a refusal has three values, an answer has more."""

    def decode(content: Any) -> Answer:
        return whole([(Refusal if len(values) == 3 else each)(*values) for values in _unpack_rows(content)])

    return decode


_lists = {BatchAccepted: _rows_of(BatchAccepted, Accepted), ItemsAccepted: _rows_of(ItemsAccepted, ItemAccepted)}
_answers: dict[type[Request[Any]], Callable[[Any], Answer]] = {
    kind: _lists.get(answer_of(kind)) or msgspec.msgpack.Decoder(answer_of(kind)).decode for kind in ASKED
}
