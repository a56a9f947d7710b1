"""A share of a slate's places for new items: a quota of the slate, with true propensities.

Of n places, n · share go to new items at least; where that is no whole number, one more by chance, so that the share is kept on average.
Each place gets one of those that are still owed with equal probability, which depends on the items before it alone.
"""

import math

from albatross.service.api.rules import Fresh


class FreshByPlace(Fresh, frozen=True):
    """What logs of before mean: each place goes to a new item with this probability, whatever the others show."""


class Newcomers:
    """How many places are still owed to new items, and with which probability the next one is."""

    def __init__(self, fresh: Fresh, n: int) -> None:
        wanted = round(n * fresh.share, 9)
        self.fresh = fresh
        self._owed = int(wanted)
        self._one_more = wanted - self._owed
        """The probability that one more is owed, given the items shown so far."""
        self._left = n

    def share(self) -> float:
        """The probability that the next place goes to a new item for their sake."""
        if isinstance(self.fresh, FreshByPlace):
            return self.fresh.share
        fewer, more = self._shares()
        return (1.0 - self._one_more) * fewer + self._one_more * more

    def _shares(self) -> tuple[float, float]:
        """That probability, if one more is not owed, and if it is."""
        return max(self._owed, 0) / self._left, min(max(self._owed + 1, 0) / self._left, 1.0)

    def show(self, chance: float, usual: float) -> None:
        """An item takes the next place. `chance`: its probability if the place goes to a new item, 0 for one that is not; `usual`: else."""
        fewer, more = (share * chance + (1.0 - share) * usual for share in self._shares())
        total = (1.0 - self._one_more) * fewer + self._one_more * more
        if total > 0.0 and not math.isnan(total):
            self._one_more *= more / total
        self._owed -= chance > 0.0
        self._left -= 1
