"""Import of past ratings into a folder."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Refusal
from albatross.service.api.errors import BadValue, Refused
from albatross.service.api.requests import Feedback, FeedbackBatch
from albatross.service.api.values import check_id, check_rating
from albatross.service.engine.engine import Engine

AT_ONCE = 5_000
"""Ratings imported in one commit."""


EXPORTED = {"seq", "kind", "event_id"}
"""Columns that only an export of events has."""


def check_ratings(name: str, columns: Iterable[str]) -> None:
    """Refuse an export of events, by its columns: its ratings would count again, without decisions, and its other events are no ratings."""
    if set(columns) >= EXPORTED:
        raise InvalidInput(
            f"{name} is an export of events (albatross export), not a table of ratings; accepted: a row per rating, with columns for user, "
            "item and rating (albatross replay makes a folder with the same events under another policy; albatross backup copies one)"
        )


class Imported(NamedTuple):
    applied: int
    known: int
    """Rows that an earlier import of the same source has applied already."""
    refused: list[tuple[int, str]]
    """Line and reason."""


def import_rows(
    engine: Engine, rows: Iterable[tuple[int, list[str | None] | None]], source: str, progress: Callable[[int], None] | None = None
) -> Imported:
    """Apply rows of user, item and rating in order. A bad row is refused with its line number; the others are applied.

    The id of a row is made from its source, its content and how many equal rows came before it. So an interrupted import can be repeated,
    and of an edited file only the new rows count.
    `progress` is called with the number of rows done since the last call.
    """
    applied, known, seen = 0, 0, 0
    refused: list[tuple[int, str]] = []
    waiting: list[tuple[int, Feedback]] = []
    copies: Counter[bytes] = Counter()

    def send() -> None:
        nonlocal applied, known
        if waiting:
            answers = engine.ask(FeedbackBatch([event for _, event in waiting])).answers
            for (line, _), answer in zip(waiting, answers, strict=True):
                if isinstance(answer, Refusal):
                    refused.append((line, answer.detail))
                else:
                    known += answer.duplicate
                    applied += not answer.duplicate
        waiting.clear()

    for line, fields in rows:
        seen += 1
        try:
            user, item, rating = _checked(fields, engine.genesis.scale)
        except Refused as refusal:
            refused.append((line, str(refusal)))
        else:
            content = hashlib.blake2b(f"{source}\0{user}\0{item}\0{rating!r}".encode(), digest_size=12).digest()
            waiting.append((line, Feedback(f"import:{content.hex()}:{copies[content]}", rating, None, user, item)))
            copies[content] += 1
        if len(waiting) == AT_ONCE:
            send()
        if seen % AT_ONCE == 0 and progress is not None:
            progress(AT_ONCE)
    send()
    if progress is not None:
        progress(seen % AT_ONCE)
    return Imported(applied, known, sorted(refused))


def _checked(fields: list[str | None] | None, scale: tuple[float, float]) -> tuple[str, str, float]:
    if fields is None:
        raise BadValue("it does not have as many fields as the header")
    user, item, rating = fields
    if user is None or item is None:
        raise BadValue(f"the {'user' if user is None else 'item'} is missing")
    try:
        value = float(rating or "")
    except ValueError as error:
        raise BadValue(f"rating is {rating!r}; accepted: a number from {scale[0]:g} to {scale[1]:g}") from error
    check_id("user", user)
    check_id("item", item)
    check_rating(value, scale)
    return user, item, value
