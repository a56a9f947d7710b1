"""Work in another process. Numba compiles one function at a time in a process; two processes compile two."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from types import TracebackType
from typing import Self

from albatross.kernels.compiling import cache_root

BEGIN = """
import sys
sys.path[:] = sys.argv[3:]
from importlib import import_module
getattr(import_module(sys.argv[1]), sys.argv[2])(sys.stdin.buffer.read())
"""
LONGEST = 300.0
"""Seconds after which the other process is given up."""
LOOK_SECONDS = 0.1
"""How often somebody who waits for it looks whether it is enough."""

Ending = Callable[[], bool]


def never() -> bool:
    return False


class Beside:
    """Work in another process, which begins if it is wanted. However it ends, nothing depends on it."""

    def __init__(self, work: Callable[[bytes], None], task: bytes, wanted: bool) -> None:
        self._process: Popen[bytes] | None = None
        frozen = getattr(sys, "frozen", False)  # then the executable is not an interpreter
        if wanted and sys.executable and not frozen:
            surroundings = os.environ | {"ALBATROSS_CACHE": str(cache_root().parent)}
            command = [sys.executable, "-c", BEGIN, work.__module__, work.__name__, *sys.path]
            with suppress(OSError):
                self._process = Popen(command, env=surroundings, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
                assert self._process.stdin is not None
                with self._process.stdin as pipe:
                    pipe.write(task)

    def wait(self, enough: Ending = never) -> None:
        """Wait until the work has ended, or until this says that it is enough."""
        until = time.monotonic() + LONGEST
        while self._process is not None and time.monotonic() < until and not enough():
            with suppress(TimeoutExpired):
                self._process.wait(LOOK_SECONDS)
                return

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.end()


def usable_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
