"""A cluster without Ray: the engines of all shards in one process, with everything else as it is."""

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Self, TypeVar

import psycopg

from albatross.service.api.answers import Answer
from albatross.service.api.errors import NotReady
from albatross.service.api.requests import Request
from albatross.service.cluster.exchanging import WAITING, Exchanging
from albatross.service.cluster.lanes import Lanes
from albatross.service.cluster.lines.router import Call, Settle
from albatross.service.cluster.running import make
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.sharing import FollowCatalogue, Known
from albatross.service.engine.tickets import Promise, Ticket
from albatross.service.storage.postgres.home import PostgresHome, snapshots_of

A = TypeVar("A", bound=Answer)

VERSION = "SELECT coalesce(max(version), 0) FROM albatross.payloads"
PARCELS = "SELECT count(*) FROM albatross.parcels"


class Town:
    """`ask` is what a front does. Shards exchange by themselves, unless `exchange` is false: then when they are told."""

    def __init__(self, address: str, folder: Path | str, options: Options | None = None, shards: int = 2, exchange: bool = True) -> None:
        if options is not None:
            make(address, shards, options)
        self.address, self.folder, self._exchange = address, folder, exchange
        self.homes = [PostgresHome(address, snapshots_of(folder, shard), shard) for shard in range(shards)]
        self.engines: list[Engine] = []
        self.exchanging: list[Exchanging] = []

    def __enter__(self) -> Self:
        self.engines = [Engine(home, Options()) for home in self.homes]
        for engine in self.engines:
            engine.wait_ready()
            if self._exchange:
                self.exchanging.append(Exchanging(self.address, engine))
        self.lanes = Lanes([self._caller(shard) for shard in range(len(self.engines))], most=1_000)
        for router in self.lanes.routers:
            router.reached()
        return self

    def __exit__(self, *_: object) -> None:
        for exchanging in self.exchanging:
            exchanging.close()
        self.exchanging.clear()
        self.lanes.close()
        for engine in self.engines:
            engine.close()

    def _caller(self, shard: int) -> Call:
        def call(tickets: Sequence[Ticket], settle: Settle) -> None:
            for ticket in tickets:
                promise = Promise(ticket.request, Future())
                promise.future.add_done_callback(lambda done, ticket=ticket: settle([(ticket, done.exception() or done.result())]))  # type: ignore[misc]
                for refused in self.engines[shard].put([promise]):
                    assert refused.error is not None
                    settle([(ticket, refused.error)])

        return call

    def ask(self, request: Request[A]) -> A:
        promise = Promise(request, Future())
        for refused in self.lanes.put([promise]):
            assert refused.error is not None
            raise refused.error
        return promise.future.result(60)  # type: ignore[no-any-return]

    def pause(self, seconds: float) -> None:
        """The pause of a test that waits for the shards: as long as one request to each of them."""
        for engine in self.engines:
            with contextlib.suppress(NotReady):
                engine.ask(FollowCatalogue())

    def settle(self) -> int:
        """Wait until all shards know the same version of everything, and none has more to say; returns it.

        Shards are asked between the parcels and the version: a shard that knows the newest version and has nothing to say says nothing
        until there is a newer one.
        """
        with contextlib.closing(psycopg.connect(self.address, autocommit=True)) as session:
            while True:
                (parcels,) = session.execute(PARCELS).fetchone() or (0,)
                known = [_known(engine) for engine in self.engines]
                said = [(one._known.version, one._news()) for one in self.exchanging]
                (waiting, _), (version,) = (session.execute(asked).fetchone() or (0, 0) for asked in (WAITING, VERSION))
                if (
                    parcels == waiting == 0
                    and {(one.version, one.catalogue) for one in known} == {(version, known[0].catalogue)}
                    and set(said) <= {(version, False)}
                ):
                    return int(version)


def _known(engine: Engine) -> Known:
    """How far a shard is, once it can say so: it may be replaying."""
    while True:
        engine.wait_ready()
        with contextlib.suppress(NotReady):
            return engine.ask(FollowCatalogue())
