"""A shop: returning visitors, categories, stock, a changing catalogue, clicks, purchases, and silence."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import SHOPPING
from albatross.core.errors import InvalidInput
from albatross.core.parameters import parameter
from albatross.environments.synthetic import Synthetic
from albatross.environments.world import NO_OFFSETS

TRAFFIC = (2, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 9, 10, 9, 8, 8, 8, 9, 10, 12, 13, 11, 7, 4)
"""Relative number of visits in each hour of a day."""
BETWEEN = 0.6
"""Share of the variance of item vectors that lies between categories."""


@dataclass(frozen=True)
class Shop(Synthetic):
    """The visitors of a shop, new and returning, day by day. The candidates are a window that moves through the catalogue.

    The probability of a click is (1 − silent) times the logistic function of level + the item's offset + ⟨user vector, item vector⟩. A
    click is worth 1; a purchase, which may follow it, 5. Item vectors lie around those of their categories. Each item is sold out one day
    in `stock` days. A returning user comes at about the hour of their last visit. Means are known, so regret is against the best item
    on sale.
    """

    n_users: int = parameter(2000, "number of users (n)", at_least=1)
    n_items: int = parameter(1000, "number of items (m), of which a part is on sale", at_least=2)
    candidates: int | None = parameter(200, "how many items are on sale at one time", at_least=1)
    categories: int = parameter(8, "number of categories", at_least=1)
    day: int = parameter(500, "visits a day", at_least=1)
    pace: int = parameter(50, "visits between two changes: one item leaves, one comes", at_least=1)
    stock: int = parameter(10, "each item is sold out one day in so many", at_least=2)
    returning: float = parameter(0.8, "probability that a visitor has been there before", at_least=0, at_most=1)
    silent: float = parameter(0.3, "probability that a user does not react, whatever is shown", at_least=0, below=1)
    buying: float = parameter(0.2, "probability that a click is followed by a purchase", at_least=0, at_most=1)
    level: float = parameter(-2.0, "base level before offsets and vectors: −2 is 12 clicks in 100")
    offsets: float = parameter(0.5, "standard deviation of the offsets of items", at_least=0)
    signal: float = parameter(1.0, "standard deviation of ⟨user vector, item vector⟩", above=0)

    reaction: ClassVar[int] = SHOPPING

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates is None or self.fresh or not self.repeats or self.clicks:
            given = f"candidates is {self.candidates}, fresh is {self.fresh}, repeats is {self.repeats} and clicks is {self.clicks}"
            raise InvalidInput(f"Shop: {given}; accepted: a number of candidates, not fresh, repeats, and not clicks")
        most = self.n_items - -(-self.n_items // self.stock)
        if self.candidates > most:
            raise InvalidInput(f"Shop: candidates is {self.candidates}; accepted: at most {most}, as some of {self.n_items} are sold out")

    def category_of(self, item: int) -> int:
        return item % self.categories

    def hour_of(self, visit: int) -> float:
        """The hour of the day of a visit, distributed as in `TRAFFIC`.

        >>> [round(Shop(day=100).hour_of(visit), 1) for visit in (0, 50, 99)]
        [0.0, 15.4, 23.6]
        """
        share = np.cumsum((0, *TRAFFIC)) / sum(TRAFFIC)
        return float(np.interp(visit % self.day / self.day, share, np.arange(25)))

    def _offered(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return NO_OFFSETS, np.zeros(self.candidates or 0, np.int32)

    def _further(self) -> dict[str, Any]:
        names = ("pace", "day", "stock", "returning", "silent", "buying")
        return {name: getattr(self, name) for name in names}

    def _factors(self, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        users = random.standard_normal((self.n_users, self.rank))
        scale = self.signal / math.sqrt(self.rank)
        centers = random.normal(0.0, scale * math.sqrt(BETWEEN), (self.categories, self.rank))
        items = centers[np.arange(self.n_items) % self.categories]
        items = items + random.normal(0.0, scale * math.sqrt(1.0 - BETWEEN), (self.n_items, self.rank))
        offsets = random.normal(self.level, self.offsets, (self.n_items, 1))
        return np.hstack([users, np.ones((self.n_users, 1))]), np.hstack([items, offsets])
