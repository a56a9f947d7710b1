"""Work in another process. Numba compiles one function at a time in a process; two processes compile two."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

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
"""How often somebody who waits for it looks whether to go on."""

Ending = Callable[[], bool]


def never() -> bool:
    return False


@contextmanager
def in_another_process(work: Callable[[bytes], None], task: bytes, wanted: bool) -> Iterator[Callable[..., None]]:
    """Begin the work if it is wanted. Gives a function that waits for its end. However it ends, nothing depends on it."""
    process = None
    frozen = getattr(sys, "frozen", False)  # then the executable is not an interpreter
    try:
        if wanted and sys.executable and not frozen:
            surroundings = os.environ | {"ALBATROSS_CACHE": str(cache_root().parent)}
            command = [sys.executable, "-c", BEGIN, work.__module__, work.__name__, *sys.path]
            with suppress(OSError):
                process = Popen(command, env=surroundings, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
                assert process.stdin is not None
                process.stdin.write(task)
                process.stdin.close()
        yield lambda ending=never: None if process is None else _wait(process, ending)
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _wait(process: "Popen[bytes]", ending: Ending) -> None:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until and not ending():
        with suppress(TimeoutExpired):
            process.wait(LOOK_SECONDS)
            return


def usable_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
