"""Whether the journal that SQLite keeps beside the log was damaged, which SQLite itself does not say.

SQLite ends reading the journal silently at the first frame that does not add up: after a crash, that is the transaction being
written. But a flipped bit further up would silently drop transactions that were acknowledged. Each commit is synchronised
before the next begins, so two whole commits behind a bad frame prove that the first of them was on disk: damage, not a crash.
"""

import struct
from pathlib import Path

from albatross.core.errors import InvalidInput

HEADER, FRAME = 32, 24
"""Bytes of the journal's header and of the header of each frame."""
MAGIC = (0x377F0682, 0x377F0683)
"""The last bit says in which byte order words are summed."""


class DamagedJournal(InvalidInput):
    """Acknowledged transactions in the journal cannot be read any more."""


def check_journal(database: Path) -> None:
    """Refuse a journal in which committed transactions stand behind a damaged frame."""
    path = database.with_name(database.name + "-wal")
    content = path.read_bytes() if path.exists() else b""
    if len(content) <= HEADER:
        return
    magic, _, page_size, _, *_ = struct.unpack_from(">4I", content)
    salt = content[16:24]
    sound_header = magic in MAGIC and _sum(content[:24], magic & 1, (0, 0)) == struct.unpack_from(">2I", content, 24)
    if not sound_header:
        if content[:HEADER].strip(b"\0"):
            raise DamagedJournal(f"{path} is damaged at its beginning: acknowledged events may be in it. Keep a copy before anything else")
        return
    size = FRAME + (65536 if page_size == 1 else page_size)
    sums: tuple[int, int] = struct.unpack_from(">2I", content, 24)
    bad: int | None = None
    commits_behind = 0
    for number, start in enumerate(range(HEADER, len(content) - size + 1, size)):
        header = content[start : start + FRAME]
        if bad is None:
            if header[8:16] == salt:
                sums = _sum(content[start + FRAME : start + size], magic & 1, _sum(header[:8], magic & 1, sums))
                if sums == struct.unpack_from(">2I", header, 16):
                    continue
            bad = number
        if header[8:16] == salt and number > bad and struct.unpack_from(">I", header, 4)[0]:
            commits_behind += 1
    if commits_behind >= 2:
        raise DamagedJournal(
            f"{path} is damaged at frame {bad + 1 if bad is not None else 0}: at least {commits_behind - 1} later transactions were "
            "acknowledged and cannot be read. Keep a copy before anything else"
        )


def _sum(content: bytes, big_endian: int, start: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of a multiple of eight bytes."""
    first, second = start
    words = struct.unpack(f"{'>' if big_endian else '<'}{len(content) // 4}I", content)
    for position in range(0, len(words), 2):
        first = (first + words[position] + second) & 0xFFFFFFFF
        second = (second + words[position + 1] + first) & 0xFFFFFFFF
    return first, second
