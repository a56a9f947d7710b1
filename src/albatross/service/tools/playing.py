"""Simulated customers of a shop as load on a running service: they visit, click, buy and log in; items sell out."""

from collections.abc import Iterator
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.environments.shop import Shop
from albatross.environments.world import CLICK, PURCHASE, arrivals, expected_reward, reaction
from albatross.service.api.answers import Decision
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.rules import Fresh
from albatross.service.api.verbs import Verbs

SHOP = Shop(n_users=100, n_items=200, candidates=60, day=100, pace=20, level=-3.5, offsets=1.5, signal=2.0)
"""Small enough to show learning within an afternoon."""
EVENTS = {"impression": 0.0, "click": 1.0, "cart": 3.0, "purchase": 5.0}
SLATE = 4
LOGS_IN, LOGS_OUT = 0.5, 0.2
"""Probability that a visitor logs in during a visit; probability that a known customer comes back logged out."""
LOOKS_FOR = 0.25
"""Probability that a visit is to one category only."""
PIECES = 5
"""An item is sold out after so many sales, until the next day."""


class Played(NamedTuple):
    visits: int
    shown: int
    clicks: int
    purchases: int
    joins: int
    refused: int
    """Visits without a recommendation, because the wanted category was sold out."""


class Play:
    """The customers of one service. Each visit requests one slate and reacts to it."""

    def __init__(self, service: Verbs, visits: int, seed: int = 0, shop: Shop = SHOP) -> None:
        self.service, self.shop, self.n_visits = service, shop, visits
        self._random = stream(seed, "playing")
        self._world = shop.world(seed)
        self._users = arrivals(self._world, stream(seed, "arrivals"), visits)
        self._known: dict[int, str] = {}
        """The id under which the service knows each user."""
        self._numbers = {_name(item): item for item in range(shop.n_items)}
        """Items of this simulation by name. Other items of the service get no clicks."""
        self._sold: dict[int, int] = {}
        self._first, self._day = 0, -1
        self.played = Played(0, 0, 0, 0, 0, 0)

    def open(self) -> None:
        """Check the service, and add the first items."""
        events = self.service.version().events
        missing = [f"{name}={reward:g}" for name, reward in EVENTS.items() if name not in events]
        if missing:
            given = ", ".join(events) or "none"
            raise InvalidInput(
                f"the service has the events {given}; accepted: one that has {', '.join(missing)} too (albatross serve --events)"
            )
        for item in range(self._on_sale):
            self._put_on_sale(item)

    @property
    def _on_sale(self) -> int:
        return self.shop.candidates or self.shop.n_items

    def visits(self) -> Iterator[Played]:
        """All visits in order; yields the totals so far."""
        for visit, user in enumerate(self._users.tolist()):
            self._turn_over(visit)
            self._count(visits=1)
            self._visit(user)
            yield self.played

    def _turn_over(self, visit: int) -> None:
        """Retire and add items; once a day, restock."""
        while self._first < visit // self.shop.pace:
            self.service.retire_item(_name(self._first % self.shop.n_items))
            self._first += 1
            self._put_on_sale((self._first + self._on_sale - 1) % self.shop.n_items)
        if visit // self.shop.day > self._day:
            self._day = visit // self.shop.day
            for item in [item for item, pieces in self._sold.items() if pieces >= PIECES]:
                self.service.upsert_item(_name(item), in_stock=True)
            self._sold.clear()

    def _put_on_sale(self, item: int) -> None:
        price = 5.0 + 5.0 * (item * 7 % 13)
        self.service.upsert_item(_name(item), attributes={"category": self._category(item), "price": price}, in_stock=True)

    def _category(self, item: int) -> str:
        return f"category-{self.shop.category_of(item)}"

    def _visit(self, user: int) -> None:
        random = self._random
        name = self._known.get(user)
        if name is not None and name.startswith("customer") and random.random() < LOGS_OUT:
            name = None
        wanted = self._category(int(random.integers(self.shop.categories))) if random.random() < LOOKS_FOR else None
        where = None if wanted is None else {"attribute": "category", "is": wanted}
        quotas = {"category": 2} if wanted is None else None
        try:
            decision = self.service.recommend(name, SLATE, where=where, quotas=quotas, fresh=Fresh(0.1, 20))
        except NoEligibleCandidate:
            self._count(refused=1)
            return
        self._known[user] = decision.user
        if random.random() >= self.shop.silent:
            self._react(user, decision)
        if not self._known[user].startswith("customer") and random.random() < LOGS_IN:
            self._known[user] = f"customer-{user}"
            self._count(joins=self.service.join(decision.user, self._known[user]).joined)

    def _react(self, user: int, decision: Decision) -> None:
        """Report what a reacting customer does with each item of a slate, first to last."""
        world = self._world
        for shown in decision.items:
            item = self._numbers.get(shown.item)
            expected = 0.0 if item is None else expected_reward(world, user, 0, item) / (1.0 - world.silent)
            reward = reaction(world, expected, self._random.random())
            self.service.report(decision, "impression" if reward < CLICK else "click", shown.item)
            self._count(shown=1, clicks=reward >= CLICK, purchases=reward >= PURCHASE)
            if item is not None and reward >= PURCHASE:
                self.service.report(decision, "cart", shown.item)
                self.service.report(decision, "purchase", shown.item)
                self._sell(item)

    def _sell(self, item: int) -> None:
        self._sold[item] = self._sold.get(item, 0) + 1
        if self._sold[item] == PIECES:
            self.service.upsert_item(_name(item), in_stock=False)

    def _count(self, **more: int) -> None:
        self.played = self.played._replace(**{name: getattr(self.played, name) + int(number) for name, number in more.items()})


def _name(item: int) -> str:
    return f"item-{item}"
