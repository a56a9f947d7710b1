"""Optimizes an entry point of compiled code once, together with everything it calls.

Numba optimizes each function by itself and again inside every caller, and generates machine code each time. Our inner functions run
only as part of an entry point. So during its compilation, callees stay as they are generated; then all of them are linked with the entry
point, optimized and turned into machine code once. Which function a call means for arguments of certain types is found out once per entry.
It computes the same bits, and compiles in less than half of the time (decisions 0022 and 0035).
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from llvmlite.binding import Linkage  # type: ignore[import-untyped]
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.types.functions import BaseFunction

_here = threading.local()

NEW_OBJECTS = 100_000
"""Objects that a compiler may create before Python looks for garbage among them. Almost all are still in use, so looking is in vain."""


@contextmanager
def optimized_once() -> Iterator[None]:
    """Within this context, an entry point of ours is compiled in this thread."""
    before = getattr(_here, "compiling", None), getattr(_here, "resolved", None)
    _here.compiling, _here.resolved = [], {}
    try:
        yield
    finally:
        _here.compiling, _here.resolved = before


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Within this context, Python rarely looks for garbage."""
    before = gc.get_threshold()
    ours = (max(before[0], NEW_OBJECTS), *before[1:])
    if before[0] > 0:  # otherwise it never looks
        gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:  # otherwise somebody else has set it meanwhile
            gc.set_threshold(*before)


class _Listener(event.Listener):
    """Keeps a stack of the functions being compiled: for each, whether Python can never call it."""

    def on_start(self, event: Any) -> None:
        if getattr(_here, "compiling", None) is not None:
            options = getattr(event.data["dispatcher"], "targetoptions", {})  # a part that runs in Python has none
            _here.compiling.append(bool(options.get("no_cpython_wrapper")))

    def on_end(self, event: Any) -> None:
        if getattr(_here, "compiling", None) is not None:
            _here.compiling.pop()


def _is_inner() -> bool:
    """Whether the function being compiled runs only as part of its caller."""
    compiling: list[bool] = getattr(_here, "compiling", None) or []
    return bool(compiling) and compiling[-1]


def _is_entry() -> bool:
    """Whether the function being compiled is an entry point of ours."""
    return len(getattr(_here, "compiling", None) or []) == 1


def _resolve_once(function: Any, context: Any, arguments: Any, named: Any) -> Any:
    if named or not (_is_inner() or _is_entry()):
        return _resolve(function, context, arguments, named)
    resolved = _here.resolved
    if (function, arguments) not in resolved:
        resolved[function, arguments] = _resolve(function, context, arguments, named)
    return resolved[function, arguments]


def _optimize_parts(library: Any, module: Any) -> None:
    if _is_inner() or _is_entry():
        module.data_layout = library._codegen._data_layout
    else:  # somebody else's
        _optimize_each(library, module)


def _finalize_entries(library: Any) -> None:
    """Link what inner functions call with their entry point, and not with each of them."""
    called = library._linking_libraries
    if _is_inner():
        library._linking_libraries = []
        _finalize(library)
        library._linking_libraries = called
        library.links_nothing = True
        return
    library._linking_libraries = closure = list(dict.fromkeys(called))
    for other in closure:  # grows while it is read
        if getattr(other, "links_nothing", False):
            closure.extend(each for each in other._linking_libraries if each not in closure)
    _finalize(library)


def _optimize_entries(library: Any) -> None:
    if _is_inner():
        return
    if _is_entry():
        _optimize_as_one(library)
    else:  # somebody else's
        _optimize(library)


def _optimize_as_one(library: Any) -> None:
    """Optimize an entry with what it calls, once: nothing in it counts references, for whose sake Numba would go through it twice."""
    for function in library._final_module.functions:
        # Nobody else can call what is linked in. So it may become part of its caller, and need not be handed what it does not use: a
        # state is a hundred numbers, which a call would write to memory.
        if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
            function.linkage = Linkage.internal
    manager, builder = library._codegen._module_pass_manager()
    manager.run(library._final_module, builder)


def _finish_entries(library: Any) -> None:
    if not _is_inner():
        _finish(library)
        return
    library._finalize_dynamic_globals()
    library._finalized = True


def _execute_entries(context: Any, library: Any, description: Any, environment: Any) -> Any:
    if not _is_inner():
        entry = _execute(context, library, description, environment)
        for name in [name for name in _environments if library.codegen._engine.get_global_value_address(name)]:
            library.codegen.set_env(name, _environments.pop(name))
        return entry
    library._ensure_finalized()
    # Needed by parts that run in Python. It gets an address once an entry point that contains it has one.
    _environments[context.get_env_name(description)] = environment
    # Numba identifies a function by this object. It has no address, because it is never called.
    return _named(description.lookup_module(), description.qualname, "", 0, environment, (library,))


_environments: dict[str, Any] = {}
"""Environments of inner functions by name, until they have an address."""
_library: Any = JITCodeLibrary
_context: Any = CPUContext
_function: Any = BaseFunction
_resolve: Any = getattr(_function, "get_call_type", None)
_optimize: Any = getattr(_library, "_optimize_final_module", None)
_optimize_each: Any = getattr(_library, "_optimize_functions", None)
_finalize: Any = getattr(_library, "finalize", None)
_finish: Any = getattr(_library, "_finalize_final_module", None)
_execute: Any = getattr(_context, "get_executable", None)
_named: Any = getattr(getattr(numba, "_dynfunc", None), "make_function", None)
# Another release of Numba may lack one of these: then compiling only takes longer.
if None not in (_resolve, _optimize, _optimize_each, _finalize, _finish, _execute, _named):
    _function.get_call_type = _resolve_once
    _library._optimize_final_module, _library._finalize_final_module = _optimize_entries, _finish_entries
    _library._optimize_functions, _library.finalize = _optimize_parts, _finalize_entries
    _context.get_executable = _execute_entries
    event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
