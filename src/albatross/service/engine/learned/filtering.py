"""The items that satisfy a condition, by a few operations on whole arrays; cached while nothing changes."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import msgspec
import numpy as np

from albatross.kernels.operations import Items
from albatross.service.api.errors import BadValue, NoEligibleCandidate
from albatross.service.api.rules import DEEPEST, MOST_CONDITIONS, Where
from albatross.service.api.values import brief, check_id
from albatross.service.engine.learned.descriptions import Descriptions, Mask

REMEMBERED = 64
"""Limit of cached conditions."""
MOST_NAMED = 16
"""Limit of attributes that a message names."""

FORMS = (
    'accepted: {"attribute", "is"}, {"attribute", "from" and "to", or one of them}, {"all": [...]}, {"any": [...]} or {"none": [...]}, '
    "one of them"
)


class Answered(NamedTuple):
    among: Items
    changes: int
    items: Items


class Filters:
    """Cached results of conditions, while they are valid."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, Answered] = OrderedDict()

    def satisfying(self, where: Where, described: Descriptions, items: Items, n_items: int) -> Items:
        """Those of some items that satisfy a condition. Refuses if there are none."""
        key = msgspec.json.encode(where)
        known = self._answers.get(key)
        if known is None or known.among is not items or known.changes != described.changes:
            mask = mask_of(where, described, n_items)
            known = self._answers[key] = Answered(items, described.changes, items[mask[items]])
            if len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        if not known.items.size:
            raise NoEligibleCandidate(
                f"of {items.size} items that may be shown, none satisfies `where`{_unheard_of(where, described)}; accepted: at least one"
            )
        return known.items


def attributes_of(where: Where) -> list[str]:
    """The attributes that a condition names, each once."""
    named = [] if where.attribute is None else [where.attribute]
    parts = where.all or where.any or where.none or ()
    return list(dict.fromkeys([*named, *(name for part in parts for name in attributes_of(part))]))


def _unheard_of(where: Where, described: Descriptions) -> str:
    """The attributes of a condition that no item has, if there are any: perhaps typing errors."""
    unknown = [name for name in attributes_of(where) if name not in described.names]
    if not unknown:
        return ""
    return f": no item has the attribute {_some(unknown)} (known: {_some(sorted(described.names)) or 'none yet'})"


def _some(names: Sequence[str]) -> str:
    """Names in a message, not too many."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(brief, names[:MOST_NAMED])) + more


def mask_of(where: Where, described: Descriptions, n_items: int) -> Mask:
    """Which of the first n items satisfy a condition."""
    if where.attribute is not None:
        if where.is_ is None:
            return described.between(where.attribute, where.from_, where.to, n_items)
        return described.having(where.attribute, [where.is_] if isinstance(where.is_, str) else where.is_, n_items)
    parts = [mask_of(part, described, n_items) for part in where.all or where.any or where.none or ()]
    if where.all is not None:
        return reduce(np.logical_and, parts)
    either: Mask = reduce(np.logical_or, parts)
    return either if where.any is not None else ~either


def check_where(where: Where) -> None:
    """Refuse a condition of no known form, nested too deep, or with too many parts."""
    if _count(where, 1) > MOST_CONDITIONS:
        raise BadValue(f"where has more than {MOST_CONDITIONS} conditions; accepted: up to that")


def _count(where: Where, depth: int) -> int:
    if depth > DEEPEST:
        raise BadValue(f"where is nested more than {DEEPEST} deep; accepted: up to that")
    lists = [part for part in (where.all, where.any, where.none) if part is not None]
    ranged = where.from_ is not None or where.to is not None
    if where.attribute is not None:
        check_id("attribute", where.attribute)
        if where.is_ == []:
            raise BadValue(f"where has no label for {brief(where.attribute)}: `is` is an empty list; accepted: at least one label")
        if lists or (where.is_ is not None) == ranged:
            raise BadValue(f"where has a condition on {brief(where.attribute)} of no known form; {FORMS}")
        for label in [where.is_] if isinstance(where.is_, str) else where.is_ or ():
            check_id("label", label)
        if any(number is not None and math.isnan(number) for number in (where.from_, where.to)):
            raise BadValue(f"where compares {brief(where.attribute)} with what is not a number; accepted: numbers")
        return 1
    if len(lists) != 1 or ranged or where.is_ is not None:
        raise BadValue(f"where has a condition of no known form; {FORMS}")
    if not lists[0]:
        word = next(word for word in ("all", "any", "none") if getattr(where, word) is not None)
        raise BadValue(f"where has an empty list in `{word}`; accepted: at least one condition, or no `where` for all items")
    return sum(_count(part, depth + 1) for part in lists[0])
