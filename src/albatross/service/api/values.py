"""Accepted ids and ratings, and limits of one request. The types put the same limits into OpenAPI."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from albatross.service.api.errors import BadValue

LONGEST_ID = 256
"""Limit of an outside id in characters."""
BRIEF = 40
"""Characters of a name that an error message repeats."""
MOST_SHOWN = 100
"""Limit of items in one slate: each place is a decision of its own."""
MOST_VIEWED = 1_000
"""Limit of best items returned for a user."""
MOST_LISTED = 1_000
"""Limit of users, items or events in one list or in a user's history."""
MOST_SEARCHED = 20_000
"""Limit of names that one search looks at; the answer says where to go on."""
MOST_CANDIDATES = 10_000
"""Limit of candidates, or of excluded items, in one request."""
MOST_NEW_ITEMS = 1_000
"""Limit of new items in one recommendation."""
MOST_REWARDS = 100
"""Limit of named events."""
MOST_VISITORS = 10_000
"""Limit of visitors joined with one user."""
MOST_EVENTS = 10_000
"""Limit of ratings in one batch."""

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

PATTERN = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, pattern=PATTERN)]
HotId = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, extra_json_schema={"pattern": PATTERN})]
"""The same for the most frequent requests: only `check_id` checks its characters, in a tenth of the time."""
Ids = Annotated[list[Id], Meta(max_length=MOST_CANDIDATES)]
Candidates = Annotated[list[Id], Meta(min_length=1, max_length=MOST_CANDIDATES)]
Rewarded = Annotated[dict[Id, float], Meta(min_length=1, max_length=MOST_REWARDS)]
"""Named events and their rewards."""
Listed = Annotated[int, Meta(ge=1, le=MOST_LISTED)]
Position = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Explain = bool | Literal["reasons"]
"""How much to say about a choice: nothing, everything, or only the reasons of each item."""
Seen = Literal["rated", "pending", "none"]
"""Which items not to show again: rated by the user; rated or shown and not answered; none."""


def check_id(name: str, value: str) -> None:
    """Refuse an invalid id: empty, too long, with control characters, or not encodable in UTF-8."""
    if not isinstance(value, str):
        raise BadValue(f"{name} is {value!r}; accepted: text")
    if not 1 <= len(value) <= LONGEST_ID:
        raise BadValue(f"{name} has {len(value)} characters; accepted: 1 to {LONGEST_ID}")
    if value.isascii() and value.isprintable():
        return  # nearly always
    if CONTROL.search(value):
        raise BadValue(f"{name} is {value!r}; accepted: text without control characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadValue(f"{name} holds half a character (a lone surrogate); accepted: text") from error


def brief(text: str) -> str:
    """A name in an error message: in quotation marks, and of a long one the beginning, so that the rest of the sentence is read.

    >>> brief("click"), brief("x" * 99)
    ("'click'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'")
    """
    return repr(text if len(text) <= BRIEF else text[:BRIEF] + "…")


NUMBER = (int, float)


def check_rating(rating: float, scale: tuple[float, float]) -> None:
    low, high = scale
    if isinstance(rating, bool) or not isinstance(rating, NUMBER) or not low <= rating <= high:  # NaN fails this too
        raise BadValue(f"rating is {rating!r}; accepted: a number from {low:g} to {high:g}")


def check_count(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadValue(f"{name} is {value!r}; accepted: a whole number from {least} to {most}")
