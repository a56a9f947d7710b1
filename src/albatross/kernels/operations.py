"""What a policy can be asked, declared once and implemented per type of state.

`select` and `update` every policy has. The others are optional. `suppose`, `believe`, `width` and `attribute` say what a policy believes,
and change nothing. `replace` takes a rating back and learns another in its place, `join` lets two users be one. `divide`, `report`, `merge`
and `refit` are for policies whose users may live on several shards (`albatross.core.exchange`).
A compiled loop that calls an operation serves every policy: Numba resolves the call by the type of the state.
Interpreted, the same call looks the implementation up in the same table.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from albatross.kernels.compiling import OPTIONS
from albatross.kernels.sources import implemented_by

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
    """Whether all of this is wanted; if not, a policy need only say it of the candidate it chose, and of the `best`."""
    best: Items = ALL_ITEMS
    """Room for the positions of the best candidates, best first, of equals the first: as many as there is room for.

    A policy that fills the whole slate in any case may leave it as it is.
    """


class Belief(NamedTuple):
    """Where a user's vector is believed to be: |q − center| ≤ radius, measured in standard deviations. Room for an answer."""

    center: NDArray[np.float64]
    covariance: NDArray[np.float64]
    radius: NDArray[np.float64]
    """An array of length 1: 1 where the belief is a normal distribution, more for a region of confidence."""


ELSEWHERE = 2**62
"""In place of the time of the last rebuild of sums, in one shard of several: `update` finds it never due, and `refit` rebuilds them."""

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


def replace(
    state: Any, settings: Any, scratch: Any, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    """Take back one rating of the pair that was `before`, and learn `after` in its place, in place. There must be such a rating.

    What is kept of the ratings themselves (pairs, counts, sums) is then as if only `after` had come. What was fitted in between may stay.
    """
    _implementations[replace][type(state)](state, settings, scratch, user, item, before, after, random)


def join(state: Any, settings: Any, scratch: Any, user: int, other: int, room: NDArray[np.int32], random: np.random.Generator) -> None:
    """Let all that `other` rated be rated by `user`, in place; `other` is then somebody who has rated nothing. They are not the same.

    What is kept of the ratings themselves (pairs, counts, sums) is then as if all had come from `user`. What was fitted before may stay,
    but for the user's own part and the items that `other` rated. `room` is to work in: two rows with a place per item, of any content.
    """
    _implementations[join][type(state)](state, settings, scratch, user, other, room, random)


def suppose(
    state: Any,
    settings: Any,
    scratch: Any,
    user: int,
    candidates: Items,
    items: Items,
    rewards: NDArray[np.float64],
    slate: Slate,
    random: np.random.Generator,
) -> tuple[int, float]:
    """Select as if the user had also given these ratings, each item once; with none, exactly as `select`.

    A reward that is not a number stands for one exactly as expected: it makes the policy surer, and changes no mean.
    The position is −1 where the policy would not look at such ratings now. Changes nothing that was learned.
    """
    return _implementations[suppose][type(state)](state, settings, scratch, user, candidates, items, rewards, slate, random)  # type: ignore[no-any-return]


def believe(state: Any, settings: Any, scratch: Any, user: int, belief: Belief) -> int:
    """Say where the user's vector is believed to be; returns its length. Fills only what has room for it."""
    return _implementations[believe][type(state)](state, settings, scratch, user, belief)  # type: ignore[no-any-return]


def width(state: Any, settings: Any, scratch: Any, user: int, item: int, more: int) -> float:
    """How far the expected reward of an item may be off for this user, now, or after so many more ratings of it.

    A standard deviation where the belief is a normal distribution, the half width of the interval for a region of confidence.
    """
    return _implementations[width][type(state)](state, settings, scratch, user, item, more)  # type: ignore[no-any-return]


def attribute(state: Any, settings: Any, scratch: Any, user: int, item: int, items: Items, parts: NDArray[np.float64]) -> int:
    """Say what each item the user has rated adds to the expected reward of an item; returns how many there are.

    For policies whose mean is linear in the user's ratings. Mean less the sum of all parts is what is expected without them.
    Fills only what has room for all.
    """
    return _implementations[attribute][type(state)](state, settings, scratch, user, item, items, parts)  # type: ignore[no-any-return]


def divide(state: Any) -> None:
    """Make a state that has learned nothing one shard of several: from now on `refit` rebuilds its sums, and `update` never does."""
    _implementations[divide][type(state)](state)


def report(state: Any, others: Any, since: Any, figures: NDArray[np.float64]) -> int:
    """Say what own users added to the population figures, in numbers that `merge` takes; returns how many. Fills only what has room.

    `others` and `since` are states with nothing but sums and population figures: those of all other shards, and all of them as they
    were when this shard was last heard of. Changes nothing.
    """
    return _implementations[report][type(state)](state, others, since, figures)  # type: ignore[no-any-return]


def merge(state: Any, figures: NDArray[np.float64]) -> None:
    """Add what a shard reported to the population figures of a state, or of what stands for the others."""
    _implementations[merge][type(state)](state, figures)


def refit(state: Any, settings: Any, scratch: Any, others: Any, items: Items, random: np.random.Generator) -> None:
    """Fit these items anew: sums and figures of other shards have changed. Drift control, where there is any, belongs here too.

    The sums of the state hold the own part and those of the others; `others` has the latter alone. Called once per exchange.
    """
    _implementations[refit][type(state)](state, settings, scratch, others, items, random)


def offers(state: Any, operation: Callable[..., Any]) -> bool:
    """Whether the policy of this state implements an optional operation."""
    return type(state) in _implementations[operation]


def implements(operation: Callable[..., Any], state_type: type) -> Callable[[Implementation], Implementation]:
    """Declare the decorated function to be what `operation` does on states of this type."""

    def register(function: Implementation) -> Implementation:
        expected = list(inspect.signature(operation).parameters)
        given = list(inspect.signature(function).parameters)
        if given != expected:
            raise TypeError(f"{function.__name__} takes ({', '.join(given)}); {operation.__name__} needs ({', '.join(expected)})")
        _implementations[operation][state_type] = function
        implemented_by(state_type, function)
        return function

    return register


def _declare(operation: Callable[..., Any]) -> None:
    _implementations[operation] = {}

    # strict=False: Numba would compare signatures too; `implements` has compared the names, which is what matters.
    @overload(operation, jit_options=OPTIONS, strict=False)
    def compiled(state, *others):  # type: ignore[no-untyped-def]
        return _implementations[operation].get(getattr(state, "instance_class", type(None)))


def or_else(operation: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """An optional operation as every state has it: the policy's own, or else this one, which takes the same arguments."""

    def either(state: Any, *others: Any) -> Any:
        return _implementations[operation].get(type(state), otherwise)(state, *others)

    @overload(either, jit_options=OPTIONS, strict=False)
    def compiled(state, *others):  # type: ignore[no-untyped-def]
        return _implementations[operation].get(getattr(state, "instance_class", type(None)), otherwise)

    return either


for _operation in (select, update, replace, join, suppose, believe, width, attribute, divide, report, merge, refit):
    _declare(_operation)
