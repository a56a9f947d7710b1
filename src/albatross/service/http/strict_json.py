"""Strict JSON: exactly its specification.

Python's reader accepts NaN, reads 1e999 as infinity, and silently keeps the last of two equal keys. Here all of these are refused:
two readers could understand them differently. This is done by hooks of that reader, in one pass, so the time grows only with the
length of the document.

msgspec alone reads the most frequent requests, if a quick check of the bytes shows that both readers give the same result: `QuickReader`.
If msgspec refuses one, the strict reader reads it again and says why.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, Generic, NoReturn, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from albatross.service.api.errors import BadValue, NotJson, Refused
from albatross.service.api.requests import Feedback, Recommend
from albatross.service.api.rules import By, Fresh, Quota, Where
from albatross.service.api.values import LONGEST_ID, Seen

T = TypeVar("T")

LONGEST_ECHO = 40
"""An answer repeats at most so many characters of what was given."""

LARGE = 2**14
"""Bytes. Reading less than this never delays other requests noticeably."""
MOST_EXACT = 2.0**53
"""Up to here, every float with an integer value is that integer exactly."""

MOST_INSIDE = 100
"""Limit of members of an object or list inside a request; lists of ids are exempt."""
MOST_MEMBERS = 1_000
"""Limit of members of all objects of a long document together. No request has as many."""


class _Condition(Struct, forbid_unknown_fields=True, rename={"is_": "is", "from_": "from"}):
    all: Annotated[list["_Condition"], Meta(max_length=MOST_INSIDE)] | None = None
    any: Annotated[list["_Condition"], Meta(max_length=MOST_INSIDE)] | None = None
    none: Annotated[list["_Condition"], Meta(max_length=MOST_INSIDE)] | None = None
    attribute: str | None = None
    is_: str | Annotated[list[str], Meta(max_length=MOST_INSIDE)] | None = None
    from_: float | None = None
    to: float | None = None


class _Quota(Struct, forbid_unknown_fields=True):
    attribute: str
    most: float


_Inside = str | float | bool | Annotated[list[str | _Condition], Meta(max_length=MOST_INSIDE)] | None
_SHAPE = msgspec.json.Decoder(
    dict[str, str | float | bool | list[str | _Quota] | Annotated[dict[str, _Inside], Meta(max_length=MOST_INSIDE)] | None]
)
"""The shape of all requests, without names and bounds."""
_PARTS: dict[str, type[Struct]] = {"where": Where, "quotas": Quota, "fresh": Fresh}
"""Parts of requests that are objects with their own fields."""
_NAMED_VALUES = {"by": ", ".join(get_args(By)), "exclude_seen": ", ".join(get_args(Seen)), "explain": "true, false, reasons"}
"""What is accepted in fields with a list of values."""
_VALUES = {"attributes": "a label, a list of labels or a number"}
"""What is accepted as a value in a table of several kinds of values."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_LESS_THAN_NOTHING = re.compile(rb"[\s:,\[]-0")
"""What precedes a number that may be -0.0, which is 0."""
_PLACE = re.compile(r" - at (`key` in )?`\$\.?(.*?)`$", re.DOTALL)


class QuickReader(Generic[T]):
    """Reads a type of request if the bytes show that msgspec is strict enough: short, no escapes, no repeated name."""

    __slots__ = ("_decode", "_inside", "_names")

    def __init__(self, kind: type[T], inside: Iterable[type[Struct]] = ()) -> None:
        """`inside`: all types of objects that a request may contain."""
        self._decode = msgspec.json.Decoder(kind).decode
        self._names = _quoted(kind)
        self._inside = tuple({*self._names, *(name for part in inside for name in _quoted(part))})

    def read(self, body: bytes) -> T | None:
        """The request, or None if it needs the strict reader."""
        if len(body) > LARGE or b"\\" in body or (b"-0" in body and _LESS_THAN_NOTHING.search(body)):
            return None
        if body.count(b":") > 1:
            said = body.split(b'"')[1::2]  # without escapes, every second part is a string
            if len(set(said)) < len(said):  # perhaps only a value is repeated
                for name in self._names if body.count(b"{") == 1 else self._inside:
                    if body.count(name) > 1:
                        return None
        try:
            return self._decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None


def _quoted(kind: Any) -> tuple[bytes, ...]:
    return tuple(f'"{name}"'.encode() for name in kind.__struct_encode_fields__)


def parse(body: bytes) -> Any:
    """The document as Python values.

    >>> parse(b'{"user": "ann", "rating": 4.5}')
    {'user': 'ann', 'rating': 4.5}
    >>> parse(b'{"rating": 1e999}')
    Traceback (most recent call last):
        ...
    albatross.service.api.errors.BadValue: the number 1e999 is too large
    >>> parse(b'{"user": "ann", "user": "bob"}')
    Traceback (most recent call last):
        ...
    albatross.service.api.errors.NotJson: the key 'user' is given more than once
    """
    try:
        text = body.decode()
        if text.startswith("\ufeff"):
            raise NotJson("it begins with a byte-order mark; accepted: JSON in UTF-8, without that mark")
        value = _DECODER.decode(text)
        if b"\\u" in body:
            _check_escapes(value)
    except Refused:
        raise
    except UnicodeDecodeError as error:
        raise NotJson(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}" if error.doc.strip() else "the body is empty") from None
    except RecursionError:
        raise NotJson("the document is nested too deep") from None
    except ValueError:  # Python's reader raises no other ValueError: it does not convert more than a few thousand digits
        raise BadValue("a number has too many digits") from None
    return value


def read_as(body: bytes, kind: type[T]) -> T:
    """A document as a request. No number may be in quotation marks, and no field may be unknown.

    >>> from albatross.service.api.requests import Recommend
    >>> read_as(b'{"user": ""}', Recommend)
    Traceback (most recent call last):
        ...
    albatross.service.api.errors.BadValue: user: accepted: text of 1 to 256 characters without control characters
    """
    quick = _QUICK_READERS.get(kind)
    if quick is not None and (request := quick.read(body)) is not None:
        return request  # type: ignore[no-any-return]
    return read_closely(body, kind)


def read_closely(body: bytes, kind: type[T]) -> T:
    """The same, always by the strict reader."""
    try:
        if len(body) > LARGE:
            _check_shape(body)
        document = parse(body)
        try:
            return msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            raise BadValue(_plain(_with_name(str(error), document, kind), kind)) from None
    except msgspec.ValidationError as error:
        raise BadValue(_plain(str(error), kind)) from None
    except RecursionError:
        raise NotJson("the document is nested too deep") from None


def _check_shape(body: bytes) -> None:
    """Refuse a long document at the first value that no request has, before its values become objects.

    Reading a megabyte of brackets or of members takes a quarter of a second and would delay other requests. If it is not JSON at all,
    the strict reader stops at the same place and reports it.
    """
    if body.count(b":") > MOST_MEMBERS and _members(body) > MOST_MEMBERS:
        raise BadValue(f"the document has more than {MOST_MEMBERS:,} members; accepted: up to that")
    try:
        _SHAPE.decode(body)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return


def _members(body: bytes) -> int:
    r"""How many colons stand outside texts: one for each member of an object.

    >>> _members(rb'{"a": "b: \" c:", "d\\": {"e": 1}}')
    3
    """
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return sum(part.count(b":") for part in unescaped.split(b'"')[::2])


def shorten(text: str, most: int = LONGEST_ECHO) -> str:
    """The beginning of a text.

    >>> shorten("a long story", 6)
    'a long…'
    """
    return text if len(text) <= most else text[:most] + "…"


def _with_name(message: str, document: Any, kind: Any) -> str:
    """A message of msgspec about a value in a table, with the name of the value. Raises a `BadValue` that says more, if there is one."""
    table = message.partition(" - at `$.")[2].partition("[...]")[0]
    if "[...]" not in message or not isinstance(document, dict) or not isinstance(document.get(table), dict):
        return message
    for name, value in document[table].items():  # limited, or the message would be about their number
        try:
            msgspec.convert(document | {table: {name: value}}, kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                if table in _VALUES and message.startswith("Expected `float |"):
                    given = shorten(json.dumps(value, ensure_ascii=False))
                    raise BadValue(f"{table}[{shorten(name)!r}] is {given}; accepted: {_VALUES[table]}") from None
                return message.replace("[...]", f"[{shorten(name)!r}]", 1)
    return message


def _plain(message: str, kind: Any = None) -> str:
    """A message of msgspec as a sentence that names the field and what is accepted.

    >>> _plain("Expected `int`, got `str` - at `$.n`")
    'n: expected int, got str'
    """
    place = _PLACE.search(message)
    field = shorten(place[2], 2 * LONGEST_ECHO) if place else ""
    text = message[: place.start()] if place else message
    if "regex" in text or "`str` of length" in text:
        text = f"accepted: text of 1 to {LONGEST_ID} characters without control characters"
    elif text.startswith("Object contains unknown field"):
        # The client chose the name, so it may be long.
        known = _PARTS.get(re.split(r"\W", field)[0], kind)
        fields = f"; accepted: {', '.join(known.__struct_encode_fields__)}" if hasattr(known, "__struct_encode_fields__") else ""
        text = f"the field {shorten(text.partition('`')[2].rpartition('`')[0])!r} is unknown{fields}"
    elif text.startswith("Invalid enum value"):
        text = f"accepted: {_NAMED_VALUES.get(field, '')}"
    else:
        text = shorten(text.replace("`", ""), 2 * LONGEST_ECHO)
        text = text[:1].lower() + text[1:]
    if place and place[1]:
        field = f"a name in {field}"
    return f"{field}: {text}" if field else text


def _check_escapes(value: Any) -> None:
    """Only an escape can produce a lone surrogate."""
    if _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise BadValue("a text holds half a character (a lone surrogate); accepted: text")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {shorten(key)!r} is given more than once")
            seen.add(key)
    return fields


def _finite(number: str) -> float:
    """A number with a point or an exponent. If it is whole, it becomes an integer, as in JSON Schema: 2.0 is 2."""
    value = float(number)
    if not math.isfinite(value):
        raise BadValue(f"the number {shorten(number)} is too large")
    return int(value) if value.is_integer() and abs(value) <= MOST_EXACT else value


def _constant(name: str) -> NoReturn:
    raise BadValue(f"{name} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_constant)

_QUICK_READERS: dict[type, QuickReader[Any]] = {Recommend: QuickReader(Recommend, (Where, Quota, Fresh)), Feedback: QuickReader(Feedback)}
