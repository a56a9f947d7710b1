"""Errors that are the caller's to mend."""

from collections.abc import Iterable
from difflib import get_close_matches


class InvalidInput(ValueError):
    """What was given is not accepted. The message names what was given and what would be."""


def unknown(kind: str, given: str, known: Iterable[str]) -> InvalidInput:
    """The error for a name that does not exist, with the nearest one that does and the list of all."""
    names = sorted(known)
    nearest = get_close_matches(given, names, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return InvalidInput(f"unknown {kind} {given!r}.{hint} There is: {', '.join(names) or 'none'}")
