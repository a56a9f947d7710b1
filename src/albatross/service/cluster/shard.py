"""A shard: the engine over the log of its users, in a process that Ray starts, watches and restarts.

All its data are in PostgreSQL. After a restart, its constructor runs again, takes the lease, and reads them.
"""

import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Answer
from albatross.service.api.errors import NotReady, StorageFailed
from albatross.service.api.requests import Request
from albatross.service.cluster.exchanging import Exchanging
from albatross.service.cluster.packing import pack_batches
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Promise
from albatross.service.storage.postgres.home import PostgresHome, snapshots_of
from albatross.service.storage.postgres.session import NotNow

AGAIN_SECONDS = 0.2
"""Seconds between two attempts to take a lease, or to reach the database."""


class Shard:
    """Made an actor by `cluster.supervising`. Several fronts may call `answer` at the same time."""

    def __init__(self, address: str, number: int, snapshots: str | None) -> None:
        pack_batches()
        self._home = PostgresHome(address, snapshots_of(snapshots, number), number)
        self._failure: InvalidInput | None = None
        self._exchanging: Exchanging | None = None
        try:
            self._engine = self._open()
        except InvalidInput as refusal:  # the log is damaged for the next process, too
            self._failure = refusal
            return
        if self._engine.genesis.shards > 1:
            self._exchanging = Exchanging(address, self._engine)

    def _open(self) -> Engine:
        waiting = threading.Event()
        while True:
            engine = None
            try:
                engine = Engine(self._home, Options(), on_failure=_end, on_complaint=_complain)
                engine.wait_ready()
                return engine
            except (NotNow, StorageFailed):  # another owner's lease ends, or the database comes back
                if engine is not None:
                    engine.close()
                waiting.wait(AGAIN_SECONDS)

    def answer(self, requests: Sequence[Request[Any]]) -> list[Answer | BaseException]:
        """The answer or error of each request."""
        if self._failure is not None:
            return [NotReady(f"the shard cannot be served: {self._failure}")] * len(requests)
        promises = [Promise(request, Future()) for request in requests]
        refused = self._engine.put(promises)  # all in one go: they are committed together
        for promise in promises:
            if promise in refused:
                promise.future.set_exception(promise.error)
        return [promise.future.exception() or promise.future.result() for promise in promises]

    def state(self) -> str | None:
        """Why the shard cannot be served; None if it can."""
        return None if self._failure is None else str(self._failure)

    def close(self) -> None:
        """Answer waiting requests, write a snapshot, release the lease."""
        if self._exchanging is not None:
            self._exchanging.close()
        if self._failure is None:
            self._engine.close()

    def restart(self) -> None:
        """Close and end; Ray restarts it. Fronts keep the requests of the meantime."""
        self.close()
        os._exit(1)


def _complain(complaint: str) -> None:
    """Write to the log that Ray keeps of the process."""
    print(f"albatross: {complaint}", file=sys.stderr, flush=True)


def _end(error: BaseException) -> None:
    """End this process after an error that a restart may cure. A damaged log stays damaged for the next process."""
    if isinstance(error, StorageFailed) or not isinstance(error, InvalidInput):
        os._exit(1)
