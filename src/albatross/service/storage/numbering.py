"""Handles numbered 1, 2, 3, … for versions of the same thing, of which the last one counts."""

from collections.abc import Callable

from albatross.service.storage.events import Genesis, Rewards, decode
from albatross.service.storage.handles import answer_handle, reaction_handle, rewards_handle
from albatross.service.storage.store import DamagedLog, ReadableLog


def last_number(exists: Callable[[int], bool]) -> int:
    """The last number of a sequence without gaps; 0 if it is empty. A binary search: the time grows with the logarithm of the length.

    >>> [last_number(lambda number: number <= length) for length in (0, 1, 2, 3, 1000)]
    [0, 1, 2, 3, 1000]
    """
    low, high = 0, 1
    while exists(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exists(middle) else (low, middle)
    return low


def answering_handle(decision: int, item: str, number: int) -> bytes:
    """The handle of an answer to an item of a decision: the first answer, or one that replaces it."""
    return reaction_handle(decision, item, number) if number else answer_handle(decision, item)


def answers_before(exists: Callable[[bytes], bool], decision: int, item: str) -> int:
    """How many answers there are for an item of a decision."""
    return last_number(lambda number: exists(answering_handle(decision, item, number - 1)))


def rewards_now(log: ReadableLog, genesis: Genesis) -> tuple[int, dict[str, float]]:
    """How often the rewards were changed, and the current rewards."""
    number = last_number(lambda number: log.find(rewards_handle(number)) is not None)
    if number == 0:
        return 0, genesis.events
    place = log.find(rewards_handle(number))
    body = None if place is None else log.body(place.seq)
    event = None if body is None else decode(body)
    if not isinstance(event, Rewards):
        raise DamagedLog(f"the log is damaged at event {0 if place is None else place.seq}: it is not what its handle says")
    return number, event.events
