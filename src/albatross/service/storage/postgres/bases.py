"""Bases: one content per shard that replaces all exchanged payloads up to a version.

A base is made, then every shard begins from it at its own pace, and then the payloads that it replaces are removed. After a crash,
the tables tell how far this was.
"""

import contextlib
from collections.abc import Iterator

from psycopg.errors import LockNotAvailable

from albatross.core.errors import InvalidInput
from albatross.service.storage.postgres.session import Session, make_if_missing
from albatross.service.storage.store import Base, DamagedLog

TABLES = (
    """CREATE TABLE IF NOT EXISTS albatross.bases (
        version bigint, shard integer, told bigint NOT NULL, content bytea, PRIMARY KEY (version, shard)
    )""",
    "ALTER TABLE albatross.bases ALTER COLUMN content SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS albatross.based (shard integer PRIMARY KEY, version bigint NOT NULL)",
)
"""`based`: the base by which the log of a shard is to be understood."""

MOST_BYTES = 2**30 - 2**20
"""Of one value in PostgreSQL."""
CHUNK = 100
"""Versions read at a time."""
PATIENCE = "5s"
"""How long to wait for those who read payloads, before their room is left for new ones instead of given back."""

NEWER = """
SELECT coalesce((SELECT max(version) FROM albatross.bases), 0), coalesce((SELECT version FROM albatross.based WHERE shard = %b), 0)
"""
BEGIN = """
INSERT INTO albatross.based VALUES (%s, %s) ON CONFLICT (shard) DO UPDATE SET version = EXCLUDED.version
"""
BEHIND = """
SELECT shard FROM albatross.shards LEFT JOIN albatross.based USING (shard) WHERE shard >= 0 AND coalesce(version, 0) < %s ORDER BY shard
"""
REMOVE = """
DELETE FROM albatross.payloads AS one
WHERE version <= %s AND version < (SELECT max(version) FROM albatross.payloads WHERE shard = one.shard)
"""
"""The last payload of a shard stays: its version is needed for the next one."""


def make_bases(session: Session) -> None:
    """Make the tables if they are missing: the cluster may be older than they are."""
    make_if_missing(session, "albatross.based", TABLES)


def base_version_of(session: Session, shard: int) -> int:
    if session.execute("SELECT to_regclass('albatross.based') IS NULL", prepare=True).fetchone() == (True,):
        return 0
    found = session.execute("SELECT version FROM albatross.based WHERE shard = %s", (shard,)).fetchone()
    return 0 if found is None else int(found[0])


def read_base(session: Session, version: int, where: str) -> Base:
    rows = session.execute(
        "SELECT told, content FROM albatross.bases WHERE version = %b ORDER BY shard", (version,), binary=True
    ).fetchall()
    if not rows:
        raise DamagedLog(f"{where} is damaged: the base of version {version} is missing")
    return Base(version, [row[0] for row in rows], [row[1] for row in rows])


def write_base(session: Session, base: Base) -> None:
    """In a transaction: store a new base, for shards to begin from."""
    for shard, (told, content) in enumerate(zip(base.told, base.contents, strict=True)):
        if content is not None and len(content) > MOST_BYTES:
            raise InvalidInput(
                f"the base of shard {shard} has {len(content):,} bytes; accepted: at most {MOST_BYTES:,}, the limit of PostgreSQL"
            )
        session.execute("INSERT INTO albatross.bases VALUES (%b, %b, %b, %b)", (base.version, shard, told, content), binary=True)


def payloads_between(session: Session, after: int, until: int) -> Iterator[tuple[int, int, bytes]]:
    """Version, shard and content of each payload after one version, up to another, in the order in which they are folded."""
    for first in range(after + 1, until + 1, CHUNK):
        yield from session.execute(
            "SELECT version, shard, content FROM albatross.payloads WHERE version BETWEEN %b AND %b ORDER BY version, shard",
            (first, min(first + CHUNK - 1, until)),
            binary=True,
        ).fetchall()


def remove_payloads(session: Session, version: int) -> int:
    """Remove the payloads that a base replaces, and older bases; every shard has begun from it. Returns the number of payloads."""
    with session.transaction():
        removed = session.execute(REMOVE, (version,)).rowcount
        session.execute("DELETE FROM albatross.bases WHERE version < %s", (version,))
    for table in ("payloads", "bases"):
        session.execute("SELECT set_config('lock_timeout', %s, false)", (PATIENCE,))
        try:
            session.execute(f"VACUUM FULL albatross.{table}")  # few rows are left to rewrite
        except LockNotAvailable:
            with contextlib.suppress(LockNotAvailable):
                session.execute(f"VACUUM albatross.{table}")
    return removed


def payload_bytes(session: Session) -> int:
    """The disk space of payloads and bases."""
    found = session.execute("SELECT pg_total_relation_size('albatross.payloads') + pg_total_relation_size('albatross.bases')").fetchone()
    return 0 if found is None else int(found[0])
