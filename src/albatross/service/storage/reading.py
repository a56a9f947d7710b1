"""The events of a log in order, and checks of their handles."""

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import MsgspecError
from msgspec.structs import replace

from albatross.core.errors import InvalidInput
from albatross.service.storage.events import FORMAT, Adopt, Based, Event, Genesis, decode, decode_all, erased_by
from albatross.service.storage.handles import adoption_handle, base_handle, handles_of
from albatross.service.storage.store import DamagedLog, ReadableLog

Progress = Callable[[int, int], None]
"""Is called with the number of events done and the total."""

Sum = tuple[int, int]
"""A checksum of a set of handles and their rows, independent of order. Different sets have different sums, almost certainly."""
NO_HANDLES: Sum = (0, 0)
WORDS, MOST = struct.Struct("<2Q"), 2**64 - 1
"""A handle as two numbers, and the largest such number: sums are modulo 2⁶⁴."""


def nothing(done: int, total: int) -> None:
    """Progress that is not shown."""


def read_genesis(log: ReadableLog, where: str) -> Genesis:
    """The first event of a log, with the last accepted source of the policy."""
    try:
        found = decode(log.body(1) or b"")
    except MsgspecError as error:
        raise DamagedLog(f"{where} is damaged at event 1: {error}") from error
    if not isinstance(found, Genesis) or found.format != FORMAT:
        raise InvalidInput(f"{where} does not begin as a log of this version does")
    for seq, adopted in adoptions(log):
        if seq > found.inherited:  # decisions up to here were made by another model
            found = replace(found, outside=adopted.outside, parameters=adopted.parameters, kernel=adopted.kernel, inherited=seq)
    return found


def lacking(log: ReadableLog) -> str:
    """What to say of a log of which the mark has more."""
    return f"the last {log.restored:,} events are missing in the log, and the mark has them: the next start restores them"


def adoptions(log: ReadableLog) -> Iterator[tuple[int, Adopt]]:
    """The accepted changes of the policy's source, with their numbers."""
    for number in itertools.count(1):
        place = log.find(adoption_handle(number))
        if place is None:
            return
        try:
            event = decode(log.body(place.seq) or b"")
        except MsgspecError as error:
            raise DamagedLog(f"the log is damaged at event {place.seq}: {error}") from error
        if not isinstance(event, Adopt):
            raise DamagedLog(f"the log is damaged at event {place.seq}: it is not what its handle says")
        yield place.seq, event


def base_of(log: ReadableLog) -> tuple[int, Based] | None:
    """The event that names the log's base, and its number; None without a base."""
    version = log.base_version()
    if version == 0:
        return None
    place = log.find(base_handle(version))
    event = None if place is None else decode(log.body(place.seq) or b"")
    if place is None or not isinstance(event, Based):
        raise DamagedLog(f"the log is damaged: no event names the base of version {version}")
    return place.seq, event


def decoded(first: int, bodies: list[bytes | None], known: int = 0) -> tuple[Sequence[int], list[Event]]:
    """The events after `known` that were not erased, with their numbers. They are decoded together, which is quicker."""
    seqs: Sequence[int] = range(first, first + len(bodies))
    present = [body for body in bodies if body is not None]
    if known >= first or len(present) < len(bodies):
        seqs = [seq for seq, body in zip(seqs, bodies, strict=True) if body is not None and seq > known]
        present = [body for seq, body in enumerate(bodies, start=first) if body is not None and seq > known]
    try:
        events = decode_all(b"[" + b",".join(present) + b"]")
        if len(events) != len(present):
            raise ValueError("rows and events differ in number")
    except (MsgspecError, ValueError) as error:
        raise DamagedLog(f"the log is damaged between events {first} and {first + len(bodies) - 1}: {error}") from error
    return seqs, events


def read_events(log: ReadableLog, progress: Progress = nothing, checked: bool = True) -> Iterator[tuple[int, Event]]:
    """Every event that was not erased, with its number."""
    for first, bodies in log.read(checked):
        yield from zip(*decoded(first, bodies), strict=True)
        progress(first + len(bodies) - 1, log.head.seq)


def check_erased(erased: set[int]) -> None:
    """Refuse rows whose content is missing although no event erased it."""
    if erased:
        raise DamagedLog(f"the log is damaged at event {min(erased)}: its content is gone, and no later event says that it was erased")


def summed(handles: Iterable[tuple[bytes, int]], start: Sum = NO_HANDLES) -> Sum:
    """The sum of these handles, added to `start`."""
    first, second = start
    try:
        for handle, seq in handles:
            one, other = WORDS.unpack(handle)
            first += one * (2 * seq + 1)
            second += other * (2 * seq + 1)
    except struct.error as error:
        raise DamagedLog("the log is damaged in its table of handles: a handle has the wrong length") from error
    return first & MOST, second & MOST


def less(total: Sum, handles: Iterable[tuple[bytes, int]]) -> Sum:
    """The sum without these handles."""
    taken = summed(handles)
    return (total[0] - taken[0]) & MOST, (total[1] - taken[1]) & MOST


def sum_of_events(seqs: Iterable[int], events: Iterable[Event], start: Sum = NO_HANDLES) -> Sum:
    return summed(((handle, seq) for seq, event in zip(seqs, events, strict=True) for handle in handles_of(event)), start)


def sum_of_table(log: ReadableLog) -> Sum:
    """The sum of all handles whose events were not erased."""
    total = NO_HANDLES
    for rows in log.handles():
        total = summed(((handle, seq) for handle, seq, content in rows if content), total)
    return total


def check_handles(log: ReadableLog) -> None:
    """Refuse a log whose handles do not match its events: a rating could count twice, or a new one be taken for a duplicate."""
    count = 0
    for seq, event in read_events(log, checked=False):
        for handle in handles_of(event):
            count += 1
            found = log.find(handle)
            if found is None or found.seq != seq or not found.content:
                raise DamagedLog(f"the log is damaged at event {seq}: it cannot be found by its id")
    kept = sum(1 for rows in log.handles() for _, _, content in rows if content)
    if kept != count:
        raise DamagedLog(f"the log is damaged: {kept - count} handles belong to no event")


def check_log(log: ReadableLog, progress: Progress = nothing) -> None:
    """Refuse a log in which any row, chain value or handle differs from what was written."""
    erased: set[int] = set()
    total = NO_HANDLES
    for first, bodies in log.read():
        seqs, events = decoded(first, bodies)
        if len(seqs) < len(bodies):
            erased.update(set(range(first, first + len(bodies))).difference(seqs))
        for event in events:
            erased.difference_update(erased_by(event))
        total = sum_of_events(seqs, events, total)
        progress(first + len(bodies) - 1, log.head.seq)
    check_erased(erased)
    if total != sum_of_table(log):
        check_handles(log)
        raise DamagedLog("the log is damaged in its table of handles")
