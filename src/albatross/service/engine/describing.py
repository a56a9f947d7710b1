"""The description of an item in a request, checked."""

import math
from collections.abc import Collection
from typing import Any

from msgspec import UNSET, UnsetType

from albatross.service.api.errors import BadValue
from albatross.service.api.requests import Request, UpsertItem, UpsertItems
from albatross.service.api.rules import MOST_ATTRIBUTES, MOST_NAMES
from albatross.service.api.values import check_count, check_id
from albatross.service.storage.events import Attribute, Description

LATEST = 1e11
"""Seconds. A later time is one in milliseconds, such as JavaScript's: an item would not be shown for fifty thousand years."""


def describes(request: Request[Any]) -> bool:
    """Whether a request describes items, beyond naming them."""
    if type(request) is UpsertItem:
        said = (request.attributes, request.available_from, request.available_until, request.in_stock)
        return any(value is not UNSET for value in said)
    return type(request) is UpsertItems


def description_of(request: UpsertItem) -> Description:
    """The description as written in the log. Refuses invalid values."""
    attributes: dict[str, Attribute] | UnsetType = UNSET
    if request.attributes is not UNSET:
        check_count("the number of attributes", len(request.attributes), 0, MOST_ATTRIBUTES)
        attributes = {name: _attribute(name, value) for name, value in request.attributes.items()}
    if request.in_stock is not UNSET and not isinstance(request.in_stock, bool):
        raise BadValue(f"in_stock is {request.in_stock!r}; accepted: true or false")
    since, until = _time("available_from", request.available_from), _time("available_until", request.available_until)
    return Description(attributes, since, until, request.in_stock)


def check_description(said: Description, names: Collection[str]) -> None:
    """Refuse more attribute names than a folder may have."""
    more = len({*names, *(said.attributes or ())})
    if said.attributes and more > MOST_NAMES:
        raise BadValue(f"there would be {more} names of attributes; accepted: at most {MOST_NAMES} in a folder")


def check_window(said: Description, after: Description) -> None:
    """Refuse a time of availability that is empty. `after`: the description with what is said. A log may have such items."""
    since, until = after.available_from, after.available_until
    given = said.available_from is not UNSET or said.available_until is not UNSET
    if given and isinstance(since, float) and isinstance(until, float) and until <= since:
        raise BadValue(f"the item would be available from {since!r} until {until!r}; accepted: an end after the beginning, or none")


def _attribute(name: str, value: Any) -> Attribute:
    check_id("attribute", name)
    if isinstance(value, str):
        check_id(f"attribute {name!r}", value)
        return value
    if isinstance(value, list):
        check_count(f"the number of labels of {name!r}", len(value), 0, MOST_ATTRIBUTES)
        for label in value:
            check_id(f"attribute {name!r}", label)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadValue(f"attribute {name!r} is {value!r}; accepted: a label, a list of labels, or a finite number")
    return float(value)


def _time(name: str, value: Any) -> float | UnsetType | None:
    if value is UNSET or value is None:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadValue(f"{name} is {value!r}; accepted: seconds since 1970, or none")
    if value > LATEST:
        raise BadValue(f"{name} is {value!r}; accepted: seconds since 1970, not milliseconds")
    return float(value)
