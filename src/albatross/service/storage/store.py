"""What the engine needs of a log, in any database. Each row has a digest and is chained to the row before.

`digest` is the hash of the row's body; `chain` is the hash of the previous chain value and this digest. The body begins with random
bytes. When it is erased, its digest stays, so the chain still holds, and a guess of the content cannot be confirmed.
"""

import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

from albatross.core.errors import InvalidInput
from albatross.service.storage.events import digest_of_version
from albatross.service.storage.mark import Head

NO_CHAIN = bytes(16)
"""The chain value before the first row."""
SALT = 8
"""Random bytes before a body."""


class DamagedLog(InvalidInput):
    """The log differs from what was written. It is not served."""


class CatalogueMoved(Exception):
    """Another shard was first: with the catalogue, a message or a join. Nothing was written: read what is new, then decide again."""


class HandleTaken(Exception):
    """A handle of one of the rows is in the log already. Nothing was written: look for the handles, then decide again."""


class Row(NamedTuple):
    """A row to be written, with its handles. A later delivery with the same handle must have the same content."""

    body: bytes | None
    """None: it was erased before it was copied here."""
    handles: Sequence[tuple[bytes, bytes]] = ()
    parcels: Sequence[tuple[int, bytes]] = ()
    """Messages to other shards, sent if and only if the row is written."""


class Parcel(NamedTuple):
    """A message from another shard."""

    number: int
    catalogue: int
    """It names items up to this number of the catalogue."""
    content: bytes


class Found(NamedTuple):
    seq: int
    content: bytes
    """Empty only if the row was erased."""


class Base(NamedTuple):
    """One payload per shard that replaces all exchanged versions up to one."""

    version: int
    """The last version."""
    told: Sequence[int]
    """Per shard: the last version with a payload of it."""
    contents: Sequence[bytes | None]
    """Per shard: all its payloads merged into one; None if it has none."""

    @property
    def digest(self) -> str:
        return digest_of_version([*self.contents, " ".join(map(str, (self.version, *self.told))).encode()])


class ReadableLog(Protocol):
    """A log as it was at one time. Used by one thread."""

    @property
    def head(self) -> Head: ...
    @property
    def restored(self) -> int:
        """How many acknowledged events were missing at the end and come from the mark."""

    def find(self, handle: bytes) -> Found | None:
        """The row with this handle."""

    def find_all(self, handles: Sequence[bytes]) -> dict[bytes, Found]:
        """The rows with these handles, by handle, in few queries."""

    def body(self, seq: int) -> bytes | None:
        """The body of a row; None if there is no such row or it was erased."""

    def read(self, checked: bool = True) -> Iterator[tuple[int, list[bytes | None]]]:
        """All rows in chunks, each with the number of its first row. Raises `DamagedLog` at the first invalid row."""

    def rows(self) -> Iterator[list["Written"]]:
        """All rows in chunks as stored. Only missing rows are detected."""

    def chain_at(self, seq: int) -> bytes | None: ...
    def handles(self) -> Iterator[list[tuple[bytes, int, bytes]]]:
        """Handle, row and content, in chunks, in any order."""

    def version(self, number: int) -> Sequence[bytes | None]:
        """The payloads of a version, one per shard; None for a shard that is not part of it. Only a sharded log has versions."""

    def base_version(self) -> int:
        """The last version that the base replaces; 0 without a base."""

    def base(self, version: int) -> Base:
        """The base of that version."""

    def close(self) -> None: ...


class Store(ReadableLog, Protocol):
    """A durable log for writing. It raises `DiskFull` (nothing was written) or `StorageFailed` (then the engine must stop)."""

    @property
    def refuses_taken(self) -> bool:
        """Whether `append` raises `HandleTaken`. Otherwise every handle must be looked for first."""

    @property
    def beat(self) -> float | None:
        """Seconds between two calls of `keep`, also while nothing is written; None: it need not be called."""

    def keep(self) -> None:
        """Periodic work. Raises `StorageFailed` if nothing could be written any more."""

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows after the head, all or none. They are durable when this returns."""

    def erase(self, rows: Sequence[tuple[int, Sequence[bytes]]], tombstone: Row, private: bool = True) -> None:
        """Erase the bodies of rows, the contents of their first handles and all other handles; append the tombstone. All or nothing.

        If `private`, the content also leaves the journal and the pages of the file at once. Otherwise its space is reused later.
        """

    def flush(self) -> None:
        """Make everything durable in the log itself, also what was appended with relaxed durability."""

    def size(self) -> int | None:
        """The size of the log in bytes, if it is known."""


class FollowingStore(Store, Protocol):
    """The log of one shard of several. Its catalogue events are copied from a log that all shards share, in the same order.

    `append` raises `CatalogueMoved` if there are catalogue events among the rows and another shard has written first.
    """

    @property
    def followed(self) -> int:
        """How many catalogue events are in this log."""

    def begin_from(self, version: int, row: Row) -> None:
        """From here on the log is replayed with the base of that version; the row records this."""

    def follow(self) -> Sequence[Row]:
        """Copy the next catalogue events to this log and return them. Empty: all of them are here."""

    def user_behind(self, name: str) -> str:
        """The user whom a name stands for, by the joins on all shards."""

    def parcels(self) -> Sequence[Parcel]:
        """The messages for this shard that wait, in order."""

    def take(self, parcel: Parcel, rows: Sequence[Row], onward: Sequence[tuple[int, bytes]] = ()) -> None:
        """Write what a message brings, or pass it on, and remove it. All or nothing."""

    def forget(self, rows: Sequence[tuple[int, Sequence[bytes]]], tombstone: Row, names: Sequence[str], taken: Parcel | None) -> None:
        """Like `erase`; also drop the joins of these users, and remove the message that demanded it, if one did."""


def digest_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()


Written = tuple[int, bytes | None, bytes, bytes]
"""Number, salted body, digest and chain."""
Handle = tuple[bytes, int, bytes]
"""A handle, its row, and the content."""


def chained(head: Head, rows: Sequence[Row]) -> list[Written]:
    """Rows as they stand in the log after a head."""
    seq, chain = head
    noise = os.urandom(16 * len(rows))
    written: list[Written] = []
    for position, row in enumerate(rows):
        body = row.body
        digest = noise[16 * position : 16 * position + 16]
        if body is not None:
            body = digest[:SALT] + body
            digest = blake2b(body, digest_size=16).digest()
        seq, chain = seq + 1, blake2b(chain + digest, digest_size=16).digest()
        written.append((seq, body, digest, chain))
    return written


def check_rows(where: str, chain: bytes, rows: Sequence[Written]) -> bytes:
    """The chain value after some rows. Raises `DamagedLog` at the first invalid row."""
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
    """Refuse a log that ends before its mark: the missing events were acknowledged."""
    if mark is None:
        raise DamagedLog(
            f"{where}: the mark of the log's head is missing or damaged, so it is unknown whether events are missing. "
            f"The log ends at event {log.head.seq}. To go on with what there is: albatross doctor {where} --accept-loss"
        )
    if mark.seq > log.head.seq:
        raise DamagedLog(
            f"{where} is damaged: the log ends at event {log.head.seq}, but events up to {mark.seq} were acknowledged. "
            f"Keep a copy; a backup may have them. To go on without them: albatross doctor {where} --accept-loss"
        )
    if log.chain_at(mark.seq) != mark.chain:
        raise DamagedLog(f"{where} is damaged: event {mark.seq} is not the one that was acknowledged")
