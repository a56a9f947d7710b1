"""All that follows from the log: the agent, the names, what is retired, what waits for a rating, and how it went.

`fold` takes events in their order and is the only way anything here changes, live and in replay alike.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross import policies
from albatross.core.agent import Agent
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.kernels.operations import Items
from albatross.service.events import Decided, Event, Genesis, Item, Rated, Retire
from albatross.service.ledger import Ledger, entered, grown, no_ledger
from albatross.service.messages import UnknownItem
from albatross.service.series import SeriesKeeper

ROOM = 64
"""Users and items there is room for at first. A full model doubles: when it grows is settled by the log alone."""

PENDING = 10
"""Unanswered items per user that count, at most: the latest."""
PENDING_WINDOW = 100_000
"""Events after which a recommendation is no longer waited for: somebody who never answers costs nothing in the long run."""

NONE: Items = np.empty(0, np.int32)

CHUNK = 8192
"""Ratings learned in one call of compiled code, at most."""


def policy_of(genesis: Genesis) -> Policy:
    policy = policies.create(genesis.policy, genesis.parameters)
    check_servable(policy)
    return policy


def check_servable(policy: Policy) -> None:
    if policy.privileged:
        raise InvalidInput(f"policy {policy.policy_name()!r} must be told the truth of a simulated world; accepted: one that needs none")
    if policy.learns == "nothing":
        raise InvalidInput(f"policy {policy.policy_name()!r} learns nothing; accepted: a policy that does")


class Names:
    """Outside ids and their dense numbers, in the order of their first appearance. The last ones can be taken back."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = list(names)
        self.numbers: dict[str, int] = {name: number for number, name in enumerate(self.names)}

    def add(self, name: str) -> int:
        number = len(self.names)
        self.numbers[name] = number
        self.names.append(name)
        return number

    def take_back(self, length: int) -> None:
        for name in self.names[length:]:
            del self.numbers[name]
        del self.names[length:]

    def __len__(self) -> int:
        return len(self.names)


class Waiting(NamedTuple):
    """Ratings that were taken in and not learned yet."""

    users: list[int]
    items: list[int]
    ratings: list[float]
    means: list[float | None]
    scores: list[float | None]


class Model:
    """What a log amounts to."""

    def __init__(self, genesis: Genesis, policy: Policy | None = None) -> None:
        self.genesis = genesis
        self.policy = policy_of(genesis) if policy is None else policy
        self.users, self.items = Names(genesis.users), Names(genesis.items)
        n_users, n_items = len(genesis.users) or ROOM, len(genesis.items) or ROOM
        self.agent = Agent(self.policy, n_users, n_items, genesis.seed)
        self.ledger: Ledger = no_ledger(n_users, n_items)
        self.series = SeriesKeeper()
        self.retired: set[int] = set()
        self.pending: dict[str, dict[int, int]] = {}
        """Per user: the items that wait for a rating, the latest last, each with the event that showed it."""
        self.seq = 0
        self.ratings = 0
        self.decisions = 0
        self.growths = 0
        """How often there was no room left since this model was made: what such a step began cannot be taken back."""
        self.random = np.random.Generator(np.random.PCG64(0))
        """Turned to a stream of its own for each decision."""
        self._waiting = Waiting([], [], [], [], [])
        self._shown: Items | None = None

    def fold(self, seq: int, event: Event) -> None:
        """Take in the next event. Ratings are learned at the next `learn`."""
        self.fold_all([seq], [event])

    def fold_all(self, seqs: Iterable[int], events: Iterable[Event]) -> None:
        """Take in the next events. Ratings come first and in place: a replay has millions of them."""
        user_numbers, item_numbers, waiting = self.users.numbers, self.items.numbers, self._waiting
        for seq, event in zip(seqs, events, strict=True):
            self.seq = seq
            if type(event) is not Rated:
                self._fold_other(seq, event)
                continue
            user = user_numbers.get(event.user)
            if user is None:
                user = self.users.add(event.user)
                self.make_room(len(self.users) + 1, len(self.items))  # one row is free, for whoever comes next
            item = item_numbers[event.item]
            waiting.users.append(user)
            waiting.items.append(item)
            waiting.ratings.append(event.rating)
            waiting.means.append(event.mean)
            waiting.scores.append(event.score)
            if event.user in self.pending:
                self._answered(event.user, item)
            if len(waiting.users) >= CHUNK:
                self.learn()

    def _fold_other(self, seq: int, event: Event) -> None:
        if isinstance(event, Decided):
            self.decisions += 1
            if event.user not in self.users.numbers:
                self.make_room(len(self.users) + 1, len(self.items))
            waiting = self.pending.setdefault(event.user, {})
            for placed in event.items:
                item = self.items.numbers[placed.item]
                waiting.pop(item, None)
                waiting[item] = seq
            for item in list(waiting)[:-PENDING]:
                del waiting[item]
            if self.decisions % PENDING_WINDOW == 0:
                self._tidy()
        elif isinstance(event, Item):
            number = self.items.numbers.get(event.item)
            if number is None:
                self.make_room(len(self.users), len(self.items) + 1)
                number = self.items.add(event.item)
            self.retired.discard(number)
            self._shown = None
        elif isinstance(event, Retire):
            self.retired.add(self.items.numbers[event.item])
            self._shown = None

    def _answered(self, user: str, item: int) -> None:
        waiting = self.pending[user]
        waiting.pop(item, None)
        if not waiting:
            del self.pending[user]

    def learn(self) -> None:
        """Learn from the ratings taken in since the last time, in one call of compiled code."""
        waiting = self._waiting
        if not waiting.users:
            return
        users, items, ratings = np.array(waiting.users), np.array(waiting.items), np.array(waiting.ratings, np.float64)
        means, scores = np.array(waiting.means, np.float64), np.array(waiting.scores, np.float64)  # none becomes not a number
        for column in waiting:
            column.clear()
        self.agent.replay(users, items, ratings)
        self.ledger = entered(self.ledger, users, items)
        self.series.add(ratings, means, scores)
        self.ratings += users.size

    def make_room(self, n_users: int, n_items: int) -> None:
        """Grow if there is no room for so many. What waits is learned first: the moment of growth is part of the order."""
        if n_users <= self.agent.n_users and n_items <= self.agent.n_items:
            return
        self.learn()
        users, items = self.agent.n_users, self.agent.n_items
        while users < n_users:
            users *= 2
        while items < n_items:
            items *= 2
        self.agent.grow(users, items)
        self.ledger = grown(self.ledger, users, items)
        self.growths += 1

    def check_room(self, n_items: int) -> None:
        """Refuse more items than the policy can have: one with given features knows only so many."""
        if n_items <= self.agent.n_items:
            return
        room = self.agent.n_items
        while room < n_items:
            room *= 2
        try:
            self.policy.init(1, room, partial(stream, self.genesis.seed), None)
        except InvalidInput as error:
            raise UnknownItem(f"there is no room for item {n_items}: {error}") from error

    def row_of(self, user: str) -> int:
        """The row of a user; of a stranger, the row they would get."""
        return self.users.numbers.get(user, len(self.users))

    def ratings_of(self, user: str) -> int:
        number = self.users.numbers.get(user)
        return 0 if number is None else int(self.ledger.user_ratings[number])

    def waiting_for(self, user: str, seq: int) -> Items:
        """The items whose rating by this user is waited for when event `seq` is decided, the latest first."""
        waiting = self.pending.get(user)
        if waiting is None:
            return NONE
        return np.array([item for item, shown in reversed(waiting.items()) if shown > seq - PENDING_WINDOW], np.int32)

    @property
    def shown(self) -> Items:
        """The items that are not retired."""
        if self._shown is None:
            self._shown = np.array([number for number in range(len(self.items)) if number not in self.retired], np.int32)
        return self._shown

    def take_back(self, n_items: int, retired: set[int], pending: dict[str, dict[int, int]], decisions: int, seq: int) -> None:
        """Undo events that were decided but could not be committed: items, retirements and what some users are waited for."""
        self.items.take_back(n_items)
        self.retired = retired
        self._shown = None
        self.decisions = decisions
        self.seq = seq
        for user, waiting in pending.items():
            self.pending.pop(user, None)
            if waiting:
                self.pending[user] = waiting

    def _tidy(self) -> None:
        """Drop what is no longer waited for; `waiting_for` would not look at it any more."""
        oldest = self.seq - PENDING_WINDOW
        self.pending = {user: waiting for user, waiting in self.pending.items() if max(waiting.values()) > oldest}

    @property
    def state_id(self) -> str:
        self.learn()
        return self.agent.state_id

    def saved(self) -> dict[str, Any]:
        """What is neither in the agent nor in the ledger, as JSON."""
        return {
            "users": self.users.names,
            "items": self.items.names,
            "retired": sorted(self.retired),
            "pending": {user: list(waiting.items()) for user, waiting in self.pending.items()},
            "seq": self.seq,
            "ratings": self.ratings,
            "decisions": self.decisions,
            "series": self.series.saved(),
        }

    def restore(self, saved: dict[str, Any], ledger: Ledger, sums: NDArray[np.float64]) -> None:
        """Put back what `saved` gave."""
        self.users, self.items = Names(saved["users"]), Names(saved["items"])
        self.retired = set(saved["retired"])
        self.pending = {user: dict(waiting) for user, waiting in saved["pending"].items()}
        self.seq, self.ratings, self.decisions = saved["seq"], saved["ratings"], saved["decisions"]
        self.series.width, self.series.count = saved["series"]["width"], saved["series"]["count"]
        self.series.sums = sums
        self.ledger = ledger
        self._shown = None
