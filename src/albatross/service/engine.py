"""An agent in service: one thread owns the agent and the log, so there are no locks around either.

It takes all requests that wait, decides, commits once, learns, and answers all (group commit).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from albatross.core.errors import InvalidInput, check_whole
from albatross.service import snapshot
from albatross.service.batch import Batch, Waiting
from albatross.service.events import Decided, Forget, Rated, encode
from albatross.service.log import FolderLock, Row, SQLiteLog, Store
from albatross.service.messages import (
    EventInFlight,
    Feedback,
    FeedbackBatch,
    ForgetUser,
    Forgotten,
    NotReady,
    Overloaded,
    Readiness,
    Refused,
    Request,
    SnapshotTaken,
    StorageFailed,
    TakeSnapshot,
    UnknownUser,
    check_id,
)
from albatross.service.recovery import QUEUE, Options, decoded, genesis_of, recover
from albatross.service.warming import warm

__all__ = ["QUEUE", "Engine", "Options"]

MOST_AT_ONCE = 1024
"""Requests committed together, at most: the first of them should not wait long for the last."""

FLUSH_SECONDS = 0.5
"""With relaxed durability, between two synchronisations: with the time they take, a power failure costs a second at most."""

Phase = Literal["opening", "checking", "replaying", "ready", "draining", "closed", "failed"]
ALONE = (ForgetUser, TakeSnapshot)
"""Requests that are not committed together with others."""


class Engine:
    """Serves one folder. `submit` may be called from any thread.

    Opening returns at once: the owner thread checks and replays the log, and `readiness` tells how far it is.
    """

    def __init__(
        self,
        folder: str | Path,
        options: Options | None = None,
        on_failure: Callable[[BaseException], None] | None = None,
        open_store: Callable[[Path, bool], Store] = SQLiteLog,
    ) -> None:
        """Begin to open a folder, which is made if it does not exist.

        Refuses at once, with `InvalidInput`, a folder that another process serves and options that contradict it.
        `on_failure` is called from the owner thread, once, when the engine cannot go on (the log is damaged, the disk failed):
        a server should then end with an exit code other than zero. Without it, the next request raises what happened.
        """
        self.folder, self.options = Path(folder), options or Options()
        check_whole("queue", self.options.queue, 1)
        check_whole("snapshot_every", self.options.snapshot_every, 0)
        new = not self.folder.exists()
        self._lock = FolderLock(self.folder)
        try:
            self._store = open_store(self.folder, self.options.durability == "commit")
            try:
                self.genesis = genesis_of(self._store, self.options, str(self.folder))
            except BaseException:
                self._store.close()
                raise
        except BaseException:
            self._lock.release()
            if new:
                _remove(self.folder)
            raise
        self._on_failure = on_failure
        self._changed = threading.Condition()
        self._queue: deque[Waiting] = deque()
        self._flying: set[str] = set()
        self._phase: Phase = "opening"
        self._failure: BaseException | None = None
        self._done, self._total = 0, self._store.head.seq
        self._snapshot_seq = self._snapshot_due = 0
        self._flushed, self._flush_due = 0, 0.0
        self._writer: threading.Thread | None = None
        self.complaints: list[str] = []
        """Why snapshots were skipped at the start."""
        self._owner = threading.Thread(target=self._own, name="albatross-engine", daemon=True)
        self._owner.start()

    @property
    def readiness(self) -> Readiness:
        """What the engine is doing; never waits."""
        detail = None if self._failure is None else str(self._failure)
        return Readiness(self._phase == "ready", self._phase, self._done, self._total, len(self._queue), detail)

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the log has been replayed. Raises what went wrong, or `NotReady` when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._phase not in ("opening", "checking", "replaying"), timeout)
        self._check_open()

    def submit(self, request: Request) -> "Future[Any]":
        """Put a request in the queue. The future's result is the answer of the type the request's docstring names.

        What is refused for its content or by the disk is the future's exception (a `Refused`). Raises at once, without a future:
        `Overloaded` (the queue is full), `NotReady` (replaying, draining, closed), `EventInFlight` and `StorageFailed`.
        asyncio: `await asyncio.wrap_future(engine.submit(request))`.
        """
        future: Future[Any] = Future()
        ids = _event_ids(request)
        with self._changed:
            self._check_open()
            if len(self._queue) >= self.options.queue:
                raise Overloaded(f"{len(self._queue)} requests wait already; try again in {Overloaded.retry_after} s")
            for name in ids:
                if name in self._flying:
                    raise EventInFlight(f"event_id {name[:80]!r} is being worked on; try again to learn what came of it")
            self._flying.update(ids)
            self._queue.append((request, future))
            self._changed.notify()
        return future

    def ask(self, request: Request, timeout: float | None = None) -> Any:
        """Submit and wait for the answer, or raise why there is none."""
        return self.submit(request).result(timeout)

    def close(self) -> None:
        """Drain: refuse new requests, answer those that wait, write a snapshot, close the log, give the folder free."""
        with self._changed:
            if self._phase not in ("closed", "failed"):
                self._phase = "draining"
            self._changed.notify_all()
        self._owner.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._phase == "ready":
            return
        if self._failure is not None:
            if isinstance(self._failure, InvalidInput):
                raise self._failure
            raise StorageFailed(f"the engine has failed: {self._failure}") from self._failure
        if self._phase in ("draining", "closed"):
            raise NotReady(f"{self.folder} is {'being closed' if self._phase == 'draining' else 'closed'}")
        raise NotReady(f"{self.folder} is being opened: {self._done:,} of {self._total:,} events done")

    def _enter(self, phase: Phase) -> None:
        with self._changed:
            if self._phase != "draining" or phase in ("closed", "failed"):
                self._phase = phase
            self._changed.notify_all()

    def _progress(self, done: int, total: int) -> None:
        self._done, self._total = done, total

    def _opening_progress(self, done: int, total: int) -> None:
        self._progress(done, total)
        if self._phase == "draining" and done < total:
            raise NotReady(f"{self.folder} was closed while it was being opened")

    def _own(self) -> None:
        """The life of the owner thread."""
        try:
            self._enter("replaying")
            try:
                recovered = recover(self.folder, self._store, self.genesis, self._opening_progress)
            except NotReady:
                return
            self._model, self._snapshot_seq, self.complaints = recovered
            self._snapshot_due = self._snapshot_seq
            warm(self.genesis)
            self._enter("ready")
            while (waiting := self._take()) is not None:
                self._serve(waiting)
            self._finish()
        except BaseException as error:
            self._fail(error)
        finally:
            self._store.close()
            self._lock.release()
            self._enter("failed" if self._failure is not None else "closed")

    def _take(self) -> list[Waiting] | None:
        """All that waits, up to a limit, or up to a request that must be alone; none when the engine is closed and nothing waits."""
        patience = None if self.options.durability == "commit" else FLUSH_SECONDS
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._phase == "draining", patience)
            if not self._queue and self._phase == "draining":
                return None
            taken: list[Waiting] = []
            while self._queue and len(taken) < MOST_AT_ONCE:
                if isinstance(self._queue[0][0], ALONE) and taken:
                    break
                taken.append(self._queue.popleft())
                if isinstance(taken[-1][0], ALONE):
                    break
        return taken

    def _serve(self, waiting: list[Waiting]) -> None:
        present = [(request, future) for request, future in waiting if future.set_running_or_notify_cancel()]
        try:
            if present and isinstance(present[0][0], ALONE):
                self._serve_alone(*present[0])
            elif present:
                batch = Batch(self._model, self._store, self.options.durability)
                batch.run(present)
                if batch.spoiled:
                    self._model = recover(self.folder, self._store, self.genesis).model
        except BaseException as error:
            for _, future in present:
                if not future.done():
                    future.set_exception(error)
            raise
        finally:
            with self._changed:
                for request, _ in waiting:
                    self._flying.difference_update(_event_ids(request))
        self._keep_up()

    def _serve_alone(self, request: Request, future: "Future[Any]") -> None:
        try:
            answer = self._forget(request.user) if isinstance(request, ForgetUser) else self._snapshot_now()
        except StorageFailed:
            raise
        except (Refused, OSError) as refusal:
            future.set_exception(refusal)
        else:
            future.set_result(answer)

    def _forget(self, user: str) -> Forgotten:
        check_id("user", user)
        erased = [
            seq
            for first, bodies in self._store.read(checked=False)
            for seq, event in zip(*decoded(first, bodies), strict=True)
            if isinstance(event, Rated | Decided) and event.user == user
        ]
        if not erased:
            raise UnknownUser(f"user {user[:80]!r} is not in the log; accepted: a user who is")
        self._join_writer()
        snapshot.remove_all(self.folder)
        self._store.erase(erased, Row(encode(Forget(time.time(), erased))))
        self._enter("replaying")
        self._snapshot_seq = self._snapshot_due = 0
        self._model = recover(self.folder, self._store, self.genesis, self._progress).model
        self._enter("ready")
        return Forgotten(user, self._store.head.seq, len(erased), self._model.seq)

    def _snapshot_now(self) -> SnapshotTaken:
        self._join_writer()
        self._store.flush()
        path, manifest = snapshot.write(self.folder, snapshot.capture(self._model, self._store.head))
        self._snapshot_seq = self._snapshot_due = manifest.seq
        return SnapshotTaken(manifest.seq, manifest.state_id, str(path))

    def _keep_up(self) -> None:
        """What is to be done from time to time: a snapshot, and making relaxed commits durable."""
        every = self.options.snapshot_every
        if every and self._store.head.seq >= self._snapshot_due + every and (self._writer is None or not self._writer.is_alive()):
            self._snapshot_due = self._store.head.seq
            if self.options.durability != "commit":
                self._store.flush()
            taken = snapshot.capture(self._model, self._store.head)
            self._writer = threading.Thread(target=self._write_snapshot, args=(taken,), name="albatross-snapshot")
            self._writer.start()
        elif self.options.durability != "commit" and time.monotonic() >= self._flush_due and self._store.head.seq > self._flushed:
            self._store.flush()
            self._flushed = self._store.head.seq
            self._flush_due = time.monotonic() + FLUSH_SECONDS

    def _write_snapshot(self, taken: snapshot.Capture) -> None:
        try:
            snapshot.write(self.folder, taken)
        except OSError as error:  # the log has it all: a snapshot saves time, no more
            self.complaints.append(f"no snapshot could be written at event {taken.head.seq}: {error}")
        else:
            self._snapshot_seq = taken.head.seq

    def _join_writer(self) -> None:
        if self._writer is not None:
            self._writer.join()

    def _finish(self) -> None:
        self._join_writer()
        if self._store.head.seq > self._snapshot_seq:
            try:
                self._snapshot_now()
            except OSError as error:
                self.complaints.append(f"no snapshot could be written: {error}")

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = error
            self._phase = "failed"
            waiting, self._queue = list(self._queue), deque()
            self._changed.notify_all()
        for _, future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(StorageFailed(f"the engine has failed: {error}"))
        if self._on_failure is not None:
            self._on_failure(error)


def _event_ids(request: Request) -> Iterable[str]:
    if isinstance(request, Feedback):
        return (request.event_id,)
    if isinstance(request, FeedbackBatch):
        return tuple(event.event_id for event in request.events)
    return ()


def _remove(folder: Path) -> None:
    """Take back a folder that was made for an engine that could not be opened."""
    for path in folder.glob("*"):
        path.unlink()
    folder.rmdir()
