"""Connections to PostgreSQL, its tables, and its errors as errors of the log."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.errors import DataCorrupted, IndexCorrupted

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import StorageFailed
from albatross.service.storage.events import FORMAT
from albatross.service.storage.store import DamagedLog


class NotNow(InvalidInput):
    """The database does not answer, or another process owns the shard. A later try may succeed."""


OLDEST = 13
"""The oldest accepted version of PostgreSQL."""

Session = psycopg.Connection[tuple[Any, ...]]

PATIENCE = {"connect_timeout": 10, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
"""Defaults of a connection, unless the address says otherwise: a network that is silently lost is noticed within about ten seconds."""

KEYS = (
    "CREATE SCHEMA IF NOT EXISTS albatross",
    "CREATE TABLE IF NOT EXISTS albatross.keys (revision bigint NOT NULL, document bytea NOT NULL)",
)
"""Keys may be made before there is a log. The row exists after the first key."""

TABLES = (
    *KEYS,
    "CREATE TABLE albatross.about (format integer NOT NULL, shards integer NOT NULL)",
    """CREATE TABLE albatross.shards (
        shard integer PRIMARY KEY,
        seq bigint NOT NULL,
        chain bytea NOT NULL,
        epoch bigint NOT NULL DEFAULT 0,
        owner text NOT NULL DEFAULT '',
        until timestamptz NOT NULL DEFAULT 'epoch'
    ) WITH (fillfactor = 10)""",
    """CREATE TABLE albatross.log (
        shard integer, seq bigint, body bytea, digest bytea NOT NULL, chain bytea NOT NULL, PRIMARY KEY (shard, seq)
    )""",
    """CREATE TABLE albatross.handles (
        shard integer, handle bytea, seq bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (shard, handle)
    )""",
)
"""`shards` has the head of each log and its lease in one row: an append changes both or nothing. Its pages have space for that."""

CHANNEL = "albatross_versions"
"""Where shards are told that there is something new for them."""
CATALOGUE = -1
"""The number of the catalogue, in place of a shard's."""

SEVERAL = (
    "CREATE TABLE albatross.followed (shard integer PRIMARY KEY, seq bigint NOT NULL, chain bytea NOT NULL)",
    """CREATE UNLOGGED TABLE albatross.waiting (
        shard integer PRIMARY KEY, after bigint NOT NULL, catalogue bigint NOT NULL, content bytea NOT NULL,
        at timestamptz NOT NULL DEFAULT clock_timestamp()
    )""",
    """CREATE TABLE albatross.payloads (
        version bigint, shard integer, catalogue bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (version, shard)
    )""",
    "ALTER TABLE albatross.waiting ALTER COLUMN content SET STORAGE EXTERNAL",
    "CREATE INDEX payloads_of_shard ON albatross.payloads (shard, version)",
    "ALTER TABLE albatross.payloads ALTER COLUMN content SET STORAGE EXTERNAL",
)
"""For several shards: how far each has copied the catalogue, and the exchanged payloads.

A waiting payload is sent again if it was lost with the server, so PostgreSQL does not log it. Its numbers do not compress well.
"""

MOVING = (
    "CREATE TABLE IF NOT EXISTS albatross.joins (visitor bytea PRIMARY KEY, known_as bytea NOT NULL)",
    """CREATE TABLE IF NOT EXISTS albatross.parcels (
        number bigserial PRIMARY KEY, shard integer NOT NULL, catalogue bigint NOT NULL, content bytea NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS parcels_of_shard ON albatross.parcels (shard, number)",
)
"""For several shards: who is joined with whom, on all shards, and messages from shard to shard that nobody has taken yet."""

BIRTH = 7_020_241_116
"""The advisory lock for making tables or changing keys."""


def known_settings(address: str) -> dict[str, Any]:
    """The parts of an address. Raises `InvalidInput` if it is not one."""
    try:
        return conninfo.conninfo_to_dict(address)
    except psycopg.Error as error:
        raise InvalidInput(
            f"this is not an address of PostgreSQL ({str(error).strip()}); accepted: postgresql://user@host/database"
        ) from None


def name_of(address: str) -> str:
    """An address as it may be printed: without a password."""
    known = known_settings(address)
    user = f"{known['user']}@" if "user" in known else ""
    port = f":{known['port']}" if "port" in known else ""
    host = known.get("host", "")
    database = known.get("dbname", known.get("user", ""))
    if host.startswith("/"):
        return f"postgresql://{user}/{database}?host={host}"
    return f"postgresql://{user}{host}{port}/{database}"


def connect(address: str, writing: bool = False, **more: Any) -> Session:
    """A connection; each statement is a transaction unless one is begun. `writing`: to a server that is no replica."""
    known = {**PATIENCE, **known_settings(address), **more}
    if writing:
        known.setdefault("target_session_attrs", "read-write")
    try:
        session = psycopg.connect(**known, autocommit=True)
    except psycopg.Error as error:
        raise NotNow(f"{name_of(address)} cannot be reached: {' '.join(str(error).split())}") from None
    if session.info.server_version < OLDEST * 10_000:
        session.close()
        raise InvalidInput(f"{name_of(address)} is PostgreSQL {session.info.server_version // 10_000}; accepted: {OLDEST} or newer")
    return session


@contextlib.contextmanager
def understood(where: str) -> Iterator[None]:
    """Errors of PostgreSQL in a read, as ours: the connection is lost, or the log is damaged."""
    try:
        yield
    except (DataCorrupted, IndexCorrupted) as error:
        raise DamagedLog(f"{where} is damaged: {_told(error)}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StorageFailed(f"the connection to {where} was lost ({_told(error)}); nothing more is accepted until a restart") from error
    except psycopg.Error as error:
        raise DamagedLog(f"{where} is damaged or is not a log of albatross: {_told(error)}") from error


def _told(error: psycopg.Error) -> str:
    """The message in one line, without the row it is about, which may contain personal data."""
    return " ".join((error.diag.message_primary or str(error)).split())


def shards_of(session: Session, where: str) -> int:
    """The number of shards in a database; 0 if albatross has made none. Refuses tables of another format."""
    with understood(where):
        if session.execute("SELECT to_regclass('albatross.about') IS NULL").fetchone() == (True,):
            return 0
        found = session.execute("SELECT format, shards FROM albatross.about").fetchone()
    if found is None or found[0] != FORMAT:
        raise InvalidInput(
            f"{where} has format {None if found is None else found[0]}; accepted: {FORMAT} (a newer one needs a newer albatross)"
        )
    return int(found[1])


def make_tables(session: Session, shards: int) -> None:
    """In a transaction: make the tables for this number of shards."""
    for statement in TABLES if shards == 1 else (*TABLES, *SEVERAL, *MOVING):
        session.execute(statement)
    session.execute("INSERT INTO albatross.about VALUES (%s, %s)", (FORMAT, shards))


def make_if_missing(session: Session, table: str, statements: Sequence[str]) -> None:
    """Make tables that a cluster from before does not have; `table` is the last of them."""
    with session.transaction():
        session.execute("SELECT pg_advisory_xact_lock(%s)", (BIRTH,))
        if session.execute("SELECT to_regclass(%s) IS NULL", (table,)).fetchone() == (True,):
            for statement in statements:
                session.execute(statement)


@contextlib.contextmanager
def beginning(address: str, shards: int, keys: bytes | None = None) -> Iterator[Session]:
    """A transaction that makes a database of so many shards: its tables, what the caller writes, and keys. Makes all or nothing."""
    where = name_of(address)
    with (
        contextlib.closing(connect(address, writing=True, application_name="albatross birth")) as session,
        understood(where),
        session.transaction(),
    ):
        session.execute("SELECT pg_advisory_xact_lock(%s)", (BIRTH,))
        if shards_of(session, where):
            raise InvalidInput(f"{where} has a log already; accepted: a database without one")
        make_tables(session, shards)
        yield session
        if keys is not None:
            if session.execute("SELECT FROM albatross.keys").fetchone() is not None:
                raise InvalidInput(f"{where} has keys, and so has the log to import; accepted: a database without keys")
            session.execute("INSERT INTO albatross.keys VALUES (1, %s)", (keys,))
