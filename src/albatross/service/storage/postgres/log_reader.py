"""Reading the log of one shard in PostgreSQL, whoever writes it."""

from collections.abc import Iterator, Sequence

from albatross.service.storage.mark import Head
from albatross.service.storage.postgres.bases import base_version_of, read_base
from albatross.service.storage.postgres.session import Session, connect, name_of, shards_of, understood
from albatross.service.storage.postgres.wire import Kept
from albatross.service.storage.store import NO_CHAIN, SALT, Base, DamagedLog, Found, Written, check_rows, digest_of

CHUNK = 10_000
"""Rows read at a time."""


class PostgresReader:
    """A log as it was when it was opened; its owner may go on writing."""

    restored = 0

    def __init__(self, address: str, shard: int = 0, marked: bool = True) -> None:
        """`marked`: refuse a log that does not end where its head says."""
        self.where, self.shard = name_of(address), shard
        self._session: Session = connect(address, application_name="albatross reader")
        try:
            with understood(self.where):
                self._session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")  # every query sees the same snapshot
            self._head = self._checked_head() if marked else self._last()
        except BaseException:
            self._session.close()
            raise

    def _last(self) -> Head:
        with understood(self.where):
            last = self._session.execute(
                "SELECT seq, chain FROM albatross.log WHERE shard = %s ORDER BY seq DESC LIMIT 1", (self.shard,)
            ).fetchone()
        return Head(0, NO_CHAIN) if last is None else Head(*last)

    def _checked_head(self) -> Head:
        """The last row, which must be the last one committed."""
        head = self._last()
        with understood(self.where):
            marked = self._session.execute("SELECT seq, chain FROM albatross.shards WHERE shard = %s", (self.shard,)).fetchone()
        if marked is None:
            raise DamagedLog(f"{self.where} is damaged: there is no head of shard {self.shard}")
        if Head(*marked) != head:
            alone = shards_of(self._session, self.where) == 1
            how = f"To go on with what there is: albatross doctor {self.where} --accept-loss" if alone else "No command can mend this"
            raise DamagedLog(
                f"{self.where} is damaged: the log {'' if alone else f'of shard {self.shard} '}ends at event {head.seq}, "
                f"but events up to {marked[0]} were acknowledged. Keep a copy; a backup may have them. {how}"
            )
        return head

    @property
    def head(self) -> Head:
        return self._head

    def find(self, handle: bytes) -> Found | None:
        return self.find_all([handle]).get(handle)

    def find_all(self, handles: Sequence[bytes]) -> dict[bytes, Found]:
        if not handles:
            return {}
        with understood(self.where):
            rows = self._session.execute(
                "SELECT handle, seq, content FROM albatross.handles WHERE shard = %b AND handle = ANY(%b)",
                (self.shard, list(handles)),
                prepare=True,
                binary=True,
            ).fetchall()
        return {handle: Found(seq, content) for handle, seq, content in rows}

    def body(self, seq: int) -> bytes | None:
        with understood(self.where):
            found = self._session.execute(
                "SELECT body, digest FROM albatross.log WHERE shard = %b AND seq = %b", (self.shard, seq), prepare=True, binary=True
            ).fetchone()
        if found is None or found[0] is None:
            return None
        if digest_of(found[0]) != found[1]:
            raise DamagedLog(f"{self.where} is damaged at event {seq}: its content does not have the digest that was kept with it")
        return bytes(found[0][SALT:])

    def chain_at(self, seq: int) -> bytes | None:
        if seq == 0:
            return NO_CHAIN
        with understood(self.where):
            found = self._session.execute("SELECT chain FROM albatross.log WHERE shard = %s AND seq = %s", (self.shard, seq)).fetchone()
        return None if found is None else bytes(found[0])

    def handles(self) -> Iterator[list[Kept]]:
        last = b""
        while True:
            with understood(self.where):
                rows: list[Kept] = self._session.execute(
                    "SELECT handle, seq, content FROM albatross.handles WHERE shard = %b AND handle > %b ORDER BY handle LIMIT %b",
                    (self.shard, last, CHUNK),
                    binary=True,
                ).fetchall()
            if not rows:
                return
            yield rows
            last = rows[-1][0]

    def version(self, number: int) -> Sequence[bytes | None]:
        with understood(self.where):
            rows = self._session.execute(
                """SELECT content FROM albatross.about, generate_series(0, shards - 1) AS every
                LEFT JOIN albatross.payloads ON shard = every AND version = %b ORDER BY every""",
                (number,),
                prepare=True,
                binary=True,
            ).fetchall()
        return [row[0] for row in rows]

    def base_version(self) -> int:
        with understood(self.where):
            return base_version_of(self._session, self.shard)

    def base(self, version: int) -> Base:
        with understood(self.where):
            return read_base(self._session, version, self.where)

    def rows(self) -> Iterator[list[Written]]:
        before = 0
        while True:
            with understood(self.where):
                rows: list[Written] = self._session.execute(
                    "SELECT seq, body, digest, chain FROM albatross.log WHERE shard = %b AND seq > %b ORDER BY seq LIMIT %b",
                    (self.shard, before, CHUNK),
                    binary=True,
                ).fetchall()
            if not rows:
                break
            for expected, row in enumerate(rows, start=before + 1):
                if row[0] != expected:
                    raise DamagedLog(f"{self.where} is damaged at event {expected}: it is missing")
            yield rows
            before += len(rows)
        if before != self._head.seq:
            raise DamagedLog(f"{self.where} is damaged behind event {before}: {self._head.seq} events were expected")

    def read(self, checked: bool = True) -> Iterator[tuple[int, list[bytes | None]]]:
        chain = NO_CHAIN
        for rows in self.rows():
            if checked:
                chain = check_rows(self.where, chain, rows)
            yield rows[0][0], [None if row[1] is None else row[1][SALT:] for row in rows]

    def close(self) -> None:
        self._session.close()
