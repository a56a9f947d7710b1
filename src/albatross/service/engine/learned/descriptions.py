"""What is known of items besides their ratings: labels, numbers, availability and stock.

Stored so that a question about all items takes a few operations on whole arrays: a mask per label and a column per number. They are made
at the first use and updated from then on.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from albatross.kernels.operations import Items
from albatross.service.storage.events import Attribute, Description

MASK_BYTES = 1 << 26
"""Limit of masks in bytes: the least recently used are dropped."""
MASK_OVERHEAD = 256
"""Bytes that a mask takes besides one per item: it matters if there are few items and many labels."""
RARE = 500
"""A label that at most one item in so many has is looked up, without a mask: this is faster, and a shop may have thousands of them."""

ALWAYS = (-math.inf, math.inf)

Mask = NDArray[np.bool_]


class Available(NamedTuple):
    """Which of some items are available, and how long this is valid."""

    items: Items
    among: Items
    since: float
    until: float


def merged(before: Description, said: Description) -> Description:
    """A description updated by another; fields that are not given stay."""
    changes = {name: value for name in said.__struct_fields__ if (value := getattr(said, name)) is not UNSET}
    return msgspec.structs.replace(before, **changes)


class Descriptions:
    """Descriptions by number of the item. Changed only by `describe`."""

    def __init__(self) -> None:
        self.known: dict[int, Description] = {}
        self.names: dict[str, int] = {}
        """Attribute names, and how many items have them."""
        self.changes = 0
        """Results computed from descriptions are valid while this is unchanged."""
        self._labelled: dict[tuple[str, str], set[int]] = {}
        self._numbers: dict[str, dict[int, float]] = {}
        self._masks: OrderedDict[tuple[str, str], Mask] = OrderedDict()
        self._mask_bytes = 0
        self._columns: dict[str, NDArray[np.float64]] = {}
        self._limited: set[int] = set()
        """Items with limited availability."""
        self._since, self._until = np.empty(0), np.empty(0)
        """Per item: begin and end of its availability."""
        self._available: Available | None = None
        self._available_change = -1

    def describe(self, item: int, said: Description) -> None:
        """Update the description of an item."""
        self.changes += 1
        before = self.known.get(item, Description())
        after = self.known[item] = merged(before, said)
        if after.attributes != before.attributes:
            for name, value in (before.attributes or {}).items():
                self._forget(item, name, value)
            for name, value in (after.attributes or {}).items():
                self._learn(item, name, value)
        since = -math.inf if after.available_from in (None, UNSET) else float(after.available_from)
        until = math.inf if after.available_until in (None, UNSET) else float(after.available_until)
        if after.in_stock is False:
            since = math.inf
        (self._limited.discard if (since, until) == ALWAYS else self._limited.add)(item)
        if item < self._since.size or item in self._limited:
            self._make_room(item + 1)
            self._since[item], self._until[item] = since, until

    def _make_room(self, n_items: int) -> None:
        if n_items > self._since.size:
            more = _room(n_items) - self._since.size
            self._since = np.append(self._since, np.full(more, ALWAYS[0]))
            self._until = np.append(self._until, np.full(more, ALWAYS[1]))

    def _forget(self, item: int, name: str, value: Attribute) -> None:
        self.names[name] -= 1
        if not self.names[name]:
            del self.names[name]
        if isinstance(value, float):
            self._numbers[name].pop(item, None)
            _put(self._columns.get(name), item, np.nan)
        for label in labels_of(value):
            having = self._labelled[name, label]
            having.discard(item)
            if not having:
                del self._labelled[name, label]
            _put(self._masks.get((name, label)), item, False)

    def _learn(self, item: int, name: str, value: Attribute) -> None:
        self.names[name] = self.names.get(name, 0) + 1
        if isinstance(value, float):
            self._numbers.setdefault(name, {})[item] = value
            if not _put(self._columns.get(name), item, value):
                self._columns.pop(name, None)
        for label in labels_of(value):
            self._labelled.setdefault((name, label), set()).add(item)
            if not _put(self._masks.get((name, label)), item, True):
                self._drop_mask((name, label))

    def having(self, name: str, labels: Iterable[str], n_items: int) -> Mask:
        """Which of the first n items have one of these labels."""
        masks: list[Mask] = []
        rare: list[int] = []
        for label in labels:
            items = self._labelled.get((name, label), ())
            if len(items) * RARE > n_items:
                masks.append(self._mask((name, label), n_items))
            else:
                rare.extend(items)
        if rare or not masks:
            mask = np.zeros(n_items, np.bool_)
            mask[rare] = True
            masks.append(mask)
        return reduce(np.logical_or, masks)

    def _mask(self, key: tuple[str, str], n_items: int) -> Mask:
        mask = self._masks.get(key)
        if mask is None or mask.size < n_items:
            self._drop_mask(key)
            items = self._labelled[key]
            mask = np.zeros(_room(n_items), np.bool_)
            mask[np.fromiter(items, np.int64, len(items))] = True
            self._masks[key] = mask
            self._mask_bytes += mask.nbytes + MASK_OVERHEAD
            while self._mask_bytes > MASK_BYTES and len(self._masks) > 1:
                self._drop_mask(next(iter(self._masks)))
        else:
            self._masks.move_to_end(key)
        return mask[:n_items]

    def _drop_mask(self, key: tuple[str, str]) -> None:
        mask = self._masks.pop(key, None)
        if mask is not None:
            self._mask_bytes -= mask.nbytes + MASK_OVERHEAD

    def between(self, name: str, low: float | None, high: float | None, n_items: int) -> Mask:
        """Which of the first n items have this number, in this range."""
        column = self._columns.get(name)
        if column is None or column.size < n_items:
            column = np.full(_room(n_items), np.nan)
            numbers = self._numbers.get(name, {})
            column[np.fromiter(numbers, np.int64, len(numbers))] = np.fromiter(numbers.values(), np.float64, len(numbers))
            if numbers:
                self._columns[name] = column
        values = column[:n_items]
        least, most = -math.inf if low is None else low, math.inf if high is None else high
        inside: Mask = (values >= least) & (values <= most)  # false for NaN
        return inside

    def available(self, items: Items, at: float) -> Items:
        """Those of some items that are available at this time."""
        if not self._limited or not items.size:
            return items
        found = self._available
        if found is None or found.among is not items or not found.since <= at < found.until or self._available_change != self.changes:
            self._make_room(int(items.max()) + 1)
            since, until = self._since, self._until
            there = (since <= at) & (at < until)
            last = max(since.max(initial=-math.inf, where=since <= at), until.max(initial=-math.inf, where=until <= at))
            following = min(since.min(initial=math.inf, where=since > at), until.min(initial=math.inf, where=until > at))
            found = self._available = Available(items[there[items]], items, float(last), float(following))
            self._available_change = self.changes
        return found.items

    def saved(self) -> list[tuple[int, Description]]:
        """Everything, for a snapshot."""
        return list(self.known.items())

    def restore(self, saved: list[Any]) -> None:
        for item, said in saved:
            self.describe(item, msgspec.convert(said, Description))


def labels_of(value: Attribute) -> list[str]:
    if isinstance(value, float):
        return []
    return [value] if isinstance(value, str) else list(dict.fromkeys(value))


def _put(array: NDArray[Any] | None, item: int, value: float) -> bool:
    """Write to a cached array. False if the array is too short, so that it must be made again."""
    if array is None:
        return True
    if item >= array.size:
        return False
    array[item] = value
    return True


def _room(n_items: int) -> int:
    """A larger size than needed, because items are added one by one."""
    return n_items + n_items // 4 + 64
