"""Supervision of the processes of a cluster: starting, checking, replacing one by one, and ending them."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
import structlog

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import StorageFailed
from albatross.service.api.rules import By
from albatross.service.cluster.front import Front
from albatross.service.cluster.processes import FRONT, STOP, Process, present, tell
from albatross.service.cluster.shard import Shard
from albatross.service.http.process import ListenAddress
from albatross.service.storage.postgres.session import NotNow, Session, connect

CALLS = 4
"""Calls of the supervisor that a shard takes at the same time: it also says how it is while it is being closed."""
LOCAL = "127.0.0.1"
"""Where shards listen for fronts if all of them are on this machine."""
DRAIN_SECONDS = 30.0
AGAIN_SECONDS = 0.1
"""Seconds between two checks of a process that is being replaced."""
SILENT_SECONDS = 30.0
"""A shard whose lease expired this many seconds ago is killed and restarted: it hangs, or its machine was paused."""

PASSING = (NotNow, StorageFailed)
"""Errors of a process that a later try may not meet: the database was away."""
AWAY = (*PASSING, psycopg.Error)

A = TypeVar("A")
log = structlog.get_logger()

SILENT = """
SELECT shard, epoch FROM albatross.shards WHERE until < clock_timestamp() - %s * interval '1 second' AND shard >= 0 AND owner <> ''
"""


class Supervisor:
    """Ray restarts actors that die. This class tells them what to do."""

    def __init__(
        self,
        ray: Any,
        address: str,
        shards: Sequence[tuple[int, str | None]],
        fronts: int,
        serving: tuple[ListenAddress, int, str],
        local: bool,
        strangers: By,
    ) -> None:
        """`local`: this Ray has no other machines."""
        self._ray, self._address, self._fronts = ray, address, fronts
        kept: dict[str, Any] = {"max_restarts": -1, "max_task_retries": 0, "num_cpus": 0, "scheduling_strategy": "SPREAD"}
        shard_actor, front_actor = ray.remote(Shard).options(**kept, max_concurrency=CALLS), ray.remote(Front).options(**kept)
        host = LOCAL if local else None
        self._shards: list[Any] = [shard_actor.remote(address, number, folder, host, strangers) for number, folder in shards]
        self._told = (address, *serving)
        self._running: dict[Any, Any] = {}
        for _ in range(fronts):
            self._run(front_actor.remote())
        self._looking = {shard.state.remote(): shard for shard in self._shards}
        self._began = time.monotonic()
        self._opened: set[Any] = set()
        """Shards that have answered."""
        self._ended: set[tuple[int, int]] = set()
        """Silent owners that were killed, by shard and epoch."""

    def _run(self, front: Any) -> None:
        self._running[front.run.remote(*self._told)] = front

    def look(self) -> None:
        """Tell restarted fronts what to do. Raises `InvalidInput` if a part cannot be served at all."""
        ray = self._ray
        for call in ray.wait(list(self._running), num_returns=len(self._running), timeout=0)[0]:
            self._check_front(call)
            self._run(self._running.pop(call))
        self.look_at_shards()
        if time.monotonic() - self._began > SILENT_SECONDS:
            self._began = time.monotonic()
            self._end_silent()

    def look_at_shards(self) -> None:
        """Notice shards that are open, and those that cannot be opened."""
        ray = self._ray
        for call in ray.wait(list(self._looking), num_returns=len(self._looking), timeout=0)[0]:
            shard = self._looking.pop(call)
            self._looking[shard.state.remote()] = shard
            with contextlib.suppress(ray.exceptions.RayError):  # it is being restarted
                if (refusal := ray.get(call)) is not None:
                    raise InvalidInput(refusal)
                self._opened.add(shard)

    def _end_silent(self) -> None:
        with contextlib.suppress(*AWAY), contextlib.closing(connect(self._address)) as session:
            for shard, epoch in session.execute(SILENT, (SILENT_SECONDS,)).fetchall():
                if (shard, epoch) not in self._ended:  # only once: a new process may take long to start
                    self._ended.add((shard, epoch))
                    self._ray.kill(self._shards[shard], no_restart=False)

    def _check_front(self, call: Any) -> None:
        """Raise if a front cannot serve at all; one that was killed, or told to end, is told again what to do."""
        try:
            self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, InvalidInput) and not isinstance(error.cause, PASSING):
                raise InvalidInput(f"a front cannot serve: {error.cause}") from None
            log.warning("a front has failed and is started again", error=type(error.cause).__name__)
        except self._ray.exceptions.RayActorError:
            pass  # Ray has restarted it

    def restart(self, stopping: threading.Event) -> None:
        """Replace every process by a new one, while the others serve."""
        for shard in self._shards:
            self._ray.wait([shard.restart.remote()], timeout=DRAIN_SECONDS)
            while not stopping.wait(AGAIN_SECONDS):
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.get(shard.state.remote(), timeout=SILENT_SECONDS)
                    break
        for front in self._all_fronts(stopping):
            self._asked(lambda session, front=front: tell(session, STOP, front), stopping)  # type: ignore[misc]
            self._all_fronts(stopping, without=front)  # another has replaced it

    def _all_fronts(self, stopping: threading.Event, without: Process | None = None) -> list[Process]:
        """The fronts, as soon as all of them are there; none after a signal to stop."""
        while not stopping.wait(AGAIN_SECONDS):
            self.look()
            found = self._asked(_fronts, stopping) or []
            if without not in found and len(found) >= self._fronts:
                return found
        return []

    def _asked(self, question: Callable[[Session], A], stopping: threading.Event) -> A | None:
        """What the database says, as soon as it can be reached. None after a signal to stop."""
        while not stopping.is_set():
            with contextlib.suppress(*AWAY), contextlib.closing(connect(self._address, writing=True)) as session:
                return question(session)
            stopping.wait(AGAIN_SECONDS)
        return None

    def stop(self) -> None:
        """Let all answer waiting requests, write snapshots, and end."""
        with contextlib.suppress(*AWAY), contextlib.closing(connect(self._address, writing=True)) as session:
            tell(session, STOP)
            end, running = time.monotonic() + DRAIN_SECONDS, list(self._running)
            while running and time.monotonic() < end and _fronts(session):
                _, running = self._ray.wait(running, num_returns=len(running), timeout=AGAIN_SECONDS)
        self.look_at_shards()
        closing = [shard.close.remote() for shard in self._shards if shard in self._opened]  # the others have nothing to write
        self._ray.wait(closing, num_returns=len(closing), timeout=DRAIN_SECONDS) if closing else None


def _fronts(session: Session) -> list[Process]:
    return [process for process in present(session) if process.kind == FRONT]
