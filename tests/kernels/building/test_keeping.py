"""Arguments that are kept for compiled code arrive there as they are, now and after they have changed in place."""

from typing import Any, NamedTuple

import numpy as np

from albatross.kernels.building.keeping import Kept, keep, parts_of
from albatross.kernels.compiling import program


class Parts(NamedTuple):
    numbers: np.ndarray
    matrix: np.ndarray
    factor: float
    whole: bool


class Drawing(NamedTuple):
    random: np.random.Generator


def weighted(kept: Any, drawing: Any, position: int) -> float:
    numbers, matrix, factor, whole = parts_of(kept)
    if whole:
        return factor * numbers[position] * matrix[position, 1]  # type: ignore[no-any-return]
    return parts_of(drawing).random.random()  # type: ignore[no-any-return]


def parts(whole: bool) -> Parts:
    return Parts(np.arange(5.0), np.asfortranarray(np.arange(10.0).reshape(5, 2)), 0.5, whole)


def test_compiled_code_gets_what_was_kept() -> None:
    given, drawing = parts(whole=True), Kept(Drawing(np.random.default_rng(0)))
    kept = Kept(given)
    for function in (weighted, program(weighted)):
        assert function(kept, drawing, 3) == 0.5 * 3.0 * 7.0


def test_what_changes_in_place_is_seen() -> None:
    given, drawing = parts(whole=True), Kept(Drawing(np.random.default_rng(0)))
    kept = Kept(given)
    program(weighted)(kept, drawing, 3)
    given.numbers[3] = -1.0
    given.matrix[3, 1] = 2.0
    assert program(weighted)(kept, drawing, 3) == -1.0


def test_a_random_stream_goes_on_in_compiled_code_and_outside() -> None:
    random, expected = np.random.default_rng(4), np.random.default_rng(4).random(6).tolist()
    kept, drawing = Kept(parts(whole=False)), Kept(Drawing(random))
    drawn = [program(weighted)(kept, drawing, 0) if step % 2 else random.random() for step in range(6)]
    assert drawn == expected


def test_what_is_kept_lives_as_long_as_it_is_kept() -> None:
    drawing = Kept(Drawing(np.random.default_rng(0)))
    every = [Kept(Parts(np.full(4, float(n)), np.full((4, 2), 2.0, order="F"), 1.0, True)) for n in range(200)]
    assert [program(weighted)(kept, drawing, 0) for kept in every] == [2.0 * n for n in range(200)]


def test_the_native_form_is_the_one_that_compiled_code_has() -> None:
    """Also of what this package writes from Python, but for the owners of memory, which compiled code never asks for."""
    given = parts(whole=True)
    by_compiled_code = np.zeros_like(Kept(given)._native)
    program(keep)(given, by_compiled_code.ctypes.data)
    by_compiled_code[[0, 7]] = 0  # owners of the two arrays
    assert Kept(given)._native.tolist() == by_compiled_code.tolist()


def unusual(kept: Any) -> float:
    return parts_of(kept).factor.real + parts_of(kept).numbers[1]  # type: ignore[no-any-return]


def test_compiled_code_writes_what_python_cannot() -> None:
    given = Parts(np.arange(5.0), np.zeros((5, 2)), 2.5 + 1j, False)  # type: ignore[arg-type]
    assert program(unusual)(Kept(given)) == 3.5
