"""The mark: number and hash of the last acknowledged event, in a file of its own. The log must contain that event.

SQLite stops reading its journal silently at the first invalid frame. After a crash that is right. After damage, or if the journal is
lost, acknowledged events would be gone without an error. The mark is synchronised after each commit and before the client gets its
answer, so a log that ends before its mark has lost events.

The file has two slots, written in turn: if the power fails during a write, the other slot is intact.
"""

import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

from albatross.core.files import whole_file
from albatross.service.api.errors import StorageFailed

MARK = "mark"
SLOT = 512
"""Bytes from one slot to the next: a disk sector, so that no write touches both."""
LAYOUT = struct.Struct("<Q16s")

_synchronise = getattr(os, "fdatasync", os.fsync)  # not every system has fdatasync, which is quicker


class Head(NamedTuple):
    """The last row of a log."""

    seq: int
    chain: bytes


class Mark:
    """The mark of a folder, open for writing."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MARK
        self._file = self.path.open("r+b", buffering=0)
        slots = _slots(self.path.read_bytes())
        self._slot = 1 if slots[1] is not None and (slots[0] is None or slots[1] > slots[0]) else 0
        """The newer slot. The next write goes to the other."""

    def set(self, head: Head) -> None:
        """Write the head. It is on disk when this returns."""
        self._slot = 1 - self._slot
        try:
            self._file.seek(self._slot * SLOT)
            self._file.write(_encoded(head))
            _synchronise(self._file.fileno())
        except OSError as error:
            raise StorageFailed(f"{self.path} could not be written ({error}); nothing more is accepted until a restart") from error

    def close(self) -> None:
        self._file.close()


def read_mark(folder: Path) -> Head | None:
    """The mark of a folder, or None if there is no readable one."""
    try:
        content = (folder / MARK).read_bytes()
    except OSError:
        return None
    return max((head for head in _slots(content) if head is not None), default=None)


def write_mark(folder: Path, head: Head) -> None:
    """Replace the mark, whatever it was."""
    with whole_file(folder / MARK, 0o600) as partial:
        partial.write_bytes(_encoded(head).ljust(SLOT, b"\0") + bytes(SLOT))


def _slots(content: bytes) -> tuple[Head | None, Head | None]:
    return _decoded(content[:SLOT]), _decoded(content[SLOT:])


def _encoded(head: Head) -> bytes:
    content = LAYOUT.pack(*head)
    return content + hashlib.blake2b(content, digest_size=16).digest()


def _decoded(slot: bytes) -> Head | None:
    content, digest = slot[: LAYOUT.size], slot[LAYOUT.size : LAYOUT.size + 16]
    if len(digest) < 16 or hashlib.blake2b(content, digest_size=16).digest() != digest:
        return None
    return Head(*LAYOUT.unpack(content))
