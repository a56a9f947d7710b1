"""Rows that are numbered 1, 2, 3, … by their handles: what stands for the same thing anew, and of which the last one counts."""

from collections.abc import Callable

from albatross.service.storage.events import Genesis, Rewards, answer_handle, decode, reaction_handle, rewards_handle
from albatross.service.storage.store import DamagedLog, ReadableLog


def last_number(exists: Callable[[int], bool]) -> int:
    """The last number of a row without gaps, 0 where it is empty. Looks at a few of them, however long the row is.

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
    """The handle of an answer to an item of a decision: of the first, then of those that replace it."""
    return reaction_handle(decision, item, number) if number else answer_handle(decision, item)


def answers_before(exists: Callable[[bytes], bool], decision: int, item: str) -> int:
    """How many answers an item of a decision has."""
    return last_number(lambda number: exists(answering_handle(decision, item, number - 1)))


def rewards_now(log: ReadableLog, genesis: Genesis) -> tuple[int, dict[str, float]]:
    """How often the rewards of events were changed, and what they are."""
    number = last_number(lambda number: log.find(rewards_handle(number)) is not None)
    if number == 0:
        return 0, genesis.events
    place = log.find(rewards_handle(number))
    body = None if place is None else log.body(place.seq)
    event = None if body is None else decode(body)
    if not isinstance(event, Rewards):
        raise DamagedLog(f"the log is damaged at event {0 if place is None else place.seq}: it is not what its handle says")
    return number, event.events
