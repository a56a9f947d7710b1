"""The two operations every policy has, declared once and implemented per type of state.

A compiled loop that calls `select` and `update` serves every policy: Numba resolves the call by the type of the state.
Interpreted, the same call looks the implementation up in the same table.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from albatross.kernels.compiling import OPTIONS

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

Items = NDArray[np.int32]
"""Candidate items. In kernels an empty array stands for the whole catalogue."""

ALL_ITEMS: Items = np.empty(0, np.int32)


class Slate(NamedTuple):
    """What a selection says of each candidate, in the order of the candidates."""

    scores: NDArray[np.float64]
    """What the decision ranks by; score = mean + bonus."""
    means: NDArray[np.float64]
    """What the policy expects."""
    whole: bool = True
    """Whether all of this is wanted; if not, a policy need only say it of the candidate it chose."""


_implementations: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


def select(
    state: Any, settings: Any, scratch: Any, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    """Fill the slate and return the position of the chosen candidate and the probability with which it was chosen.

    Changes nothing that was learned: only the slate, the scratch and the random stream.
    """
    return _implementations[select][type(state)](state, settings, scratch, user, candidates, slate, random)  # type: ignore[no-any-return]


def update(state: Any, settings: Any, scratch: Any, user: int, item: int, reward: float, random: np.random.Generator) -> None:
    """Learn from one rating, in place."""
    _implementations[update][type(state)](state, settings, scratch, user, item, reward, random)


def implements(operation: Callable[..., Any], state_type: type) -> Callable[[Implementation], Implementation]:
    """Declare the decorated function to be what `operation` does on states of this type."""

    def register(function: Implementation) -> Implementation:
        expected = list(inspect.signature(operation).parameters)
        given = list(inspect.signature(function).parameters)
        if given != expected:
            raise TypeError(f"{function.__name__} takes ({', '.join(given)}); {operation.__name__} needs ({', '.join(expected)})")
        _implementations[operation][state_type] = function
        return function

    return register


_implementations[select] = {}
_implementations[update] = {}

# strict=False: Numba would compare annotations too; `implements` has compared the names, which is what matters.


@overload(select, jit_options=OPTIONS, strict=False)
def _compiled_select(state, settings, scratch, user, candidates, slate, random):  # type: ignore[no-untyped-def]
    return _implementations[select].get(getattr(state, "instance_class", type(None)))


@overload(update, jit_options=OPTIONS, strict=False)
def _compiled_update(state, settings, scratch, user, item, reward, random):  # type: ignore[no-untyped-def]
    return _implementations[update].get(getattr(state, "instance_class", type(None)))
