"""The one way a function is compiled, and where its machine code is kept.

Numba's disk cache looks only at the file a function stands in: an edit to a function it calls in another file would
silently run the old code. So machine code is kept in a folder named by a fingerprint of every source it may come from: ours, and those of
a policy from outside.
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

from albatross.kernels.explaining import COMPLAINTS, explained
from albatross.kernels.optimizing import optimized_once
from albatross.kernels.sources import SCRIPT, implementers, is_ours, sources_of

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent.parent

OPTIONS: Any = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
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
    owners = [thing for thing in (function, state_type, *implementers(state_type)) if thing is not None]
    keep = all(_lasting(owner) for owner in owners)
    options: Any = {"cache": keep, **OPTIONS}
    # Numba finds kept code by the type of the state, which it imports by the name of its module: that is part of the key, too.
    modules = sorted({owner.__module__ for owner in owners if not is_ours(owner)})
    with _cache_folder(_joined(_fingerprint_of(*owners), *modules)):
        compiled: Any = numba.njit(**options)(function)
    if hasattr(compiled, "_compile_for_args"):  # not where compiling is switched off
        compiled._compile_for_args = _explaining(compiled._compile_for_args, state_type)
    _programs[function, state_type] = compiled
    return compiled  # type: ignore[no-any-return]


def _explaining(compile_for: Callable[..., Any], state_type: type | None) -> Callable[..., Any]:
    """What Numba calls for arguments of new types, with complaints that a person can act on."""

    def compile_or_explain(*arguments: Any, **more: Any) -> Any:
        try:
            with optimized_once():
                return compile_for(*arguments, **more)
        except COMPLAINTS as error:
            raise explained(error, state_type, arguments) from error

    return compile_or_explain


_programs: dict[tuple[Callable[..., Any], type | None], Callable[..., Any]] = {}


def source_fingerprint(owner: type) -> str:
    """A name for the code behind a class: it changes with its file and with everything compiled code shares."""
    return _fingerprint_of(owner)


def _fingerprint_of(*owners: Any) -> str:
    found = {owner: sources_of(owner) for owner in owners}
    ours = [sources.file for owner, sources in found.items() if sources is not None and is_ours(owner)]
    theirs = {sources.digest for owner, sources in found.items() if sources is not None and not is_ours(owner)}
    return _joined(_fingerprint(*ours), *sorted(theirs))


def _joined(first: str, *others: str) -> str:
    return hashlib.blake2b(" ".join([first, *others]).encode(), digest_size=12).hexdigest() if others else first


def _lasting(owner: Any) -> bool:
    """Whether another process can know it again: not what was typed at a prompt, and not what stands in the script that is run."""
    return sources_of(owner) is not None and owner.__module__ != SCRIPT


@functools.cache
def _fingerprint(*sources: Path) -> str:
    digest = hashlib.blake2b(f"{numba.__version__} {np.__version__}".encode(), digest_size=12)
    shared = (file for folder in SHARED_FOLDERS for file in PACKAGE.joinpath(folder).rglob("*.py"))
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
    with _setting:
        before = settings.CACHE_DIR
        settings.CACHE_DIR = str(cache_root() / fingerprint)
        try:
            yield
        finally:
            settings.CACHE_DIR = before


_setting = threading.Lock()
"""Engines of one process compile in threads of their own: one at a time may change what Numba reads."""


def _subject(state: type) -> str:
    """What is compiled, as a person knows it."""
    sources = sources_of(state)
    return state.__module__.rpartition(".")[2] if is_ours(state) or sources is None else sources.name


class _Announcer(event.Listener):
    """Tells a person who waits for the compiler what they are waiting for."""

    def __init__(self) -> None:
        self.depth = threading.local()

    def on_start(self, event: Any) -> None:
        depth = getattr(self.depth, "value", 0)
        self.depth.value = depth + 1
        function = event.data["dispatcher"].py_func
        if depth == 0 and function.__module__.startswith("albatross."):
            first: Any = next(iter(event.data["args"]), None)
            first = getattr(first, "parts", first)
            if "state" in getattr(first, "fields", ()):
                first = first[first.fields.index("state")]
            state = getattr(first, "instance_class", None)
            subject = function.__module__ if state is None else _subject(state)
            print(f"albatross: compiling {subject} ({function.__name__}), once per install …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        self.depth.value = getattr(self.depth, "value", 1) - 1


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
