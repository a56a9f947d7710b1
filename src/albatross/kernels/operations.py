"""The operations of a policy, declared once and implemented per type of state.

Every policy has `select` and `update`. The others are optional. `suppose`, `believe`, `width` and `attribute` report beliefs and change
nothing. `replace` undoes a rating and learns another instead; `join` merges two users. `divide`, `report`, `merge`, `refit` and `carry` are
for policies whose users may be split over several shards (`albatross.core.sharing`).
A compiled loop that calls an operation serves every policy: Numba resolves the call by the type of the state.
Interpreted, the same call looks up the implementation in the same table.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from albatross.kernels.building.sources import implemented_by
from albatross.kernels.compiling import OPTIONS

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

Items = NDArray[np.int32]
"""Candidate items. In kernels an empty array means the whole catalogue."""

ALL_ITEMS: Items = np.empty(0, np.int32)


class Slate(NamedTuple):
    """What a selection returns for each candidate, in the order of the candidates."""

    scores: NDArray[np.float64]
    """The ranking scores; score = mean + bonus."""
    means: NDArray[np.float64]
    """The predicted rewards."""
    whole: bool = True
    """Whether all places are wanted. If not, only those of the chosen candidate and of the `best` need be filled."""
    best: Items = ALL_ITEMS
    """Space for the positions of the best candidates, best first, ties by position: as many as fit.

    A policy that fills the whole slate anyway may leave it unchanged.
    """


class Belief(NamedTuple):
    """The belief about a user's vector: |q − center| ≤ radius, measured in standard deviations. Space for an answer."""

    center: NDArray[np.float64]
    covariance: NDArray[np.float64]
    radius: NDArray[np.float64]
    """An array of length 1: 1 for a normal distribution, more for a confidence region."""


ELSEWHERE = 2**62
"""A time of the last rebuild so late that `update` never rebuilds sums. Used in one shard of several, where `refit` rebuilds them."""

_implementations: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


def select(
    state: Any, settings: Any, scratch: Any, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    """Fill the slate. Return the position of the chosen candidate and the probability of that choice.

    Changes no learned state: only the slate, the scratch and the random stream.
    """
    return _implementations[select][type(state)](state, settings, scratch, user, candidates, slate, random)  # type: ignore[no-any-return]


def update(state: Any, settings: Any, scratch: Any, user: int, item: int, reward: float, random: np.random.Generator) -> None:
    """Learn from one rating, in place."""
    _implementations[update][type(state)](state, settings, scratch, user, item, reward, random)


def replace(
    state: Any, settings: Any, scratch: Any, user: int, item: int, before: float, after: float, random: np.random.Generator
) -> None:
    """Undo one rating `before` of the pair, and learn `after` instead, in place. There must be such a rating.

    The stored ratings (pairs, counts, sums) are then as if only `after` had been given. Vectors fitted in between may stay.
    """
    _implementations[replace][type(state)](state, settings, scratch, user, item, before, after, random)


def join(state: Any, settings: Any, scratch: Any, user: int, other: int, room: NDArray[np.int32], random: np.random.Generator) -> None:
    """Assign all ratings of `other` to `user`, in place; `other` then has no ratings. The two must be different users.

    The stored ratings (pairs, counts, sums) are then as if all had come from `user`. Vectors fitted before may stay, except those of the
    user and of the items that `other` rated. `room` is working space of any content: two rows with a place per item.
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
    """Select as if the user had also given these ratings, each item once; with none, exactly like `select`.

    A NaN reward means a rating exactly as predicted: it reduces the uncertainty and changes no mean.
    The position is −1 if the policy would not use such ratings now. Changes no learned state.
    """
    return _implementations[suppose][type(state)](state, settings, scratch, user, candidates, items, rewards, slate, random)  # type: ignore[no-any-return]


def believe(state: Any, settings: Any, scratch: Any, user: int, belief: Belief) -> int:
    """Write the belief about the user's vector. Returns its length. Fills only arrays that are large enough."""
    return _implementations[believe][type(state)](state, settings, scratch, user, belief)  # type: ignore[no-any-return]


def width(state: Any, settings: Any, scratch: Any, user: int, item: int, more: int) -> float:
    """The uncertainty of the predicted reward of an item for this user, now, or after so many more ratings of it.

    A standard deviation if the belief is a normal distribution; the half width of the interval for a confidence region.
    """
    return _implementations[width][type(state)](state, settings, scratch, user, item, more)  # type: ignore[no-any-return]


def attribute(state: Any, settings: Any, scratch: Any, user: int, item: int, items: Items, parts: NDArray[np.float64]) -> int:
    """Write the contribution of each item the user has rated to the predicted reward of an item. Returns their number.

    For policies whose mean is linear in the user's ratings. The mean minus all contributions is the prediction without these ratings.
    If there are more than the arrays have places, only these are filled.
    """
    return _implementations[attribute][type(state)](state, settings, scratch, user, item, items, parts)  # type: ignore[no-any-return]


def divide(state: Any) -> None:
    """Make a state without ratings one shard of several: from now on `refit` rebuilds its sums, and `update` never does."""
    _implementations[divide][type(state)](state)


def report(state: Any, others: Any, since: Any, figures: NDArray[np.float64]) -> int:
    """Write what own users added to the population figures, as numbers for `merge`. Returns their count. Fills only if they fit.

    `others` and `since` are states that hold only sums and population figures: `others` of all other shards; `since` of all shards, at
    the last report of this shard. Changes nothing.
    """
    return _implementations[report][type(state)](state, others, since, figures)  # type: ignore[no-any-return]


def merge(state: Any, figures: NDArray[np.float64]) -> None:
    """Add what a shard reported to the population figures of a state, or of the state that stands for the others."""
    _implementations[merge][type(state)](state, figures)


def refit(state: Any, settings: Any, scratch: Any, others: Any, items: Items, random: np.random.Generator) -> bool:
    """Refit these items after sums and figures of other shards have changed. Drift control, if any, belongs here too.

    The sums of the state contain the own part and that of the others; `others` has the latter alone. Called once per exchange.
    Returns false if it has not changed the sums: then they need not be compared with those last sent.
    """
    return _implementations[refit][type(state)](state, settings, scratch, others, items, random)  # type: ignore[no-any-return]


def carry(state: Any, settings: Any, scratch: Any, user: int, arriving: bool, room: NDArray[np.int32], random: np.random.Generator) -> None:
    """Add a user's part to the sums over users and to the population figures, or subtract it: the user comes from or goes to another shard.

    The user's own rows and pairs are present in both cases: they are copied before, or removed after. A policy whose sums do not depend on
    the rows of users leaves them where they are, because only their total matters. `room` is working space: two rows, a place per item.
    """
    _implementations[carry][type(state)](state, settings, scratch, user, arriving, room, random)


def offers(state: Any, operation: Callable[..., Any]) -> bool:
    """Whether the policy of this state implements an optional operation."""
    return type(state) in _implementations[operation]


def implements(operation: Callable[..., Any], state_type: type) -> Callable[[Implementation], Implementation]:
    """Declare the decorated function as the implementation of `operation` for this type of state."""

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

    # strict=False: Numba would compare signatures too. `implements` has compared the names already.
    @overload(operation, jit_options=OPTIONS, strict=False)
    def compiled(state, *others):  # type: ignore[no-untyped-def]
        return _implementations[operation].get(getattr(state, "instance_class", type(None)))


def or_else(operation: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """An optional operation for every state: the policy's own, or this fallback with the same arguments."""

    def either(state: Any, *others: Any) -> Any:
        return _implementations[operation].get(type(state), otherwise)(state, *others)

    @overload(either, jit_options=OPTIONS, strict=False)
    def compiled(state, *others):  # type: ignore[no-untyped-def]
        return _implementations[operation].get(getattr(state, "instance_class", type(None)), otherwise)

    return either


def unless_denied(answer: bool | None) -> bool:
    """False only if an operation has returned false. One that returns nothing counts as true."""
    return answer is not False


@overload(unless_denied, jit_options=OPTIONS)
def _compiled_unless_denied(answer):  # type: ignore[no-untyped-def]
    return (lambda answer: answer) if isinstance(answer, types.Boolean) else (lambda answer: True)  # noqa: ARG005 - as called


for _operation in (select, update, replace, join, suppose, believe, width, attribute, divide, report, merge, refit, carry):
    _declare(_operation)
