"""What the engine needs of a log, whatever database keeps it. Rows are checked one by one and chained to the row before.

A row holds `digest`, the hash of its body, and `chain`, the hash of the chain before it and its digest. The body begins with
random bytes: when it is erased, its digest stays, so that the chain still holds, and nobody can confirm a guess of what it was.
"""

import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

from albatross.core.errors import InvalidInput
from albatross.service.storage.events import digest_of_version
from albatross.service.storage.mark import Head

NO_CHAIN = bytes(16)
"""What the first row is chained to."""
SALT = 8
"""Random bytes in front of a body."""


class DamagedLog(InvalidInput):
    """The log cannot be what was written. Nothing is served from it."""


class CatalogueMoved(Exception):
    """Another shard has written to the catalogue first. Nothing of this was kept: follow it, then decide again."""


class Row(NamedTuple):
    """A row to be written. It can be found by its handles; the content of each is what another delivery must agree with."""

    body: bytes | None
    """None: erased before it came here."""
    handles: Sequence[tuple[bytes, bytes]] = ()


class Found(NamedTuple):
    seq: int
    content: bytes
    """Never empty, but where the row was erased."""


class Base(NamedTuple):
    """What stands for the first versions of what shards exchange."""

    version: int
    """The last of them."""
    told: Sequence[int]
    """Per shard: the last of them that has a payload of it."""
    contents: Sequence[bytes | None]
    """Per shard: all its payloads as one; none where it has none."""

    @property
    def digest(self) -> str:
        return digest_of_version([*self.contents, " ".join(map(str, (self.version, *self.told))).encode()])


class ReadableLog(Protocol):
    """A log as it was at one moment. Used by one thread."""

    @property
    def head(self) -> Head: ...
    def find(self, handle: bytes) -> Found | None:
        """The row with this handle."""

    def find_all(self, handles: Sequence[bytes]) -> dict[bytes, Found]:
        """The rows with these handles, by handle; in one question."""

    def body(self, seq: int) -> bytes | None:
        """The body of a row; none where there is no such row, or it was erased."""

    def read(self, checked: bool = True) -> Iterator[tuple[int, list[bytes | None]]]:
        """All rows in chunks, each with the number of its first. Raises `DamagedLog` at the first that does not fit."""

    def rows(self) -> Iterator[list["Written"]]:
        """The same as they stand in the log. That none is missing is checked, and nothing else."""

    def chain_at(self, seq: int) -> bytes | None: ...
    def handles(self) -> Iterator[list[tuple[bytes, int, bytes]]]:
        """Handle, row and content, in chunks, in any order."""

    def version(self, number: int) -> Sequence[bytes | None]:
        """The payloads of a version, one per shard; none of a shard that is not part of it. Only a log of one shard of several has any."""

    def base_version(self) -> int:
        """Up to which version one payload per shard stands for all; 0: there is no such base."""

    def base(self, version: int) -> Base:
        """The base of that version."""

    def close(self) -> None: ...


class Store(ReadableLog, Protocol):
    """A durable log that can be written to. What it raises is a `DiskFull`, and nothing was kept, or a `StorageFailed`: then it ends."""

    @property
    def beat(self) -> float | None:
        """Seconds between two calls of `keep`, also while nothing is written; none: it is not needed."""

    def keep(self) -> None:
        """What is to be done from time to time. Raises `StorageFailed` where nothing could be written any more."""

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows behind the head, all or none. When this returns they are durable."""

    def erase(self, rows: Sequence[tuple[int, Sequence[bytes]]], tombstone: Row, private: bool = True) -> None:
        """Remove the bodies of rows, the contents of their first handles and the others, and append the tombstone, all or nothing.

        What is private also leaves the journal and the pages of the file at once; else its room is used again in time.
        """

    def flush(self) -> None:
        """Make durable what was appended with relaxed durability."""

    def size(self) -> int | None:
        """Bytes that the log takes, as far as that can be told."""


class FollowingStore(Store, Protocol):
    """The log of one shard of several: its events of the catalogue are those of a log that all shards share, in the order of that.

    Its `append` raises `CatalogueMoved` where there are such events among the rows, and another shard was quicker.
    """

    @property
    def followed(self) -> int:
        """How many events of the catalogue are in this log."""

    def begin_from(self, version: int, row: Row) -> None:
        """From here on the log is to be understood by the base of that version; the row says so."""

    def follow(self) -> Sequence[Row]:
        """Copy the next events of the catalogue behind the head; returns them. None: all of them are here."""


def digest_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()


Written = tuple[int, bytes | None, bytes, bytes]
"""Number, salted body, digest and chain."""


def chained(head: Head, rows: Sequence[Row]) -> list[Written]:
    """Rows as they stand in the log behind a head."""
    seq, chain = head
    noise = os.urandom(16 * len(rows))
    written: list[Written] = []
    for position, (body, _) in enumerate(rows):
        digest = noise[16 * position : 16 * position + 16]
        if body is not None:
            body = digest[:SALT] + body
            digest = blake2b(body, digest_size=16).digest()
        seq, chain = seq + 1, blake2b(chain + digest, digest_size=16).digest()
        written.append((seq, body, digest, chain))
    return written


def check_rows(where: str, chain: bytes, rows: Sequence[Written]) -> bytes:
    """The chain behind some rows. Raises `DamagedLog` at the first row that does not fit."""
    seq = 0
    try:
        for seq, body, digest, kept in rows:
            if body is not None and blake2b(body, digest_size=16).digest() != digest:
                raise DamagedLog(f"{where} is damaged at event {seq}: its content does not have the digest that was kept with it")
            chain = blake2b(chain + digest, digest_size=16).digest()
            if chain != kept:
                raise DamagedLog(f"{where} is damaged at event {seq}: it is not chained to the event before")
    except TypeError as error:
        raise DamagedLog(f"{where} is damaged at event {seq}: {error}") from error
    return chain


def check_mark(where: str, mark: Head | None, log: ReadableLog) -> None:
    """Refuse a log that ends before its mark: what is missing was acknowledged."""
    if mark is None:
        raise DamagedLog(
            f"{where}: the mark of the log's head is missing or damaged, so nobody can tell whether events are missing. "
            f"The log ends at event {log.head.seq}. To go on with what there is: albatross doctor {where} --accept-loss"
        )
    if mark.seq > log.head.seq:
        raise DamagedLog(
            f"{where} is damaged: the log ends at event {log.head.seq}, but events up to {mark.seq} were acknowledged. "
            f"Keep a copy; a backup may have them. To go on without them: albatross doctor {where} --accept-loss"
        )
    if log.chain_at(mark.seq) != mark.chain:
        raise DamagedLog(f"{where} is damaged: event {mark.seq} is not the one that was acknowledged")
