"""JSON as its specification has it, and nothing more.

Python's reader takes NaN for a number and 1e999 for infinity, and keeps the last of two equal keys without a word. Here none of
these passes: what two readers could understand differently is refused.
"""

import json
import math
import re
from typing import Any, NoReturn

from albatross.service.messages import BadValue, Refused

MAX_DEPTH = 8
"""Lists in objects in lists …: no request needs more than three."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_A_BRACKET = re.compile(rb"[^\[\]{}]+")


class NotJson(Refused):
    """The bytes are not a JSON document, or not one that every reader understands alike."""

    status = 400
    code = "not-json"


def parse(body: bytes) -> Any:
    """The document as Python values.

    >>> parse(b'{"user": "ann", "rating": 4.5}')
    {'user': 'ann', 'rating': 4.5}
    >>> parse(b'{"rating": 1e999}')
    Traceback (most recent call last):
        ...
    albatross.service.messages.BadValue: the number 1e999 is too large
    >>> parse(b'{"user": "ann", "user": "bob"}')
    Traceback (most recent call last):
        ...
    albatross.service.strict_json.NotJson: the key 'user' is given more than once
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise NotJson(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    # Counting brackets bounds the depth from above; only where that does not settle it are they followed one by one.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(body) > MAX_DEPTH:
        raise NotJson(f"the document is nested more than {MAX_DEPTH} deep")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    if b"\\u" in body:
        _check_escapes(value)
    return value


def _check_escapes(value: Any) -> None:
    """Only an escape can write half a character."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadValue("a text holds half a character (a lone surrogate); accepted: text") from None


def _depth(body: bytes) -> int:
    deepest = depth = 0
    for bracket in _NOT_A_BRACKET.sub(b"", _STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        raise NotJson(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is given more than once")
    return fields


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise BadValue(f"the number {_short(number)} is too large")
    return value


def _whole(number: str) -> int:
    if len(number) > 309:  # as many digits as the largest double has
        raise BadValue(f"the number {_short(number)} is too large")
    return int(number)


def _constant(name: str) -> NoReturn:
    raise BadValue(f"{name} is not a number")


def _short(number: str) -> str:
    return number if len(number) <= 20 else number[:20] + "…"


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_int=_whole, parse_constant=_constant)
