"""Decisions without an answer count as answered with a reward after some time, if the owner of the folder wants that.

This is written as an event when it happens, so a replay needs no clock. A later answer replaces it.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Answer
from albatross.service.api.requests import Request
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Decided, decode
from albatross.service.storage.store import Store

LONGEST = 1e9
"""Limit of the time that a decision waits, in seconds."""
LOOKS_AT_ONCE = 256
"""Limit of rows of the log that are read at once, because requests wait."""
ITEMS_AT_ONCE = 128
"""After so many items, the other decisions wait for the next time: an item takes a tenth of a millisecond, and a decision has up to 100."""
LOOK_SECONDS = 1.0
"""Interval between checks when there are no requests."""


class Silence(NamedTuple):
    """How long a decision waits, and the reward after that."""

    seconds: float
    reward: float


class Hushed(Answer, frozen=True):
    """How many items got the reward of silence."""

    items: int


class GiveUp(Request[Hushed], frozen=True):
    """Count these decisions as answered by silence, where they have no answer. Only the engine itself sends this."""

    decisions: list[int]
    reward: float


def check_silence(silence: Silence, scale: tuple[float, float]) -> None:
    if not 0 < silence.seconds < LONGEST:
        raise InvalidInput(f"silence is after {silence.seconds:g} seconds; accepted: more than 0, less than {LONGEST:g}")
    if not scale[0] <= silence.reward <= scale[1]:
        raise InvalidInput(f"silence counts for {silence.reward:g}; accepted: a number from {scale[0]:g} to {scale[1]:g}")


def given_up(model: Model, store: Store, silence: Silence) -> GiveUp | None:
    """The next decisions that have waited long enough. Remembers how far it has read."""
    due: list[int] = []
    reached, items = model.given_up, 0
    for seq, decided in _rows(store, reached + 1):
        if decided is not None:
            if items >= ITEMS_AT_ONCE or decided.at + silence.seconds > time.time():
                break
            due.append(seq)
            items += len(decided.items)
        reached = seq
    if not due:
        model.given_up = reached
        return None
    return GiveUp(due, silence.reward)


def _rows(store: Store, first: int) -> Iterator[tuple[int, Decided | None]]:
    for seq in range(first, min(first + LOOKS_AT_ONCE, store.head.seq + 1)):
        body = store.body(seq)
        event = None if body is None or not body.startswith(b'["decision"') else decode(body)
        yield seq, event if isinstance(event, Decided) else None
