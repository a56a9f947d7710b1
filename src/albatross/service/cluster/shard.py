"""A shard: the engine over the log of its users, in a process that Ray starts, watches and restarts.

All its data are in PostgreSQL. After a restart, its constructor runs again, takes the lease, and reads them.
"""

import os
import sys
import threading

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import StorageFailed
from albatross.service.api.rules import By
from albatross.service.cluster.exchanging import Exchanging
from albatross.service.cluster.lines.addresses import ShardAddress, say_address
from albatross.service.cluster.lines.frames import random_number
from albatross.service.cluster.lines.listening import Listening
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.http.process import SWITCH_SECONDS, freeze_memory
from albatross.service.storage.postgres.home import PostgresHome, snapshots_of
from albatross.service.storage.postgres.session import NotNow

AGAIN_SECONDS = 0.2
"""Seconds between two attempts to take a lease, or to reach the database."""


class Shard:
    """Made an actor by `cluster.supervising`. Fronts send their requests to its port; Ray only calls the methods."""

    def __init__(self, address: str, number: int, snapshots: str | None, host: str | None, strangers: By = "policy") -> None:
        """`host`: where to listen for fronts; None: where other machines of the Ray cluster reach this one.

        `strangers`: by what items are ranked for users without ratings.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        self._options = Options(strangers=strangers)
        self._home = PostgresHome(address, snapshots_of(snapshots, number), number)
        self._failure: InvalidInput | None = None
        self._exchanging: Exchanging | None = None
        self._listening: Listening | None = None
        try:
            self._engine = self._open()
        except InvalidInput as refusal:  # the log is damaged for the next process, too
            self._failure = refusal
            return
        if self._engine.genesis.shards > 1:
            self._exchanging = Exchanging(address, self._engine)
        freeze_memory()
        host = host or _host_of_node()
        try:
            self._listening = self._listen(host)
        except OSError as error:
            self.close()
            self._failure = InvalidInput(f"shard {number} cannot listen on {host}: {error.strerror or error}")

    def _open(self) -> Engine:
        waiting = threading.Event()
        while True:
            engine = None
            try:
                engine = Engine(self._home, self._options, on_failure=_end, on_complaint=_complain)
                engine.wait_ready()
                return engine
            except (NotNow, StorageFailed):  # another owner's lease ends, or the database comes back
                if engine is not None:
                    engine.close()
                waiting.wait(AGAIN_SECONDS)

    def _listen(self, host: str) -> Listening:
        """Take requests of fronts, and let them know where."""
        lease, secret, waiting = self._home.lease, random_number(), threading.Event()
        assert lease is not None
        listening = Listening(self._engine, host, secret, lambda: lease.is_sure)
        while True:
            try:
                say_address(self._home.address, self._home.shard, ShardAddress(lease.epoch, host, listening.port, secret))
                return listening
            except (NotNow, StorageFailed):  # the database comes back, or the engine ends this process
                waiting.wait(AGAIN_SECONDS)

    def state(self) -> str | None:
        """Why the shard cannot be served; None if it can."""
        return None if self._failure is None else str(self._failure)

    def close(self) -> None:
        """Answer waiting requests, write a snapshot, release the lease."""
        if self._exchanging is not None:
            self._exchanging.close()
        if self._failure is None:
            self._engine.close()
        if self._listening is not None:
            self._listening.close()

    def restart(self) -> None:
        """Close and end; Ray restarts it. Fronts keep the requests of the meantime."""
        self.close()
        os._exit(1)


def _host_of_node() -> str:
    import ray

    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def _complain(complaint: str) -> None:
    """Write to the log that Ray keeps of the process."""
    print(f"albatross: {complaint}", file=sys.stderr, flush=True)


def _end(error: BaseException) -> None:
    """End this process after an error that a restart may cure. A damaged log stays damaged for the next process."""
    if isinstance(error, StorageFailed) or not isinstance(error, InvalidInput):
        os._exit(1)
