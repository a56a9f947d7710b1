"""Compiled code calls other compiled code by its address, with what was kept for it."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import simulate
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.kernels.building.calling import Callee, call
from albatross.kernels.building.keeping import Kept, parts_of
from albatross.kernels.compiling import program
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.simulation.loop import live


class Shelf(NamedTuple):
    weights: NDArray[np.float64]


class Drawer(NamedTuple):
    weights: NDArray[np.float64]
    handle: float


def weighted(kept: Any, position: int, factor: float) -> tuple[int, float]:
    if position < 0:
        raise ValueError("nothing lies before the first place")
    return position + 1, factor * parts_of(kept).weights[position]


def total(callee: Any, count: int, factor: float) -> float:
    result = 0.0
    for position in range(count):
        _, weight = call(callee, (position, factor))
        result += weight
    return result


def refused(callee: Any, position: int) -> int:
    after, _ = call(callee, (position, 1.0))
    return after  # type: ignore[no-any-return]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_is_called_with_what_was_kept(compiled: bool) -> None:
    shelf = Shelf(np.array([1.0, 2.0, 3.0]))
    callee = Callee(weighted, Shelf, (Kept(shelf),), (0, 1.0))
    run = program(total) if compiled else total
    assert run(callee, 3, 0.5) == 3.0
    shelf.weights[0] = 5.0
    assert run(callee, 3, 0.5) == 5.0


def test_numbers_become_the_types_that_were_announced() -> None:
    callee = Callee(weighted, Shelf, (Kept(Shelf(np.array([1.0, 2.0, 3.0]))),), (0, 1.0))
    assert program(total)(callee, 3, np.float32(0.5)) == 3.0
    assert program(total)(callee, 3, 2) == 12.0


def test_an_error_in_it_is_raised() -> None:
    callee = Callee(weighted, Shelf, (Kept(Shelf(np.ones(1))),), (0, 1.0))
    with pytest.raises(ValueError, match="before the first place"):
        program(refused)(callee, -1)
    assert program(refused)(callee, 0) == 1


def test_the_caller_is_compiled_once_for_all_that_is_kept() -> None:
    callees = [Callee(weighted, type(kept), (Kept(kept),), (0, 1.0)) for kept in (Shelf(np.ones(2)), Drawer(np.full(2, 4.0), 1.0))]
    entry: Any = program(total)
    before = {program(total)(callees[0], 2, 1.0): len(entry.signatures)}
    assert program(total)(callees[1], 2, 1.0) == 8.0
    assert before == {2.0: len(entry.signatures)}


@pytest.mark.parametrize("policy", [ALB(), ItemMean(), Random()])
def test_the_loop_of_a_trial_is_compiled_once_for_all_policies(policy: Policy) -> None:
    simulate(policy, Gaussian(n_users=3, n_items=4, rank=2), horizon=5)
    assert len(program(live).signatures) == 1  # type: ignore[attr-defined]
