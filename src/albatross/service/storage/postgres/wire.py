"""Rows in PostgreSQL's binary format, made in one go: psycopg makes them value by value, which is the slowest part of an append."""

from collections.abc import Sequence
from struct import Struct

import numpy as np
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

from albatross.service.storage.store import Written

Kept = tuple[bytes, int, bytes]
"""Handle, row and content."""

OPENING = b"PGCOPY\n\xff\r\n\0" + bytes(8)
ENDING = b"\xff\xff"
LENGTH = Struct(">i")
NOTHING = LENGTH.pack(-1)
ROW = Struct(">hiiiq")
"""The number of fields, then shard and number, each with its length."""
HANDLE = Struct(">hiii")
SEQ = Struct(">iq")
ARRAY = Struct(">iiIii")
BYTEA, INT8, BYTEAS, INT8S = 17, 20, 1001, 1016
"""PostgreSQL's type numbers of bytes, whole numbers, and arrays of these."""


def copied_rows(shard: int, rows: Sequence[Written]) -> bytes:
    """Rows of a log for COPY in binary."""
    parts = [OPENING]
    for seq, body, digest, chain in rows:
        parts.append(ROW.pack(5, 4, shard, 8, seq))
        parts += (NOTHING,) if body is None else (LENGTH.pack(len(body)), body)
        parts += (LENGTH.pack(len(digest)), digest, LENGTH.pack(len(chain)), chain)
    parts.append(ENDING)
    return b"".join(parts)


def copied_handles(shard: int, handles: Sequence[Kept]) -> bytes:
    """Handles of a log for COPY in binary."""
    parts = [OPENING]
    for handle, seq, content in handles:
        parts += (HANDLE.pack(4, 4, shard, len(handle)), handle, SEQ.pack(8, seq), LENGTH.pack(len(content)), content)
    parts.append(ENDING)
    return b"".join(parts)


class Bytes(bytes):
    """An array of bytes, as PostgreSQL reads it."""


class Numbers(bytes):
    """An array of whole numbers, as PostgreSQL reads it."""


class _BytesDumper(Dumper):
    format, oid = Format.BINARY, BYTEAS

    def dump(self, obj: Bytes) -> Buffer | None:
        return obj


class _NumbersDumper(Dumper):
    format, oid = Format.BINARY, INT8S

    def dump(self, obj: Numbers) -> Buffer | None:
        return obj


DUMPERS = ((Bytes, _BytesDumper), (Numbers, _NumbersDumper))


def bytes_of(values: Sequence[bytes | None]) -> Bytes:
    """Bytes as one parameter of a statement."""
    parts = [ARRAY.pack(1, 1, BYTEA, len(values), 1)]
    for value in values:
        parts += (NOTHING,) if value is None else (LENGTH.pack(len(value)), value)
    return Bytes(b"".join(parts))


def numbers_of(values: Sequence[int]) -> Numbers:
    """Whole numbers as one parameter of a statement."""
    cells = np.empty(len(values), np.dtype([("length", ">i4"), ("value", ">i8")]))
    cells["length"], cells["value"] = 8, values
    return Numbers(ARRAY.pack(1, 0, INT8, len(values), 1) + cells.tobytes())
