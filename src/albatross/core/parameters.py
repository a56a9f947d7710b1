"""Recipes: frozen dataclasses of numbers and words whose fields say what they accept."""

import dataclasses
import math
from dataclasses import MISSING
from typing import Any, Self, get_args, get_type_hints

import numpy as np

from albatross.core.errors import InvalidInput, unknown


def parameter(
    default: Any = MISSING,
    meaning: str = "",
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with one line of explanation and the range of values it accepts."""
    bounds = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    return dataclasses.field(
        default=default,
        metadata={"meaning": meaning, "bounds": {word: bound for word, bound in bounds.items() if bound is not None}, "choices": choices},
    )


_HOLDS = {
    "above": lambda value, bound: value > bound,
    "at least": lambda value, bound: value >= bound,
    "below": lambda value, bound: value < bound,
    "at most": lambda value, bound: value <= bound,
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A frozen dataclass that checks its fields: every instance is valid."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, self._accepted(field, hints[field.name], getattr(self, field.name)))

    def _accepted(self, field: "dataclasses.Field[Any]", hint: Any, value: Any) -> Any:
        kinds = get_args(hint) or (hint,)
        if isinstance(value, np.generic):
            value = value.item()
        if value is None and type(None) in kinds:
            return None
        if float in kinds and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        number = type(value) in (int, float)
        fits = type(value) in kinds and (not number or math.isfinite(value))
        bounds = field.metadata.get("bounds", {})
        choices = field.metadata.get("choices")
        if choices and value not in choices:
            raise InvalidInput(f"{type(self).__name__}: {field.name} is {value!r}; accepted: {', '.join(choices)}")
        if not fits or (number and not all(_HOLDS[word](value, bound) for word, bound in bounds.items())):
            raise InvalidInput(f"{type(self).__name__}: {field.name} is {value!r}; accepted: {describe(field, hint)}")
        return value

    def parameters(self) -> dict[str, Any]:
        """The fields by name, as in a study file."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_text(cls, settings: dict[str, str]) -> Self:
        """Build from `key=value` words, as typed on a command line."""
        hints = get_type_hints(cls)
        known = {field.name: field for field in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for name, text in settings.items():
            if name not in known:
                raise unknown(f"parameter of {cls.__name__}", name, known)
            values[name] = _parse(cls.__name__, known[name], hints[name], text)
        return cls(**values)


def _parse(owner: str, field: "dataclasses.Field[Any]", hint: Any, text: str) -> Any:
    kinds = get_args(hint) or (hint,)
    if type(None) in kinds and text.lower() == "none":
        return None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if str in kinds:
        return text
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    raise InvalidInput(f"{owner}: {field.name} is {text!r}; accepted: {describe(field, hint)}")


def describe(field: "dataclasses.Field[Any]", hint: Any) -> str:
    """What a field accepts, in words: `a whole number, at least 1`."""
    if field.metadata.get("choices"):
        return ", ".join(field.metadata["choices"])
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", type(None): "none"}
    kinds = get_args(hint) or (hint,)
    sort = " or ".join(words.get(kind, str(kind)) for kind in kinds)
    return ", ".join([sort, *(f"{word} {bound:g}" for word, bound in field.metadata.get("bounds", {}).items())])
