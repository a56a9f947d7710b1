"""An agent in service: one thread owns the agent and the log, so there are no locks around either.

It takes all requests that wait, decides, commits once, learns, and answers all (group commit).
"""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from albatross.core.policy import Policy
from albatross.service.messages import Readiness, Request

QUEUE = 4096
"""Requests that may wait, at most: beyond, a request is refused at once."""


class Options(Struct, frozen=True):
    """How a folder is to be served. What the log's first event fixes (policy, scale, seed, …) must agree with it, or be None."""

    policy: Policy | None = None
    """None: that of the folder; for a new folder, ALB."""
    scale: tuple[float, float] | None = None
    """Lowest and highest rating. Needed for a new folder."""
    seed: int | None = None
    """None: that of the folder; for a new folder, 0."""
    floor: float | None = None
    """Share of decisions left to chance. None: that of the folder; for a new folder, 0.05."""
    closed: bool | None = None
    """Whether items appear only by upsert. None: that of the folder; for a new folder, false."""
    items: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Known from the beginning, in this order. Looked at only when the folder is new."""
    durability: str = "commit"
    """commit: on disk before it is acknowledged; relaxed: up to a second may be lost if the power fails."""
    queue: int = QUEUE
    snapshot_every: int = 100_000
    """Events between two snapshots; 0: only when asked and at the end."""


class Engine:
    """Serves one folder. `submit` may be called from any thread.

    Opening returns at once: the owner thread checks and replays the log, and `readiness` tells how far it is.
    """

    def __init__(self, folder: str | Path, options: Options | None = None, on_failure: Callable[[BaseException], None] | None = None) -> None:
        """Begin to open a folder, which is made if it does not exist.

        Refuses at once, with `InvalidInput`, a folder that another process serves and options that contradict it.
        `on_failure` is called from the owner thread, once, when the engine cannot go on (the log is damaged, the disk failed):
        a server should then end with an exit code other than zero. Without it, the next request raises what happened.
        """
        raise NotImplementedError

    @property
    def readiness(self) -> Readiness:
        """What the engine is doing; never waits."""
        raise NotImplementedError

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the log has been replayed. Raises what went wrong, or `NotReady` when the time is over."""
        raise NotImplementedError

    def submit(self, request: Request) -> "Future[Any]":
        """Put a request in the queue. The future's result is the answer of the type the request's docstring names.

        What is refused for its content or by the disk is the future's exception (a `Refused`). Raises at once, without a future:
        `Overloaded` (the queue is full), `NotReady` (replaying, draining, closed), `EventInFlight` and `StorageFailed`.
        asyncio: `await asyncio.wrap_future(engine.submit(request))`.
        """
        raise NotImplementedError

    def ask(self, request: Request, timeout: float | None = None) -> Any:
        """Submit and wait for the answer, or raise why there is none."""
        raise NotImplementedError

    def close(self) -> None:
        """Drain: refuse new requests, answer those that wait, write a snapshot, close the log, give the folder free."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
