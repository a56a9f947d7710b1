"""The model as one group of requests sees it: the model, and the group's additions, which are not applied before they are on disk."""

import copy
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from albatross.core.agent import Agent
from albatross.core.vocabulary import Vocabulary
from albatross.kernels.operations import Items
from albatross.service.engine.learned.ledger import mean_rating
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.engine.learned.pending import still_pending, waiting_at
from albatross.service.engine.learned.room import sizes_for
from albatross.service.storage.events import Placed

ABOVE = 0.1
"""An item is called popular if its mean rating exceeds that of all ratings by this share of the scale."""


class Overlay:
    """Reads through to the model and never changes it. If the group is not committed, the overlay is dropped."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.agent: Agent = model.agent
        """The model's agent, or a larger copy of it."""
        self.added = Vocabulary()
        """New items of this group, numbered after those of the model."""
        self.late_items: set[str] = set()
        self.late_users: set[str] = set()
        """New items and users of this group's ratings, which come after everything else."""
        self.late_ratings = 0
        self._retired: set[int] | None = None
        self._showing: dict[str, list[tuple[Sequence[Placed], int]]] = {}
        """What this group shows to each user, and by which event."""
        self._shown: Items | None = None

    @functools.cached_property
    def average(self) -> float:
        """The mean of all ratings."""
        return mean_rating(self.model.ledger)

    @functools.cached_property
    def popular(self) -> float:
        """The least mean rating of an item that is called popular."""
        low, high = self.model.genesis.scale
        return self.average + ABOVE * (high - low)

    @property
    def n_items(self) -> int:
        return len(self.model.items.names) + len(self.added.names)

    @property
    def retired(self) -> set[int]:
        return self.model.retired if self._retired is None else self._retired

    @property
    def shown(self) -> Items:
        """The items that are not retired."""
        if self._retired is None and not self.added.names:
            return self.model.shown
        if self._shown is None:
            retired = np.fromiter(self.retired, np.int32)
            self._shown = np.setdiff1d(np.arange(self.n_items, dtype=np.int32), retired, assume_unique=True)
        return self._shown

    def number_of(self, item: str) -> int | None:
        number = self.model.items.numbers.get(item)
        if number is None and item in self.added:
            return len(self.model.items) + self.added.numbers[item]
        return number

    def name_of(self, number: int) -> str:
        names = self.model.items.names
        return names[number] if number < len(names) else self.added.names[number - len(names)]

    def names_of(self, numbers: Sequence[int]) -> list[str]:
        names = self.model.items.names
        return [self.name_of(number) for number in numbers] if self.added.names else [names[number] for number in numbers]

    def offer(self, item: str) -> None:
        """The item exists and may be shown."""
        number = self.number_of(item)
        if number is None:
            self.added.add(item)
        elif number in self.retired:
            self._retired = self.retired - {number}
        self._shown = None

    def with_items(self, items: Sequence[str]) -> "Overlay":
        """The same with further items; this overlay is not changed."""
        other = copy.copy(self)
        other.added, other._shown = Vocabulary([*self.added.names, *items]), None
        return other

    def retire(self, number: int) -> None:
        self._retired = self.retired | {number}
        self._shown = None

    def show(self, user: str, placed: Sequence[Placed], seq: int) -> None:
        """These items are now pending for the user."""
        self._showing.setdefault(user, []).append((placed, seq))

    def showing(self) -> Iterator[int]:
        """The items that this group shows, as often as it shows them."""
        for decisions in self._showing.values():
            for placed, _ in decisions:
                yield from (number for one in placed if (number := self.number_of(one.item)) is not None)

    def waiting_for(self, user: str, seq: int) -> Items:
        """The pending items of this user when event `seq` is decided, latest first."""
        waiting = self.waiting_numbers(user, seq)
        return np.array(waiting, np.int32) if waiting else NONE

    def waiting_numbers(self, user: str, seq: int) -> list[int]:
        pending = self.model.pending.get(user)
        for placed, shown in self._showing.get(user, ()):
            numbers = (self.number_of(one.item) for one in placed)
            pending = still_pending(pending or {}, (number for number in numbers if number is not None), shown)
        return waiting_at(pending, seq)

    def check_room(self, n_items: int = 0) -> None:
        """Refuse so many more items, and the new rows of ratings, if the policy or the machine cannot hold them."""
        users = len(self.model.users) + len(self.late_users) + 1
        ratings = self.model.ratings + self.late_ratings
        self.model.room.check(self.model.agent, users, self.n_items + len(self.late_items) + n_items, ratings)

    def agent_for(self, user: int) -> Agent:
        """An agent with rows for this user and all current items."""
        n_items = self.n_items
        if user >= self.agent.n_users or n_items > self.agent.n_items:
            self.agent = copy.copy(self.model.agent)
            self.agent.grow(*sizes_for(self.model.agent, user + 1, n_items))
        return self.agent
