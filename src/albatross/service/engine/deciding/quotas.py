"""Quotas of a slate: which items may still be shown, and which leave room for the new items that are owed.

An old item may use up the label that all new items have. So an item is offered only if enough new items can still follow it. That
depends on the items before and on nothing else, so propensities stay valid.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np

from albatross.kernels.operations import Items
from albatross.service.api.rules import Quota
from albatross.service.engine.deciding.newcomers import Newcomers
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.learned.descriptions import Mask, labels_of

MOST_TRIES = 32
"""Limit of attempts to find new items that can follow the items which some others could not follow. One for each label is enough."""

SOME = 256
"""At most so many new items are tried before all of them are."""


class Used(NamedTuple):
    quota: Quota
    times: dict[str, int]
    """How often each label was shown."""


class Quotas:
    """How much of the quotas of a slate is used."""

    def __init__(self, view: Overlay, used: Iterable[Used]) -> None:
        self.view = view
        self._used = list(used)

    @classmethod
    def of(cls, view: Overlay, quotas: list[Quota]) -> Self:
        return cls(view, [Used(quota, {}) for quota in quotas])

    def copy(self) -> "Quotas":
        return Quotas(self.view, [Used(quota, dict(times)) for quota, times in self._used])

    def labels(self, attribute: str, item: int) -> list[str]:
        known = self.view.model.described.known.get(item)
        value = (known.attributes or {}).get(attribute) if known is not None else None
        return [] if value is None else labels_of(value)

    def having(self, attribute: str, labels: list[str]) -> Mask:
        """Which items have one of these labels."""
        return self.view.model.described.having(attribute, labels, self.view.n_items)

    def left(self, items: Items, shown: int) -> Items:
        """Those of some items that may still be shown after this one."""
        for quota, times in self._used:
            labels = self.labels(quota.attribute, shown)
            for label in labels:
                times[label] = times.get(label, 0) + 1
            full = [label for label in labels if times[label] >= quota.most]
            if full:
                items = items[~self.having(quota.attribute, full)[items]]
        return items

    def offered(self, items: Items, is_new: Mask, newcomers: Newcomers) -> Items:
        """Those of some items after which the places that are owed to new items can still be filled, as far as they can be now.

        New items are found one after the other. With several quotas, or several labels per item, that may find too few, and then some
        items are left out, or some places filled as usual, without need.
        """
        owed, left = newcomers.owed, newcomers.left
        if not self._used or not owed or left < 2:
            return items
        old, every = items[~is_new[items]], items[is_new[items]]
        for new in (every[:: 1 + every.size // SOME], every):  # some of many are usually enough
            most = len(self._pick(new, owed))
            blocking = [self._blocking(old, new, min(most, left - 1)), self._blocking(every, new, most - 1)]
            if most == owed and not any(one.size for one in blocking):
                return items
        blocked: Mask = np.zeros(self.view.n_items, np.bool_)
        blocked[np.concatenate(blocking)] = True
        return items[~blocked[items]]

    def _pick(self, new: Items, n: int, first: int | None = None) -> list[int]:
        """Up to n new items that can be shown together, after a first one."""
        then = self.copy()
        if first is not None:
            new = then.left(new[new != first], first)
        picked: list[int] = []
        while new.size and len(picked) < n:
            picked.append(new.item(0))
            new = then.left(new[1:], picked[-1])
        return picked

    def _blocking(self, items: Items, new: Items, n: int) -> Items:
        """Those of some items after which no n new items can be shown."""
        if n < 1:
            return items[:0]
        unknown, blocking = self._in_the_way(items, self._pick(new, n)), []
        for _ in range(MOST_TRIES):
            if not unknown.size:
                break
            first = unknown.item(0)
            picked = self._pick(new, n, first)
            if len(picked) == n:
                unknown = self._in_the_way(unknown[1:], picked)
            else:
                alike = self._alike(first, new)[unknown]
                blocking.append(unknown[alike])
                unknown = unknown[~alike]
        return np.concatenate([*blocking, unknown])

    def _in_the_way(self, items: Items, picked: list[int]) -> Items:
        """Those of some items that cannot be shown together with the picked ones: they are among them, or share a label that is full."""
        then = self.copy()
        for item in picked:
            then.left(items[:0], item)
        within: Mask = np.isin(items, picked)
        for quota, times in then._used:
            full = [label for label, shown in times.items() if shown >= quota.most]
            if full:
                within |= self.having(quota.attribute, full)[items]
        return items[within]

    def _alike(self, item: int, new: Items) -> Mask:
        """Which items have all the labels of this one that new items have, too: what it blocks, they block."""
        alike: Mask = np.ones(self.view.n_items, np.bool_)
        for quota, _ in self._used:
            for label in self.labels(quota.attribute, item):
                having = self.having(quota.attribute, [label])
                if having[new].any():
                    alike &= having
        return alike
