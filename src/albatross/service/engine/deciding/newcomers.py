"""A share of a slate's places for new items: a quota of the slate, with valid propensities.

Of n places, at least n · share go to new items. If that is not a whole number, one more is added at random, so that the share is right
on average. The owed places are drawn uniformly among the remaining ones, so the probability depends only on the items before.
"""

import math

from albatross.service.api.rules import Fresh


class FreshByPlace(Fresh, frozen=True):
    """The meaning in older logs: each place goes to a new item with this probability, whatever the others show."""


class FreshBesideQuotas(Fresh, frozen=True):
    """The meaning in older logs: quotas may leave no new item for a place that is owed to one."""


class Newcomers:
    """How many places are still owed to new items, and the probability that the next one is such a place."""

    def __init__(self, fresh: Fresh, n: int) -> None:
        wanted = round(n * fresh.share, 9)
        self.fresh = fresh
        self._owed = int(wanted)
        self._one_more = wanted - self._owed
        """The probability that one more is owed, given the items shown so far."""
        self._left = n

    @property
    def left(self) -> int:
        """The number of places that are left, if quotas leave so many."""
        return self._left

    @property
    def owed(self) -> int:
        """How many places may still be owed to new items."""
        return min(max(self._owed + (self._one_more > 0.0), 0), self._left)

    def share(self) -> float:
        """The probability that the next place is reserved for a new item."""
        if isinstance(self.fresh, FreshByPlace):
            return self.fresh.share
        fewer, more = self._shares()
        return (1.0 - self._one_more) * fewer + self._one_more * more

    def _shares(self) -> tuple[float, float]:
        """That probability, without and with one more owed place."""
        return max(self._owed, 0) / self._left, min(max(self._owed + 1, 0) / self._left, 1.0)

    def show(self, chance: float, usual: float) -> None:
        """An item takes the next place. `chance`: its probability if the place is for a new item (0 if it is not new); `usual`: else."""
        fewer, more = (share * chance + (1.0 - share) * usual for share in self._shares())
        total = (1.0 - self._one_more) * fewer + self._one_more * more
        if total > 0.0 and not math.isnan(total):
            self._one_more *= more / total
        self._owed -= chance > 0.0
        self._left -= 1
