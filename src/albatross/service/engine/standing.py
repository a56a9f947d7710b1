"""Where an engine stands, as all threads see it: its phase, how far it has come, and why it failed."""

import os
import threading

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Phase, Readiness
from albatross.service.api.errors import NotReady, StorageFailed


class Standing:
    """Whoever waits for a change waits for `changed`."""

    def __init__(self, name: str, total: int) -> None:
        self.changed = threading.Condition()
        self.phase: Phase = "opening"
        self.failure: BaseException | None = None
        self._name, self._done, self._total = name, 0, total
        self._process = os.getpid()

    @property
    def is_ours(self) -> bool:
        """Whether this process opened the engine. A forked one has no owner thread."""
        return os.getpid() == self._process

    @property
    def is_draining(self) -> bool:
        return self.phase == "draining"

    def readiness(self, waiting: int) -> Readiness:
        """The state of the engine, with so many waiting requests; never waits."""
        detail = None if self.failure is None else str(self.failure)
        return Readiness(self.phase == "ready", self.phase, self._done, self._total, waiting, detail)

    def wait_ready(self, timeout: float | None) -> None:
        """Wait until the log has been replayed. Raises the error, or `NotReady` after the timeout."""
        self.check_process()
        with self.changed:
            self.changed.wait_for(lambda: self.phase not in ("opening", "compiling", "replaying"), timeout)
        self.check_open()

    def check_process(self) -> None:
        if not self.is_ours:
            raise NotReady(
                f"{self._name} was opened by process {self._process}; accepted: that one (a forked process opens its own folder)"
            )

    def check_open(self) -> None:
        """Refuse requests except when ready."""
        if self.phase == "ready":
            return
        if self.failure is not None:
            if isinstance(self.failure, InvalidInput):
                raise self.failure
            raise StorageFailed(f"the engine has failed: {self.failure}") from self.failure
        if self.phase in ("draining", "closed"):
            raise NotReady(f"{self._name} is {'being closed' if self.phase == 'draining' else 'closed'}")
        raise NotReady(f"{self._name} is being opened: {self._done:,} of {self._total:,} events done")

    def enter(self, phase: Phase) -> None:
        """Draining ends only with the engine."""
        with self.changed:
            if self.phase != "draining" or phase in ("closed", "failed"):
                self.phase = phase
            self.changed.notify_all()

    def drain(self) -> None:
        with self.changed:
            if self.phase not in ("closed", "failed"):
                self.phase = "draining"
            self.changed.notify_all()

    def progress(self, done: int, total: int) -> None:
        self._done, self._total = done, total

    def opening_progress(self, done: int, total: int) -> None:
        """The same, for a replay that may be given up."""
        self.progress(done, total)
        if self.is_draining and done < total:
            raise NotReady(f"{self._name} was closed while it was being opened")
