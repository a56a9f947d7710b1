"""What ids and ratings may be, and how much one request may ask for. The types say the same in OpenAPI."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from albatross.service.api.errors import BadValue

LONGEST_ID = 256
"""Characters of an outside id, at most."""
MOST_SHOWN = 100
"""Items in one slate, at most: each place is decided by itself."""
MOST_VIEWED = 1_000
"""Best items told of a user, at most."""
MOST_LISTED = 1_000
"""Users, items or events told in one list, or in a user's history, at most."""
MOST_SEARCHED = 20_000
"""Names that one search looks at, at most; the answer says where to go on."""
MOST_CANDIDATES = 10_000
"""Candidates, or excluded items, in one request, at most."""
MOST_NEW_ITEMS = 1_000
"""Items that one recommendation may bring into being, at most."""
MOST_REWARDS = 100
"""Names of events, at most."""
MOST_VISITORS = 10_000
"""Visitors that can be joined with one user."""
MOST_EVENTS = 10_000
"""Ratings in one batch, at most."""

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

PATTERN = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, pattern=PATTERN)]
HotId = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, extra_json_schema={"pattern": PATTERN})]
"""The same in requests that come most often: its characters are looked at by `check_id` alone, which takes a tenth of the time."""
Ids = Annotated[list[Id], Meta(max_length=MOST_CANDIDATES)]
Candidates = Annotated[list[Id], Meta(min_length=1, max_length=MOST_CANDIDATES)]
Rewarded = Annotated[dict[Id, float], Meta(min_length=1, max_length=MOST_REWARDS)]
"""Names of events, and what they are worth."""
Listed = Annotated[int, Meta(ge=1, le=MOST_LISTED)]
Position = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Seen = Literal["rated", "pending", "none"]
"""Which items not to show again: those the user rated; those and what they were shown and have not answered; none."""


def check_id(name: str, value: str) -> None:
    """Refuse what cannot name anything: empty, over-long, with control characters, or not text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise BadValue(f"{name} is {value!r}; accepted: text")
    if not 1 <= len(value) <= LONGEST_ID:
        raise BadValue(f"{name} has {len(value)} characters; accepted: 1 to {LONGEST_ID}")
    if value.isascii() and value.isprintable():
        return  # as nearly all are
    if CONTROL.search(value):
        raise BadValue(f"{name} is {value!r}; accepted: text without control characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadValue(f"{name} holds half a character (a lone surrogate); accepted: text") from error


def check_rating(rating: float, scale: tuple[float, float]) -> None:
    low, high = scale
    if isinstance(rating, bool) or not isinstance(rating, int | float) or not low <= rating <= high:  # which no NaN is
        raise BadValue(f"rating is {rating!r}; accepted: a number from {low:g} to {high:g}")


def check_count(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadValue(f"{name} is {value!r}; accepted: a whole number from {least} to {most}")
