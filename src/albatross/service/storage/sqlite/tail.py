"""The newest rows of a log, as the mark has them: what the journal may lose, because it is synchronised only now and then."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from albatross.service.storage.mark import Entry, Head, Marked
from albatross.service.storage.store import DamagedLog, Handle, ReadableLog, Written, check_mark, check_rows


class Tail(NamedTuple):
    """Rows and their handles."""

    rows: list[Written]
    handles: list[Handle]


encode_tail = Encoder().encode
_decode = Decoder(Tail).decode


def missing_rows(where: str, mark: Marked, log: ReadableLog) -> Tail:
    """The rows that the mark has, and the log has not. Refuses a log that has lost more than these.

    While others write, the mark must have been read before the log was opened.
    """
    if mark.head is not None and mark.head.seq > log.head.seq:
        head, tail = _behind(log.head, mark.entries)
        if head == mark.head:
            return tail
    check_mark(where, mark.head, log)
    return Tail([], [])


def first_missing_rows(mark: Marked, log: ReadableLog) -> Tail:
    """The rows after the end of the log that the mark has without a gap, also if it knows of later ones."""
    return _behind(log.head, mark.entries)[1]


def _behind(head: Head, entries: Sequence[Entry]) -> tuple[Head, Tail]:
    """The rows behind a head up to the first gap or damage, and the head after them."""
    tail = Tail([], [])
    for entry in entries:
        if entry.head.seq <= head.seq:
            continue
        try:
            found = _decode(entry.content)
            # After a gap, the chain does not hold.
            head = Head(entry.head.seq, check_rows("the mark", head.chain, found.rows))
        except (MsgspecError, DamagedLog):
            break
        tail.rows.extend(found.rows)
        tail.handles.extend(found.handles)
    return head, tail
