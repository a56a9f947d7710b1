"""Optimizes an entry into compiled code once, together with all that it calls.

Numba optimizes each function by itself, and again within every function that calls it. Ours are only ever run as part of an entry. So while
an entry is compiled, what it calls is linked in as it is, and the whole is optimized at the end: the same machine code, to the bit in what
it computes, in about two thirds of the time (decision 0024).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event
from numba.core.codegen import JITCodeLibrary

_here = threading.local()


@contextmanager
def optimized_once() -> Iterator[None]:
    """While this lasts, an entry of ours is compiled in this thread."""
    before = getattr(_here, "depth", None)
    _here.depth = 0
    try:
        yield
    finally:
        _here.depth = before


class _Depth(event.Listener):
    """Counts the functions that are being compiled, each for the one before."""

    def on_start(self, event: Any) -> None:
        if getattr(_here, "depth", None) is not None:
            _here.depth += 1

    def on_end(self, event: Any) -> None:
        if getattr(_here, "depth", None) is not None:
            _here.depth -= 1


def _optimize_entries(library: Any) -> None:
    depth = getattr(_here, "depth", None)
    if depth is None or depth <= 1:
        _optimize(library)


_library: Any = JITCodeLibrary
_optimize: Any = getattr(_library, "_optimize_final_module", None)
if _optimize is not None:  # another release of Numba may do without: then compiling takes longer, and nothing else changes
    _library._optimize_final_module = _optimize_entries
    event.register("numba:compile", _Depth())  # type: ignore[no-untyped-call]
