"""Divides the log of a folder over the shards of a new cluster: each user's events in their order, and each item's in every log.

A joined visitor lives on the shard of the user from the beginning; the shard of the visitor's own name only knows where that is.

Events get new numbers, so decisions get new ids. Erased events have no user any more: their rows, and the
events that erased them, are in the first log, and their ids are recognised on every shard.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from albatross.core.sharing.exchange import check_shards
from albatross.service.engine.learned.options import policy_of
from albatross.service.engine.recovering.verifying import Verdict, verify
from albatross.service.storage.events import (
    Adopt,
    Decided,
    Event,
    Expire,
    Forget,
    Genesis,
    Joined,
    Rated,
    Reacted,
    decode,
    encode,
    is_shared,
)
from albatross.service.storage.folder import KEYS
from albatross.service.storage.handles import handles_of
from albatross.service.storage.mark import Head
from albatross.service.storage.migration import reading_log
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.log import copy_rows
from albatross.service.storage.postgres.session import CATALOGUE, Session, beginning
from albatross.service.storage.reading import Progress, nothing, read_events, read_genesis
from albatross.service.storage.store import NO_CHAIN, ReadableLog, Row, chained

ERASED_FROM = 0
"""The shard whose log has the erased rows, and the events that erased them."""


class Divided(NamedTuple):
    verdict: Verdict
    """The result of rebuilding the model from the folder."""
    events: list[int]
    """Number of events per shard."""


def divide(folder: Path, address: str, shards: int, progress: Progress = nothing) -> Divided:
    """Make a cluster of several shards from the log of a folder, with its keys. The folder is not changed. Makes all or nothing."""
    with reading_log(folder) as log:
        genesis = read_genesis(log, str(folder))
        check_shards(policy_of(genesis), shards)
        joins = {event.visitor: event.user for _, event in read_events(log, checked=False) if isinstance(event, Joined)}
        placing = Placing(shards, joins)
        counts = _counted(log, placing)
        verdict = verify(log, folder, genesis, progress)
        keys = (folder / KEYS).read_bytes() if (folder / KEYS).exists() else None
        genesis = replace(genesis, folder=secrets.token_hex(8), shards=shards)
        with beginning(address, shards, keys) as session:
            _Writing(session, log, genesis, counts, placing).write()
    return Divided(verdict, counts)


class Placing(NamedTuple):
    """Where users live."""

    shards: int
    joins: Mapping[str, str]
    """Whom each visitor was joined with."""

    def user_behind(self, name: str) -> str:
        while name in self.joins:
            name = self.joins[name]
        return name

    def home(self, name: str) -> int:
        return shard_of(self.user_behind(name), self.shards)

    def of(self, event: Event) -> Sequence[int]:
        """The shards whose logs get an event."""
        if isinstance(event, Genesis | Adopt):  # their content is in the first event of each log
            return ()
        if isinstance(event, Joined):
            return sorted({self.home(event.user), shard_of(event.visitor, self.shards)})
        if isinstance(event, Rated | Reacted | Decided):
            return (self.home(event.user),)
        return (ERASED_FROM,) if isinstance(event, Forget | Expire) else range(self.shards)


def _counted(log: ReadableLog, placing: Placing) -> list[int]:
    """Number of events per shard."""
    counts, known = [1] * placing.shards, 0
    for seq, event in read_events(log, checked=False):
        counts[ERASED_FROM] += seq - known - 1  # erased
        known = seq
        for shard in placing.of(event):
            counts[shard] += 1
    counts[ERASED_FROM] += log.head.seq - known
    return counts


class _Writing:
    """In a transaction: the logs of all shards, and the catalogue."""

    def __init__(self, session: Session, log: ReadableLog, genesis: Genesis, counts: Sequence[int], placing: Placing) -> None:
        self._session, self._log, self._shards, self._placing = session, log, genesis.shards, placing
        self._heads = {shard: Head(0, NO_CHAIN) for shard in (CATALOGUE, *range(genesis.shards))}
        self._numbers: NDArray[np.int64] = np.zeros(log.head.seq + 1, np.int64)
        """New numbers of events that other events may name, each in the log of its shard."""
        self._incarnation = secrets.token_hex(8)
        self._first = [
            Row(
                encode(
                    replace(genesis, shard=shard, users=[user for user in genesis.users if placing.home(user) == shard], inherited=count)
                )
            )
            for shard, count in enumerate(counts)
        ]

    def write(self) -> None:
        for shard, row in enumerate(self._first):
            self._append(shard, [row])
        for first, bodies in self._log.read():
            self._write_chunk(list(enumerate(bodies, start=first)))
        for emptied in self._emptied():
            for shard in range(self._shards):
                copy_rows(self._session, shard, (), [(handle, 1, b"") for handle in emptied])
        for visitor, user in self._placing.joins.items():
            self._session.execute("INSERT INTO albatross.joins VALUES (%s, %s)", (visitor.encode(), user.encode()))
        for shard, head in self._heads.items():
            self._session.execute("INSERT INTO albatross.shards (shard, seq, chain) VALUES (%s, %s, %s)", (shard, *head))
            if shard != CATALOGUE:
                self._session.execute("INSERT INTO albatross.followed VALUES (%s, %s, %s)", (shard, *self._heads[CATALOGUE]))

    def _write_chunk(self, rows: Sequence[tuple[int, bytes | None]]) -> None:
        events = [(seq, None if body is None else decode(body)) for seq, body in rows]
        contents = self._log.find_all([handle for _, event in events if event is not None for handle in handles_of(event)])
        lines: dict[int, list[Row]] = {shard: [] for shard in self._heads}
        for seq, event in events:
            if event is None:
                lines[ERASED_FROM].append(Row(None))
                self._numbers[seq] = self._heads[ERASED_FROM].seq + len(lines[ERASED_FROM])
                continue
            for shard in self._placing.of(event):
                number = self._heads[shard].seq + len(lines[shard]) + 1
                self._numbers[seq] = number
                moved = self._renumbered(event, number, shard)
                handles = [(new, contents[old].content) for new, old in zip(handles_of(moved), handles_of(event), strict=True)]
                lines[shard].append(Row(encode(moved), handles))
            if is_shared(encode(event)):
                lines[CATALOGUE].append(Row(encode(event)))
        for shard, found in lines.items():
            self._append(shard, found)

    def _append(self, shard: int, rows: Sequence[Row]) -> None:
        if rows:
            written = chained(self._heads[shard], rows)
            handles = [(handle, line[0], content) for row, line in zip(rows, written, strict=True) for handle, content in row.handles]
            copy_rows(self._session, shard, written, handles)
            self._heads[shard] = Head(written[-1][0], written[-1][3])

    def _renumbered(self, event: Event, number: int, shard: int) -> Event:
        """The same event, with references in new numbers."""
        if isinstance(event, Decided):
            return replace(event, model_seq=number - 1, incarnation=f"{self._incarnation}.{shard}")
        if isinstance(event, Rated):
            return replace(event, decision=self._number(event.decision))
        if isinstance(event, Reacted):
            return replace(event, decision=self._number(event.decision), replaces=self._number(event.replaces))
        if isinstance(event, Joined) and self._placing.home(event.user) != shard:
            return replace(event, user=self._placing.user_behind(event.user), away=True)
        if isinstance(event, Forget):
            return replace(event, erased=[int(self._numbers[seq]) for seq in event.erased])
        if isinstance(event, Expire):
            return replace(event, decisions=[replace(one, seq=int(self._numbers[one.seq])) for one in event.decisions])
        return event

    def _number(self, seq: int | None) -> int | None:
        return None if seq is None else int(self._numbers[seq])

    def _emptied(self) -> Iterator[list[bytes]]:
        """The handles of erased events: these must be recognised if they are sent again, to any shard."""
        for rows in self._log.handles():
            if found := [handle for handle, _, content in rows if not content]:
                yield found
