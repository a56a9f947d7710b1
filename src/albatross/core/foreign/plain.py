"""Policies in plain Python: any object with `select` and `update`, created again for every trial.

Its maker (a class or a function) becomes a recipe like any other, so comparisons and studies treat both kinds of policy alike.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, ClassVar, Protocol, Union, get_args, get_origin, get_type_hints, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.foreign.outside import Parcel, pack, unpack
from albatross.core.policy import Policy
from albatross.core.streams import Streams

Candidates = NDArray[np.int64]

OFFERED = ("n_users", "n_items", "random")
"""Arguments that a maker gets if its signature names them: the size of the world, and the only source of randomness."""

VALUES = (int, float, bool, str, type(None))
"""Types of parameters: those of a study file or the command line."""


@runtime_checkable
class Player(Protocol):
    """The interface of a plain policy. It may store anything. Each `select` is followed by its `update`."""

    def select(self, user: int, candidates: Candidates) -> int:
        """The number of the item to show. It is one of the candidates, an array that belongs to the callee and holds each item once."""

    def update(self, user: int, item: int, reward: float) -> None:
        """Learn from one rating."""


@dataclasses.dataclass(frozen=True)
class Plain(Policy):
    """A policy in plain Python: its maker, and parameters. `recipe` derives one class from this for each maker."""

    maker: ClassVar[Callable[..., Player]]

    def player(self, n_users: int, n_items: int, random: np.random.Generator) -> Player:
        """A new object without ratings."""
        offered = {"n_users": n_users, "n_items": n_items, "random": random}
        asked = {name: offered[name] for name in inspect.signature(self.maker).parameters if name in offered}
        made = self.maker(**asked, **self.parameters())
        if not isinstance(made, Player):
            raise InvalidInput(
                f"{self.policy_name()} made {type(made).__name__}, which has no select or no update; accepted: an object with both"
            )
        return made

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> tuple[Any, ...]:
        raise InvalidInput(
            f"policy {self.policy_name()!r} is plain Python, which runs in simulations and studies; accepted here: a compiled policy"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process makes the class again. A class written at a prompt or in a function is pickled itself."""
        try:
            maker: Any = pack(type(self))
        except InvalidInput:
            maker = self.maker
        return _restored, (maker, self.parameters())


def as_policy(given: Any) -> Policy:
    """A policy as it is; for a class or a function, the policy it makes with default parameters."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, type) and issubclass(given, Policy):
        return given()
    return plain(given)


def plain(maker: Callable[..., Player], **parameters: Any) -> Plain:
    """The recipe of a plain policy: its maker and its parameters.

    >>> class First:
    ...     def __init__(self, skip: int = 0) -> None:
    ...         self.skip = skip
    ...     def select(self, user, candidates):
    ...         return candidates[self.skip % len(candidates)]
    ...     def update(self, user, item, reward):
    ...         pass
    >>> plain(First, skip=2)
    First(skip=2)
    """
    made = recipe(maker)(**parameters)
    assert isinstance(made, Plain)
    return made


def _restored(maker: Parcel | Callable[..., Player], parameters: dict[str, Any]) -> Policy:
    return recipe(unpack(maker) if isinstance(maker, Parcel) else maker)(**parameters)


def recipe(maker: Any) -> type[Policy]:
    """The recipe class for a class or a function. A compiled policy is its own; for a plain one, a class is made with its parameters."""
    if isinstance(maker, type) and issubclass(maker, Policy):
        return maker
    methods = [name for name in ("select", "update") if isinstance(maker, type) and not callable(getattr(maker, name, None))]
    if not (isinstance(maker, type) or inspect.isfunction(maker)) or methods:
        given = f"{maker.__name__}, which has no {' and no '.join(methods)}" if methods else repr(maker)
        raise InvalidInput(f"policy is {given}; accepted: a class with select and update, or a function that makes an object with both")
    return _recipe(maker)


@functools.cache
def _recipe(maker: Any) -> type[Policy]:
    own = {field.name: field for field in dataclasses.fields(maker)} if dataclasses.is_dataclass(maker) else {}
    signed: Any = maker.__init__ if isinstance(maker, type) and not own else maker  # type: ignore[misc]
    hints = get_type_hints(signed)
    fields = []
    for parameter in inspect.signature(maker).parameters.values():
        if parameter.name in OFFERED or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = dataclasses.MISSING if parameter.default is parameter.empty else parameter.default
        hint = hints.get(parameter.name, type(default))
        metadata = own[parameter.name].metadata if parameter.name in own else None
        _check_parameter(maker, parameter, hint)
        fields.append((parameter.name, hint, dataclasses.field(default=default, metadata=metadata)))
    # `maker` must not become a method, and the class must name the file of its maker.
    body = {"maker": staticmethod(maker), "__doc__": maker.__doc__, "__module__": maker.__module__, "__qualname__": maker.__qualname__}
    return dataclasses.make_dataclass(maker.__name__, fields, bases=(Plain,), namespace=body, frozen=True, kw_only=True)


def _check_parameter(maker: Any, parameter: inspect.Parameter, hint: Any) -> None:
    subject = f"{maker.__name__}: parameter {parameter.name}"
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if any(kind not in VALUES for kind in kinds):
        raise InvalidInput(
            f"{subject} is neither annotated as int, float, bool or str (or None) nor has such a default; "
            f"accepted: numbers and words, and {', '.join(OFFERED)}. For anything else, write a function that makes the policy"
        )
    if parameter.kind is parameter.POSITIONAL_ONLY or parameter.name in {*dir(Plain), "maker"}:
        raise InvalidInput(f"{subject} cannot be given by that name; accepted: another name, not positional-only")
