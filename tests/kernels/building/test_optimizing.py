"""An entry into compiled code is optimized once, with all that it calls; what others compile is left alone."""

import gc
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from albatross.kernels import compiling
from albatross.kernels.building import optimizing
from albatross.kernels.compiling import kernel, program

njit: Any = numba.njit  # published with types in some versions and without in others


@kernel
def inner(x: float) -> float:
    return math.sqrt(x)


@kernel
def middle(x: float) -> float:
    return inner(x) + 1.0


def outer(x: float) -> float:
    return middle(x) + middle(x + 1.0)


@pytest.fixture(autouse=True)
def nothing_cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Machine code of an earlier run would leave nothing to optimize."""
    monkeypatch.setattr(compiling, "cache_root", lambda: tmp_path)


@pytest.fixture
def optimized(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is optimized from now on."""
    names: list[str] = []

    def note(function: str) -> None:
        before = getattr(optimizing, function)

        def noted(library: Any) -> None:
            names.append(library.name)
            before(library)

        monkeypatch.setattr(optimizing, function, noted)

    note("_optimize")
    note("_optimize_as_one")
    return names


def test_what_an_entry_calls_is_optimized_with_it(optimized: list[str]) -> None:
    assert program(outer)(3.0) == outer(3.0)
    assert [name for name in optimized if name in ("inner", "middle", "outer")] == ["outer"]


def test_functions_of_others_are_optimized_each(optimized: list[str]) -> None:
    @njit  # type: ignore[untyped-decorator]
    def callee(x: float) -> float:
        return x + 1.0

    @njit  # type: ignore[untyped-decorator]
    def caller(x: float) -> float:
        return callee(x) * 2.0  # type: ignore[no-any-return]

    assert caller(3.0) == 8.0
    assert {"callee", "caller"} <= {name.rpartition(".")[2] for name in optimized}


def test_a_function_that_python_and_an_entry_call_serves_both() -> None:
    """It is first compiled on behalf of the entry."""

    @njit  # type: ignore[untyped-decorator]
    def shared(x: float) -> float:
        return math.sqrt(x) + 1.0

    def entry(x: float) -> float:
        return middle(x) + shared(x)  # type: ignore[no-any-return]

    with optimizing.optimized_once():
        assert njit(entry)(4.0) == 6.0
    assert shared(4.0) == 3.0


def lengthy() -> Callable[[float], float]:
    """A function too long to be copied into its callers, unless there is only one and nobody else can call it."""
    steps = (f"    if x > {number}.5: x += math.sqrt(x + {number}.0)" for number in range(100))
    found: dict[str, Any] = {"math": math}
    exec("\n".join(["def long(x):", *steps, "    return x"]), found)
    return kernel(found["long"])  # type: ignore[no-any-return]


long = lengthy()


def longer(x: float) -> float:
    return long(x) + 1.0


def test_what_an_entry_calls_becomes_part_of_it() -> None:
    """Nobody else can call it, so no machine code of its own is left."""
    compiled = program(longer)
    assert compiled(3.0) == longer(3.0)
    (code,) = compiled.inspect_llvm().values()  # type: ignore[attr-defined]
    assert [line for line in code.splitlines() if line.startswith("define") and "4longB" in line] == []


def test_garbage_is_looked_for_rarely_while_compiling_and_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    before, during = gc.get_threshold(), []
    once = optimizing._optimize_as_one

    def watched(library: Any) -> None:
        during.append(gc.get_threshold())
        once(library)

    monkeypatch.setattr(optimizing, "_optimize_as_one", watched)
    monkeypatch.setattr(compiling, "_programs", {})  # another test may have compiled it
    assert program(outer)(4.0) == middle(4.0) + middle(5.0)
    assert [threshold[0] for threshold in during] == [optimizing.NEW_OBJECTS]
    assert gc.get_threshold() == before


def test_a_threshold_that_somebody_sets_meanwhile_stays() -> None:
    before = gc.get_threshold()
    try:
        with optimizing.collected_rarely():
            gc.set_threshold(5_000, *before[1:])
        assert gc.get_threshold()[0] == 5_000
        gc.set_threshold(0)
        with optimizing.collected_rarely():
            assert gc.get_threshold()[0] == 0, "never looked for: not switched on"
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
