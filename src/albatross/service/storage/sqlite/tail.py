"""The newest rows of a log, as the mark has them: what the journal may lose, because it is synchronised only now and then."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from albatross.service.storage.mark import Entry, Head, read_entries, read_mark
from albatross.service.storage.store import DamagedLog, ReadableLog, Written, check_mark, check_rows

Handle = tuple[bytes, int, bytes]
"""A handle, its row, and the content."""


class Tail(NamedTuple):
    """Rows and their handles."""

    rows: list[Written]
    handles: list[Handle]


encode_tail = Encoder().encode
_decode = Decoder(Tail).decode


def missing_rows(folder: Path, log: ReadableLog) -> Tail:
    """The rows that the mark of a folder has, and the log has not. Refuses a log that has lost more than these."""
    mark = read_mark(folder)
    if mark is not None and mark.seq > log.head.seq:
        tail = _between(log.head, mark, read_entries(folder))
        if tail is not None:
            return tail
    check_mark(str(folder), mark, log)
    return Tail([], [])


def _between(head: Head, mark: Head, entries: Sequence[Entry]) -> Tail | None:
    """The rows from one head to another, if the entries have them all."""
    tail = Tail([], [])
    for entry in entries:
        if entry.head.seq <= head.seq:
            continue
        try:
            found = _decode(entry.content)
            # After a gap, the chain does not hold.
            head = Head(entry.head.seq, check_rows("the mark", head.chain, found.rows))
        except (MsgspecError, DamagedLog):
            return None
        tail.rows.extend(found.rows)
        tail.handles.extend(found.handles)
    return tail if head == mark else None
