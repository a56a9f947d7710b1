"""The one way a function is compiled, and where its machine code is kept.

Numba's disk cache looks only at the file a function stands in: an edit to a function it calls in another file would
silently run the old code. So machine code is kept in a folder named by a fingerprint of every source it may come from.
"""

import functools
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import platformdirs
from numba.core import event
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent.parent

OPTIONS: Any = {"error_model": "numpy", "_nrt": False}
"""What all compiled code shares. No `fastmath`, no `parallel`: a fixed order of operations gives the same bits everywhere.
No reference counting (`_nrt`): it took a third of the time of a step. So compiled code can neither allocate nor return an array."""

SHARED_FOLDERS = ("kernels", "core", "environments", "metrics", "simulation")
"""What any compiled function may call; besides, a policy calls functions of its own file, never of another policy's."""


def kernel(function: Function) -> Function:
    """Let compiled code call a function. Called from Python it stays what it is: `program` makes its compiled version."""
    return register_jitable(**OPTIONS)(function)


def program(function: Callable[..., Any], state_type: type | None = None) -> Callable[..., Any]:
    """The compiled version of a function: an entry into compiled code from Python.

    Each type of state has its own, so that an edit to one policy compiles that policy anew and no other.
    """
    if (function, state_type) in _programs:
        return _programs[function, state_type]
    sources = [_source_file(thing) for thing in (function, state_type) if thing is not None]
    known = [source for source in sources if source is not None]
    keep = len(known) == len(sources)  # what was typed at a prompt has no file whose edits could be noticed
    options: Any = {"cache": keep, "no_cfunc_wrapper": True, **OPTIONS}
    with _cache_folder(_fingerprint(*known)):
        compiled: Callable[..., Any] = numba.njit(**options)(function)
    _programs[function, state_type] = compiled
    return compiled


_programs: dict[tuple[Callable[..., Any], type | None], Callable[..., Any]] = {}


def source_fingerprint(owner: type) -> str:
    """A name for the code behind a class: it changes with its file and with everything compiled code shares."""
    file = _source_file(owner)
    return _fingerprint(*([] if file is None else [file]))


def _source_file(thing: Any) -> Path | None:
    name = getattr(sys.modules.get(thing.__module__), "__file__", None)
    return Path(name) if name is not None and Path(name).exists() else None


@functools.cache
def _fingerprint(*sources: Path) -> str:
    digest = hashlib.blake2b(f"{numba.__version__} {np.__version__}".encode(), digest_size=12)
    shared = (file for folder in SHARED_FOLDERS for file in PACKAGE.joinpath(folder).glob("*.py"))
    for file in sorted({*shared, *sources}):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.cache
def cache_root() -> Path:
    """Where machine code is kept between processes: `ALBATROSS_CACHE`, else the user's cache folder, else a temporary one."""
    folder = Path(os.environ.get("ALBATROSS_CACHE") or platformdirs.user_cache_path("albatross")) / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="albatross-kernels-"))
    return folder


@contextmanager
def _cache_folder(fingerprint: str) -> Iterator[None]:
    """Numba reads this setting when it decorates; it is put back so that the user's own functions keep their place."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_root() / fingerprint)
    try:
        yield
    finally:
        settings.CACHE_DIR = before


class _Announcer(event.Listener):
    """Tells a person who waits for the compiler what they are waiting for."""

    def __init__(self) -> None:
        self.depth = threading.local()

    def on_start(self, event: Any) -> None:
        depth = getattr(self.depth, "value", 0)
        self.depth.value = depth + 1
        function = event.data["dispatcher"].py_func
        if depth == 0 and function.__module__.startswith("albatross."):
            state = getattr(event.data["args"][0], "instance_class", None) if event.data["args"] else None
            subject = state.__module__.rpartition(".")[2] if state is not None else function.__module__
            print(f"albatross: compiling {subject} ({function.__name__}), once per install …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        self.depth.value = getattr(self.depth, "value", 1) - 1


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
