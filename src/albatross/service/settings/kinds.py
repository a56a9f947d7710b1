"""Kinds of settings: accepted words of the command line and values of TOML."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from albatross.core.errors import InvalidInput

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_NAME = r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)|\[[0-9A-Fa-f:.]+\])"
_HOST = re.compile(rf"\*|{_NAME}")
_ORIGIN = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*://{_NAME}(?::\d{{1,5}})?/?")


class WrongWord(ValueError):
    """One word of a list is not accepted."""


class NoList(ValueError):
    """A list is accepted, and this is none."""


class Kind(NamedTuple):
    """A kind of setting. `convert` raises `ValueError` for a value that is not accepted."""

    word: Any
    """The type that the command-line parser reads; `convert` gets that, or the value from a file."""
    accepted: str
    convert: Callable[[Any], Any]
    form: str = ""
    """What is accepted in place of something that is no list."""

    def read(self, name: str, given: Any) -> Any:
        """The value. An error names the setting, the given value and what is accepted."""
        try:
            return self.convert(given)
        except WrongWord as wrong:
            given = wrong.args[0]
        except NoList:
            raise InvalidInput(f"{name} is {given!r}; accepted: {self.form}") from None
        except (ValueError, TypeError, OverflowError):
            pass
        raise InvalidInput(f"{name} is {given!r}; accepted: {self.accepted}")


def whole(least: int, most: int | None = None) -> Kind:
    def convert(given: Any) -> int:
        if type(given) is not int or given < least or (most is not None and given > most):
            raise ValueError
        return given

    return Kind(int, f"a whole number, at least {least}" if most is None else f"a whole number from {least} to {most}", convert)


def number(low: float, high: float) -> Kind:
    def convert(given: Any) -> float:
        if not low <= _finite(given) <= high:
            raise ValueError
        return float(given)

    return Kind(float, f"a number from {low:g} to {high:g}", convert)


def choice(*words: str) -> Kind:
    def convert(given: Any) -> str:
        if given not in words:
            raise ValueError
        return str(given)

    return Kind(Literal[words], ", ".join(words), convert)


def _finite(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError
    return float(given)


def _switch(given: Any) -> bool:
    if not isinstance(given, bool):
        raise ValueError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError
    return given


def _matching(pattern: re.Pattern[str]) -> Callable[[Any], tuple[str, ...]]:
    def convert(given: Any) -> tuple[str, ...]:
        if not isinstance(given, list | tuple):
            raise NoList
        for word in given:
            if not isinstance(word, str) or not pattern.fullmatch(word):
                raise WrongWord(word)
        return tuple(given)

    return convert


def _scale(given: Any) -> tuple[float, float]:
    if isinstance(given, str):
        lowest, dots, highest = given.partition("..")
        given = (float(lowest), float(highest)) if dots else ()
    if not isinstance(given, list | tuple):
        raise ValueError
    low, high = map(_finite, given)
    if not -1e9 <= low < high <= 1e9:
        raise ValueError
    return low, high


def _events(given: Any) -> dict[str, float]:
    if isinstance(given, str):
        pairs = [word.rpartition("=") for word in given.split(",")]
        if not all(name and equals for name, equals, _ in pairs) or len({name for name, _, _ in pairs}) < len(pairs):
            raise ValueError
        given = {name: float(reward) for name, _, reward in pairs}
    if not isinstance(given, dict) or not given:
        raise ValueError
    return {_text(name): _finite(reward) for name, reward in given.items()}


def _time(given: Any) -> float:
    text = _text(given)
    seconds = float(text[:-1]) * UNITS.get(text[-1], math.nan)
    if not 0 < seconds < 1e11:
        raise ValueError
    return seconds


def as_time(seconds: float) -> str:
    """A time as it is given, in the largest unit that makes it a whole number.

    >>> as_time(1800.0), as_time(86400.0), as_time(90.0), as_time(0.5)
    ('30m', '1d', '90s', '0.5s')
    """
    unit = next((unit for unit in "dhm" if seconds % UNITS[unit] == 0), "s")
    return f"{seconds / UNITS[unit]:.15g}{unit}"


def _silence(given: Any) -> tuple[float, float]:
    waiting, equals, reward = _text(given).partition("=")
    if not equals:
        raise ValueError
    return _time(waiting), _finite(float(reward))


SWITCH = Kind(bool, "true or false", _switch)
TEXT = Kind(str, "text", _text)
PATH = Kind(Path, "the path of a file", lambda given: given if isinstance(given, Path) else Path(_text(given)))
SCALE = Kind(str, "lowest..highest, as 1..5, at most 1e9 in size; in a file also as [1, 5]", _scale)
EVENTS = Kind(str, "names and numbers, each name once, as click=1,purchase=5; in a file also as {click = 1, purchase = 5}", _events)
SILENCE = Kind(str, "a time and a reward, as 30m=0 (units: s, m, h, d)", _silence)
TIME = Kind(str, "a time, as 30m or 90d (units: s, m, h, d)", _time)
HOSTS = Kind(
    list[str],
    "a name or an address alone, as shop.example or [::1], without scheme, port and path",
    _matching(_HOST),
    'a list, as ["shop.example"]',
)
ORIGINS = Kind(
    list[str],
    "scheme and host, and a port if it is not the usual one, as https://shop.example",
    _matching(_ORIGIN),
    'a list, as ["https://shop.example"]',
)


def parse_scale(text: str) -> tuple[float, float]:
    """Lowest and highest rating, in the syntax of --scale.

    >>> parse_scale("1..5"), parse_scale("-10..10")
    ((1.0, 5.0), (-10.0, 10.0))
    """
    low, high = SCALE.read("--scale", text)
    return low, high
