"""Errors that the caller can correct."""

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np

from albatross.kernels.errors import InvalidInput as InvalidInput


def check_whole(name: str, number: object, least: int) -> None:
    """Refuse anything but a whole number of at least `least`."""
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < least:
        raise InvalidInput(f"{name} is {number!r}; accepted: a whole number, at least {least}")


def unknown(kind: str, given: str, known: Iterable[str]) -> InvalidInput:
    """The error for an unknown name, with the nearest known name and the list of all."""
    names = sorted(known)
    nearest = get_close_matches(given, names, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return InvalidInput(f"unknown {kind} {given!r}.{hint} There is: {', '.join(names) or 'none'}")
