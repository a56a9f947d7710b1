"""The log of one shard of several. It contains a copy of the catalogue's events, in the catalogue's order.

A shard sends messages to others in the transaction that writes its own events. The other shard removes a message in the transaction that
writes what it brings. So a message counts once, whatever dies in between.

The catalogue is a separate log without an owner. A shard that writes an event of the catalogue names the head it knows, in the
transaction that writes to its own log. If another shard was first, nothing is kept, and this shard copies the new events first.
"""

import contextlib
from collections.abc import Sequence

from albatross.service.storage.events import Joined, decode, is_join, is_shared
from albatross.service.storage.handles import handles_of
from albatross.service.storage.mark import Head
from albatross.service.storage.migration import ANSWERED
from albatross.service.storage.postgres.bases import BEGIN
from albatross.service.storage.postgres.lease import fenced
from albatross.service.storage.postgres.log import PostgresLog, copy_rows
from albatross.service.storage.postgres.log_reader import CHUNK, PostgresReader
from albatross.service.storage.postgres.session import CATALOGUE, CHANNEL, MOVING, beginning, make_if_missing, understood
from albatross.service.storage.store import NO_CHAIN, SALT, CatalogueMoved, DamagedLog, Parcel, Row, Written, chained, check_rows

JOINING = 7_020_241_120
"""The advisory lock for joining two users."""
SEND = "INSERT INTO albatross.parcels (shard, catalogue, content) VALUES (%b, %b, %b)"
PARCELS = "SELECT number, catalogue, content FROM albatross.parcels WHERE shard = %b ORDER BY number LIMIT 100"
BEHIND = """
WITH RECURSIVE chain AS (
    SELECT known_as, 1 AS step FROM albatross.joins WHERE visitor = %s
    UNION ALL SELECT next.known_as, step + 1 FROM albatross.joins AS next JOIN chain ON next.visitor = chain.known_as
)
SELECT known_as FROM chain ORDER BY step DESC LIMIT 1
"""


class ShardLog(PostgresLog):
    """A log whose events of the catalogue are also written to the catalogue."""

    def __init__(self, address: str, shard: int, durable: bool = True) -> None:
        super().__init__(address, shard, durable)
        try:
            with understood(self.where):
                make_if_missing(self._session, "albatross.parcels", MOVING)
            self._followed = self._read_followed()
        except BaseException:
            self.close()
            raise

    def _read_followed(self) -> Head:
        with understood(self.where):
            found = self._session.execute("SELECT seq, chain FROM albatross.followed WHERE shard = %s", (self.shard,)).fetchone()
        if found is None:
            raise DamagedLog(f"{self.where} is damaged: it is not recorded how far shard {self.shard} has copied the catalogue")
        return Head(*found)

    def append(self, rows: Sequence[Row], first: object = None) -> None:
        """Raises `CatalogueMoved` if other shards hear of these rows, and one of them was first."""
        shared = [Row(row.body) for row in rows if is_shared(row.body)]
        parcels = [parcel for row in rows for parcel in row.parcels]
        joins = [decode(row.body) for row in rows if row.body is not None and is_join(row.body)]
        if not shared and not parcels and not joins:
            super().append(rows)
            return
        entries = chained(self._followed, shared)

        def tell() -> None:
            if entries:
                self._extend(entries)
            for event in joins:
                assert isinstance(event, Joined)
                self._join(event.visitor, event.user)
            if parcels and self.parcels():  # a user may have been forgotten
                raise CatalogueMoved
            self._send(parcels, _head_of(entries).seq if entries else self._followed.seq)

        super().append(rows, tell)
        self._followed = _head_of(entries) if entries else self._followed

    def _join(self, visitor: str, user: str) -> None:
        """In a transaction: two users become one, if neither is another one already. So there are no circles."""
        self._session.execute("SELECT pg_advisory_xact_lock(%s)", (JOINING,))
        names = [visitor.encode(), user.encode()]
        if self._session.execute("SELECT FROM albatross.joins WHERE visitor = ANY(%s)", (names,)).fetchone() is not None:
            raise CatalogueMoved
        self._session.execute("INSERT INTO albatross.joins VALUES (%s, %s)", names)

    def _send(self, parcels: Sequence[tuple[int, bytes]], catalogue: int) -> None:
        for shard, content in parcels:
            self._session.execute(SEND, (shard, catalogue, content))
        if parcels:
            self._session.execute(f"NOTIFY {CHANNEL}")

    def user_behind(self, name: str) -> str:
        with understood(self.where):
            found = self._session.execute(BEHIND, (name.encode(),)).fetchone()
        return name if found is None else bytes(found[0]).decode()

    def parcels(self) -> list[Parcel]:
        with understood(self.where):
            return [Parcel(*row) for row in self._session.execute(PARCELS, (self.shard,), prepare=True, binary=True).fetchall()]

    def take(self, parcel: Parcel, rows: Sequence[Row], onward: Sequence[tuple[int, bytes]] = ()) -> None:
        def tell() -> None:
            self._remove(parcel)
            self._send(onward, parcel.catalogue)

        if rows:
            super().append(rows, tell)
            return
        self._check_lease()
        with self._committing(), self._session.transaction():
            tell()
            self._own(self._head)

    def _remove(self, parcel: Parcel) -> None:
        removed = self._session.execute("DELETE FROM albatross.parcels WHERE number = %s AND shard = %s", (parcel.number, self.shard))
        if removed.rowcount != 1:  # another owner of this shard has taken it
            raise fenced(self.where)

    def forget(self, rows: Sequence[tuple[int, Sequence[bytes]]], tombstone: Row, names: Sequence[str], taken: Parcel | None) -> None:
        def tell() -> None:
            if taken is not None:
                self._remove(taken)
            self._session.execute("DELETE FROM albatross.joins WHERE visitor = ANY(%s)", ([name.encode() for name in names],))
            self._send(tombstone.parcels, self._followed.seq)

        self.erase(rows, tombstone, first=tell)

    def _extend(self, entries: Sequence[Written]) -> None:
        """In a transaction: write to the catalogue, if it ends where this shard expects."""
        moved = self._session.execute(
            "UPDATE albatross.shards SET seq = %s, chain = %s WHERE shard = %s AND seq = %s AND chain = %s",
            (*_head_of(entries), CATALOGUE, *self._followed),
        )
        if moved.rowcount != 1:
            raise CatalogueMoved
        copy_rows(self._session, CATALOGUE, entries, ())
        self._note(_head_of(entries))

    def _note(self, followed: Head) -> None:
        self._session.execute("UPDATE albatross.followed SET seq = %s, chain = %s WHERE shard = %s", (*followed, self.shard))

    @property
    def followed(self) -> int:
        """The number of events of the catalogue in this log."""
        return self._followed.seq

    def begin_from(self, version: int, row: Row) -> None:
        super().append([row], lambda: self._begin(version))

    def _begin(self, version: int) -> None:
        self._session.execute(BEGIN, (self.shard, version))

    def follow(self) -> list[Row]:
        """Copy the next events of the catalogue to this log; returns them. An empty list: there are no more."""
        with understood(self.where):
            entries: list[Written] = self._session.execute(
                "SELECT seq, body, digest, chain FROM albatross.log WHERE shard = %b AND seq > %b ORDER BY seq LIMIT %b",
                (CATALOGUE, self._followed.seq, CHUNK),
                prepare=True,
                binary=True,
            ).fetchall()
        if not entries:
            return []
        check_rows(f"{self.where}, catalogue,", self._followed.chain, entries)
        rows = []
        for _, body, _, _ in entries:
            assert body is not None  # nothing of the catalogue is ever erased
            rows.append(Row(body[SALT:], [(handle, ANSWERED) for handle in handles_of(decode(body[SALT:]))]))
        super().append(rows, lambda: self._note(_head_of(entries)))
        self._followed = _head_of(entries)
        return rows


def _head_of(entries: Sequence[Written]) -> Head:
    return Head(entries[-1][0], entries[-1][3])


def create_shards(address: str, first: Sequence[Row]) -> None:
    """Make the tables of several shards, each with its first event, and an empty catalogue. Makes all or nothing."""
    with beginning(address, len(first)) as session:
        session.execute("INSERT INTO albatross.shards (shard, seq, chain) VALUES (%s, 0, %s)", (CATALOGUE, NO_CHAIN))
        for shard, row in enumerate(first):
            written = chained(Head(0, NO_CHAIN), [row])
            copy_rows(session, shard, written, ())
            session.execute("INSERT INTO albatross.shards (shard, seq, chain) VALUES (%s, %s, %s)", (shard, *_head_of(written)))
            session.execute("INSERT INTO albatross.followed VALUES (%s, 0, %s)", (shard, NO_CHAIN))


def check_copied(address: str, shard: int) -> int:
    """Refuse a shard whose events of the catalogue differ from the catalogue. Returns their number."""
    with contextlib.closing(PostgresReader(address, shard)) as log:
        copied = [body for _, bodies in log.read(checked=False) for body in bodies if is_shared(body)]
    with contextlib.closing(PostgresReader(address, CATALOGUE)) as catalogue:  # opened later, so it has them all
        position = 0
        for first, bodies in catalogue.read():
            for number, body in enumerate(bodies[: len(copied) - position], start=first):
                if copied[number - 1] != body:
                    raise DamagedLog(f"shard {shard} is damaged: its copy of event {number} of the catalogue is a different event")
            position = min(len(copied), position + len(bodies))
    if position < len(copied):
        raise DamagedLog(f"shard {shard} is damaged: it has {len(copied)} events of the catalogue, which has {position}")
    return position
