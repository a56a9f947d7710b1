"""The mark: number and hash of the last acknowledged event, and the newest rows of the log, in a file of its own.

A commit is durable when the mark is synchronised. The journal of the log is synchronised only now and then, so a client waits for one
synchronisation and not for two. What the journal has lost, after a power failure or by damage, a start restores from the mark. A log that
ends before its mark and cannot be restored has lost acknowledged events.

The file begins with two slots, written in turn: if the power fails during a write, the other slot is intact. A slot says that the log has
all events up to one. Behind the slots are entries, one per commit. Each is on pages of its own, so a torn write touches no other. Their
digests have a key, because the content of an entry comes from clients: it must not look like an entry.
"""

import errno
import hashlib
import secrets
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from albatross.core.files import synchronise, whole_file
from albatross.service.api.errors import StorageFailed

MARK = "mark"
SLOT = 512
"""Bytes from one slot to the next: a disk sector, so that no write touches both."""
LAYOUT = struct.Struct("<Q16s")
"""Of a slot. A digest follows."""
DIGEST = 16
KEY = slice(2 * SLOT, 2 * SLOT + 16)
"""Where the key is."""
PROOF = slice(KEY.stop, KEY.stop + DIGEST)
"""Where the digest of the key is, in the same sector."""
PAGE = 4096
"""Entries begin at multiples of it. The slots and the key have the first page."""
ROOM = 1 << 18
"""Bytes for entries. With more, the journal is synchronised less often, but whoever waits for that waits longer."""
ENTRY = struct.Struct("<4sQ16sII")
"""Of an entry: its sign, number and hash of its last event, length and checksum of its content. A digest follows, and the content."""
SIGN = b"rows"
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file that cannot grow."""


class Head(NamedTuple):
    """The last row of a log."""

    seq: int
    chain: bytes


class Entry(NamedTuple):
    """What one commit wrote."""

    head: Head
    """Of the log after it."""
    content: bytes


class Marked(NamedTuple):
    """What a mark says."""

    head: Head | None
    """The last event that was acknowledged; None if nothing in the mark is sound."""
    entries: list[Entry]
    """Oldest first. Some may be older than the slots: they were not overwritten yet."""


class Mark:
    """The mark of a folder, open for writing."""

    def __init__(self, folder: Path) -> None:
        """Before the first entry, the mark must be set and wiped: that makes room for entries."""
        self.path = folder / MARK
        content = self.path.read_bytes()
        self._failed = False
        slots = _slots(content)
        self._slot = 1 if slots[1] is not None and (slots[0] is None or slots[1] > slots[0]) else 0
        """The newer slot. The next write goes to the other."""
        self._key = content[KEY] if any(content[KEY]) else secrets.token_bytes(16)
        self._next = PAGE
        """Where the next entry begins."""
        self._file = self.path.open("r+b", buffering=0)
        self._room = self._room_for_entries(len(content))
        """Bytes for entries."""
        self._used = max(self._room, len(content) - PAGE)
        """Bytes for entries that may not be zero."""

    def _room_for_entries(self, length: int) -> int:
        try:
            return self._grow(length)
        except BaseException:
            self._file.close()
            raise

    def _grow(self, length: int) -> int:
        """Make room for entries, or none on a full disk: then each commit synchronises the journal."""
        try:
            if length < PAGE + ROOM:
                self._put(length, bytes(PAGE + ROOM - length))
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise self._failure(error) from error
            self._file.truncate(length)  # what space there is, the log needs more
            return 0
        return ROOM

    def add(self, head: Head, content: bytes) -> bool:
        """Write an entry. It is on disk when this returns True. False: there is no room for it, and nothing was written."""
        start = ENTRY.pack(SIGN, *head, len(content), zlib.crc32(content))
        written = start + _digest(start, self._key) + content
        end = self._next + len(written)
        if end > PAGE + self._room:
            return False
        self._write(self._next, written)
        self._next = -(-end // PAGE) * PAGE
        self._used = max(self._used, self._next - PAGE)
        return True

    def set(self, head: Head, wipe: bool = False) -> None:
        """The log itself has everything up to `head`. It is on disk when this returns, and the next entry overwrites the first.

        With `wipe`, nothing is left of the entries.
        """
        self._slot = 1 - self._slot
        self._next = PAGE
        start = LAYOUT.pack(*head)
        self._write(self._slot * SLOT, start + _digest(start))
        if wipe and self._used > 0:
            self._write(KEY.start, (self._key + _digest(self._key)).ljust(PAGE - KEY.start, b"\0") + bytes(self._used))
            self._used = 0

    def _write(self, at: int, content: bytes) -> None:
        try:
            self._put(at, content)
        except OSError as error:
            raise self._failure(error) from error

    def _put(self, at: int, content: bytes) -> None:
        self._file.seek(at)
        left = memoryview(content)
        while left:  # on a disk that is nearly full, one call writes a part and reports no error
            left = left[self._file.write(left) :]
        synchronise(self._file.fileno())

    @property
    def unusable(self) -> bool:
        """Whether it is closed, or could not be written."""
        return self._failed or self._file.closed

    def _failure(self, error: OSError) -> StorageFailed:
        self._failed = True
        return StorageFailed(f"{self.path} could not be written ({error}); nothing more is accepted until a restart")

    def close(self) -> None:
        self._file.close()


def read_mark(folder: Path) -> Head | None:
    """The last event that the mark of a folder has, or None if there is no readable one."""
    return read_marked(folder).head


def read_marked(folder: Path) -> Marked:
    """The mark of a folder. All of it is read at once, because a writer may go on."""
    try:
        content = (folder / MARK).read_bytes()
    except OSError:
        content = b""
    entries = sorted(_entries(content))
    if not entries and _hides_entries(content):
        return Marked(None, [])
    slots = [head for head in _slots(content) if head is not None]
    return Marked(max((*slots, *(entry.head for entry in entries)), default=None), entries)


def write_mark(folder: Path, head: Head) -> None:
    """Replace the mark, whatever it was, by one without entries."""
    with whole_file(folder / MARK, 0o600) as partial:
        start = LAYOUT.pack(*head)
        partial.write_bytes((start + _digest(start)).ljust(SLOT, b"\0") + bytes(SLOT))


def _slots(content: bytes) -> tuple[Head | None, Head | None]:
    return _decoded(content[:SLOT]), _decoded(content[SLOT : 2 * SLOT])


def _decoded(slot: bytes) -> Head | None:
    start, digest = slot[: LAYOUT.size], slot[LAYOUT.size : LAYOUT.size + DIGEST]
    return Head(*LAYOUT.unpack(start)) if len(digest) == DIGEST and _digest(start) == digest else None


def _entries(content: bytes) -> Iterator[Entry]:
    """All entries that are complete: one that is not was never acknowledged, or is damaged."""
    key, first = content[KEY], ENTRY.size + DIGEST
    for at in range(PAGE, len(content) - first, PAGE):
        start = content[at : at + ENTRY.size]
        if start.startswith(SIGN) and _digest(start, key) == content[at + ENTRY.size : at + first]:
            _, seq, chain, length, checksum = ENTRY.unpack(start)
            rows = content[at + first : at + first + length]
            if len(rows) == length and zlib.crc32(rows) == checksum:
                yield Entry(Head(seq, chain), rows)


def _hides_entries(content: bytes) -> bool:
    """Whether the key is damaged and there may be entries: without their key, they cannot be told from what was never acknowledged."""
    return content[PROOF] != _digest(content[KEY]) and any(content.startswith(SIGN, at) for at in range(PAGE, len(content), PAGE))


def _digest(start: bytes, key: bytes = b"") -> bytes:
    return hashlib.blake2b(start, digest_size=DIGEST, key=key).digest()
