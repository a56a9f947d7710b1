"""Where the owners of the shards listen: a row of each in the database, with the secret that a front must know."""

import contextlib
from typing import NamedTuple

from albatross.service.storage.postgres.session import Session, connect, make_if_missing, name_of, understood

TABLE = (
    """CREATE TABLE IF NOT EXISTS albatross.addresses (
        shard integer PRIMARY KEY, epoch bigint NOT NULL, host text NOT NULL, port integer NOT NULL, secret bytea NOT NULL
    )""",
)
SAY = """
INSERT INTO albatross.addresses AS known SELECT shard, epoch, %s, %s, %s FROM albatross.shards WHERE shard = %s AND epoch = %s
ON CONFLICT (shard) DO UPDATE SET epoch = EXCLUDED.epoch, host = EXCLUDED.host, port = EXCLUDED.port, secret = EXCLUDED.secret
WHERE known.epoch < EXCLUDED.epoch
"""
FIND = "SELECT shard, epoch, host, port, secret FROM albatross.addresses JOIN albatross.shards USING (shard, epoch)"
"""Only of those who own their shards: a former owner is not asked."""


class ShardAddress(NamedTuple):
    epoch: int
    """Counts the owners of a shard."""
    host: str
    port: int
    secret: bytes


def make_addresses(session: Session) -> None:
    make_if_missing(session, "albatross.addresses", TABLE)


def say_address(database: str, shard: int, address: ShardAddress) -> None:
    """Let all fronts find this owner of a shard, if it still is the owner."""
    with (
        contextlib.closing(connect(database, writing=True, application_name="albatross address")) as session,
        understood(name_of(database)),
    ):
        make_addresses(session)
        session.execute(SAY, (address.host, address.port, address.secret, shard, address.epoch))


def find_addresses(session: Session) -> dict[int, ShardAddress]:
    """By shard; of those that can be asked."""
    rows = session.execute(FIND, prepare=True).fetchall()
    return {shard: ShardAddress(epoch, host, port, bytes(secret)) for shard, epoch, host, port, secret in rows}
