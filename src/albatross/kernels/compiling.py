"""How functions are compiled, and where the machine code is cached.

Numba's disk cache checks only the file of a function: after an edit to a function it calls in another file, it would silently run the
old code. So the cache folder is named by a fingerprint of every source the code may come from: ours, and those of a policy
from outside this package.
"""

import functools
import hashlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import platformdirs
from numba.core import event
from numba.extending import register_jitable

from albatross.kernels.building.explaining import COMPLAINTS, explained
from albatross.kernels.building.optimizing import collected_rarely, optimized_once
from albatross.kernels.building.sources import SCRIPT, implementers, is_ours, sources_of, syntax_of

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent.parent

OPTIONS: Any = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
"""Options of all compiled code. No `fastmath`, no `parallel`: a fixed order of operations gives the same bits everywhere.
No reference counting (`_nrt`): it took a third of the time of a step. So compiled code can neither allocate nor return an array."""

SHARED_FOLDERS = ("kernels", "core", "environments", "metrics", "simulation")
"""Folders whose functions any compiled function may call. A policy also calls functions of its own file, never of another policy's."""


CACHED = "kernels"
"""The name of the folder for cached machine code, in that for all that is cached."""


def kernel(function: Function) -> Function:
    """Let compiled code call a function. From Python it is still the interpreted function; `program` makes a compiled version."""
    return register_jitable(**OPTIONS)(function)


def program(function: Callable[..., Any], state_type: type | None = None) -> Callable[..., Any]:
    """The compiled version of a function: an entry into compiled code from Python.

    There is one version per type of state, so that an edit to one policy recompiles only that policy.
    """
    if (function, state_type) in _programs:
        return _programs[function, state_type]
    owners = [thing for thing in (function, state_type, *implementers(state_type)) if thing is not None]
    keep = all(_lasting(owner) for owner in owners)
    options: Any = {"cache": keep, **OPTIONS}
    # Numba finds cached code by the type of the state, which it imports by its module name. So that name is part of the key.
    modules = sorted({owner.__module__ for owner in owners if not is_ours(owner)})
    with _cache_folder(_joined(_fingerprint_of(*owners), *modules)):
        compiled: Any = numba.njit(**options)(function)
    if hasattr(compiled, "_compile_for_args"):  # absent if compiling is switched off
        compiled._compile_for_args = _explaining(compiled._compile_for_args, state_type)
    _programs[function, state_type] = compiled
    return compiled  # type: ignore[no-any-return]


def compiled_for(function: Callable[..., Any], state_type: type | None, *arguments: Any) -> Any:
    """Numba's result for a function and arguments of these types: its signature, and the library that has its machine code."""
    compiled: Any = program(function, state_type)
    kinds = tuple(map(compiled.typeof_pyval, arguments))
    if kinds not in compiled.overloads:
        compiled._compile_for_args(*arguments)
    return compiled.overloads[kinds]


def is_wanted(function: Callable[..., Any], state_type: type) -> bool:
    """Whether another process could compile a function for this one: nothing is on disk yet, and there is a folder for it."""
    index = getattr(getattr(getattr(program(function, state_type), "_cache", None), "_cache_file", None), "_index_path", None)
    # Numba writes the index before the machine code that it lists, so the index alone says nothing.
    return index is not None and not any(Path(index).parent.glob(f"{Path(index).stem}.*.nbc")) and is_shared()


def is_shared() -> bool:
    """Whether other processes find the machine code of this one."""
    return cache_root().name == CACHED


class NotCompiled(Exception):
    """Machine code is neither loaded nor on disk."""


@contextmanager
def only_loaded() -> Iterator[None]:
    """What this thread runs here is loaded if it is on disk. Otherwise `NotCompiled` is raised: nothing is compiled."""
    _loading.only = True
    try:
        yield
    finally:
        _loading.only = False


_loading = threading.local()


def _explaining(compile_for: Callable[..., Any], state_type: type | None) -> Callable[..., Any]:
    """Numba's function for arguments of new types, with error messages that a user can act on."""

    def compile_or_explain(*arguments: Any, **more: Any) -> Any:
        try:
            with optimized_once(), collected_rarely():
                return compile_for(*arguments, **more)
        except COMPLAINTS as error:
            subject = state_type or next((each.state_type for each in arguments if hasattr(each, "state_type")), None)  # of what is called
            raise explained(error, subject, arguments) from error

    return compile_or_explain


_programs: dict[tuple[Callable[..., Any], type | None], Callable[..., Any]] = {}


def source_fingerprint(owner: type) -> str:
    """A fingerprint of the code behind a class. It changes with what its file says, and with everything that compiled code shares."""
    return _fingerprint_of(owner)


def _fingerprint_of(*owners: Any) -> str:
    found = {owner: sources_of(owner) for owner in owners}
    ours = [sources.file for owner, sources in found.items() if sources is not None and is_ours(owner)]
    theirs = {sources.digest for owner, sources in found.items() if sources is not None and not is_ours(owner)}
    return _joined(_fingerprint(*ours), *sorted(theirs))


def _joined(first: str, *others: str) -> str:
    return hashlib.blake2b(" ".join([first, *others]).encode(), digest_size=12).hexdigest() if others else first


def _lasting(owner: Any) -> bool:
    """Whether another process can import it: false for code typed at a prompt or in the script that is run."""
    return sources_of(owner) is not None and owner.__module__ != SCRIPT


@functools.cache
def _fingerprint(*sources: Path) -> str:
    """A fingerprint of what these files and all shared ones say: it does not change with comments, docstrings and layout.

    Reading their syntax takes longer than reading their text. So it is noted on disk what a text says.
    """
    shared = (file for folder in SHARED_FOLDERS for file in PACKAGE.joinpath(folder).rglob("*.py"))
    texts = [file.read_bytes() for file in sorted({*shared, *sources})]
    note = cache_root() / f"{_digest(texts)}.syntax"
    with suppress(OSError, UnicodeDecodeError):
        if re.fullmatch("[0-9a-f]{24}", known := note.read_text()):
            return known
    fingerprint = _digest([syntax_of(text) for text in texts])
    with suppress(OSError):
        with tempfile.NamedTemporaryFile("w", dir=note.parent, delete=False) as partial:
            partial.write(fingerprint)
        Path(partial.name).replace(note)
    return fingerprint


def _digest(parts: list[bytes]) -> str:
    versions = f"{sys.version_info[:2]} {numba.__version__} {np.__version__}"
    return hashlib.blake2b(b"\0".join([versions.encode(), *parts]), digest_size=12).hexdigest()


@functools.cache
def cache_root() -> Path:
    """The folder for cached machine code: `ALBATROSS_CACHE`, or the user's cache folder, or a temporary folder."""
    folder = Path(os.environ.get("ALBATROSS_CACHE") or platformdirs.user_cache_path("albatross")) / CACHED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="albatross-kernels-"))
    return folder


@contextmanager
def _cache_folder(fingerprint: str) -> Iterator[None]:
    """Set Numba's cache folder, which it reads when it decorates. It is reset afterwards, so that the user's own functions keep theirs."""
    settings: Any = numba.config
    with _setting:
        before = settings.CACHE_DIR
        settings.CACHE_DIR = str(cache_root() / fingerprint)
        try:
            yield
        finally:
            settings.CACHE_DIR = before


_setting = threading.Lock()
"""Engines of one process compile in their own threads; only one at a time may change this global setting."""


def _subject(state: type) -> str:
    """The name of what is compiled, for people."""
    sources = sources_of(state)
    return state.__module__.rpartition(".")[2] if is_ours(state) or sources is None else sources.name


class _Announcer(event.Listener):
    """Tells a waiting user what is being compiled."""

    def __init__(self) -> None:
        self.depth = threading.local()

    def on_start(self, event: Any) -> None:
        depth = getattr(self.depth, "value", 0)
        self.depth.value = depth + 1
        function = event.data["dispatcher"].py_func
        if getattr(_loading, "only", False):
            raise NotCompiled(f"{function.__name__} is neither loaded nor on disk")
        if depth == 0 and function.__module__.startswith("albatross."):
            first: Any = next(iter(event.data["args"]), None)
            first = getattr(first, "parts", first)
            if "state" in getattr(first, "fields", ()):
                first = first[first.fields.index("state")]
            state = getattr(first, "instance_class", None)
            subject = function.__module__.rpartition(".")[2] if state is None else _subject(state)
            print(f"albatross: compiling {subject} ({function.__name__}), once per install …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        self.depth.value = getattr(self.depth, "value", 1) - 1


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
