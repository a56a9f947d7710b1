"""The model: everything that follows from the log: agent, names, retired and pending items, and statistics.

Only `fold_all` changes it, by events in order, both live and in a replay.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.asking.accounts import Accounts
from albatross.core.policy import Policy
from albatross.core.streams import Turner
from albatross.core.vocabulary import Vocabulary
from albatross.kernels.operations import Items
from albatross.kernels.pairs import NOTHING
from albatross.service.engine.learned.descriptions import Descriptions
from albatross.service.engine.learned.filtering import Filters
from albatross.service.engine.learned.joining import fold_arrival, fold_departure, fold_join, fold_passed
from albatross.service.engine.learned.ledger import Ledger, entered, exchanged, grown, no_ledger, renewed
from albatross.service.engine.learned.options import policy_of
from albatross.service.engine.learned.pending import PENDING_WINDOW, Pending
from albatross.service.engine.learned.reacting import check_replaces
from albatross.service.engine.learned.room import ROOM, Room, sizes_for
from albatross.service.engine.learned.series import SeriesKeeper
from albatross.service.engine.learned.shared import Shared
from albatross.service.engine.learned.visitors import Visitors
from albatross.service.storage.events import (
    Arrived,
    Based,
    Decided,
    Described,
    Event,
    Exchanged,
    Expire,
    Genesis,
    Item,
    Joined,
    Passed,
    Rated,
    Reacted,
    Retire,
    Rewards,
    digest_of_version,
)
from albatross.service.storage.store import Base, DamagedLog

NONE: Items = np.empty(0, np.int32)

CHUNK = 8192
"""Limit of ratings learned in one call of compiled code."""


class Unlearned(NamedTuple):
    """Ratings that are not learned yet."""

    seqs: list[int]
    users: list[int]
    items: list[int]
    ratings: list[float]
    means: list[float | None]
    scores: list[float | None]


class Model:
    """The model that a log gives."""

    def __init__(self, genesis: Genesis, policy: Policy | None = None) -> None:
        self.genesis = genesis
        self.policy = policy_of(genesis) if policy is None else policy
        self.users, self.items = Vocabulary(genesis.users), Vocabulary(genesis.items)
        n_users, n_items = len(genesis.users) or ROOM, len(genesis.items) or ROOM
        self.agent = Agent(self.policy, n_users, n_items, genesis.seed)
        self.agent.search(False)  # until an engine has loaded what searches
        self.shared = Shared(self.agent, genesis.shard, genesis.shards) if genesis.shards > 1 else None
        """The exchange with other shards; None if there is one shard."""
        self.version = 0
        """The last version of the item exchange that was applied."""
        self.told = 0
        """The last of them with a payload of this shard."""
        self.base = 0
        """Versions up to this one were folded as one, before anything else."""
        self.read_version: Callable[[int], Sequence[bytes | None]] = _no_version
        """Returns the payloads of a version; set by the reader of the log."""
        self.lessons = 0
        """Counts events here that other shards should hear of."""
        self.spare: Agent | None = None
        """A larger copy of the agent, if there is one already: used by the event that needs it."""
        self.ledger: Ledger = no_ledger(n_users, n_items)
        self.series = SeriesKeeper()
        self.described = Descriptions()
        self.filters = Filters()
        self.rewards: Mapping[str, float] = {}
        """Rewards of named events."""
        self._set_rewards(genesis.events)
        self.visitors = Visitors()
        self.emptied = 0
        """Rows of visitors whose ratings have moved to rows of users."""
        self.retired: set[int] = set()
        self.pending = Pending()
        self.seq = 0
        self.passed_over: set[int] = set()
        """Events that were erased before this model reached them, and that no later event has explained yet."""
        self.expired = 0
        """For retention: decisions up to this event were checked."""
        self.given_up = 0
        """For silence: decisions up to this event are answered, or counted as answered."""
        self.ratings = 0
        self.decisions = 0
        self.turner = Turner()
        """Switched to its own random stream for each decision."""
        self.accounts = Accounts()
        self._unlearned = Unlearned([], [], [], [], [], [])
        self._shown: Items | None = None
        self.room = Room(genesis.seed)
        self._state_id: tuple[int, str] | None = None

    def begin_from(self, base: Base) -> None:
        """Before the first event: what all shards have added up to a version, as one."""
        if self.shared is None:
            raise DamagedLog(f"the log is that of one shard, and there is a base of version {base.version}")
        present = [content for content in self.shared.read(base.contents) if content is not None]
        self.make_room(1, 1 + max((content.largest for content in present), default=0))
        self.shared.fold(self.ledger, base.contents)
        self.version = self.base = base.version
        self.told = base.told[self.genesis.shard]

    def fold_all(self, seqs: Iterable[int], events: Iterable[Event]) -> None:
        """Apply the next events; ratings are learned at the next `learn`. Ratings come first in the code: a replay has millions of them."""
        user_numbers, item_numbers, unlearned = self.users.numbers, self.items.numbers, self._unlearned
        for seq, event in zip(seqs, events, strict=True):
            self.seq = seq
            if type(event) is not Rated:
                self._fold_other(seq, event)
                continue
            user = user_numbers.get(event.user)
            if user is None:
                if event.user in self.visitors.hosts:  # learned on another shard
                    continue
                user = self.users.add(event.user)
                self.make_room(len(self.users) + 1, len(self.items))  # one row stays free, for the next new user
            item = item_numbers[event.item]
            unlearned.seqs.append(seq)
            unlearned.users.append(user)
            unlearned.items.append(item)
            unlearned.ratings.append(event.rating)
            unlearned.means.append(event.mean)
            unlearned.scores.append(event.score)
            if event.user in self.pending:
                self.pending.answer(event.user, item)
            if len(unlearned.users) >= CHUNK:
                self.learn()

    def _fold_other(self, seq: int, event: Event) -> None:
        if isinstance(event, Decided):
            self.decisions += 1
            self.lessons += 1
            if event.user not in self.users.numbers:
                self.make_room(len(self.users) + 1, len(self.items))
            item_numbers, shown = self.items.numbers, self.ledger.item_shown
            numbers = [item_numbers[placed.item] for placed in event.items]
            for number in numbers:
                shown[number] += 1
            self.pending.show(event.user, numbers, seq)
            if self.decisions % PENDING_WINDOW == 0:
                self.pending.tidy(seq)
        elif isinstance(event, Item):
            if event.item not in self.items.numbers:
                self.make_room(len(self.users), len(self.items) + 1)
            self.retired.discard(self.items.add(event.item))
            self._shown = None
        elif isinstance(event, Retire):
            self.retired.add(self.items.numbers[event.item])
            self._shown = None
        elif isinstance(event, Described):
            self.described.describe(self.items.numbers[event.item], event.said)
        elif isinstance(event, Reacted):
            self._fold_reaction(seq, event)
        elif isinstance(event, Rewards):
            self._set_rewards(event.events)
        elif isinstance(event, Expire):
            self._fold_expired(event)
        elif isinstance(event, Exchanged):
            self._fold_version(event)
        elif isinstance(event, Joined):
            (fold_departure if event.away else fold_join)(self, event.visitor, event.user)
        elif isinstance(event, Arrived):
            fold_arrival(self, seq, event)
        elif isinstance(event, Passed):
            fold_passed(self, seq, event)
        elif isinstance(event, Based) and event.version > self.base:
            raise DamagedLog(f"nobody has the base of version {event.version}, by which event {seq} of the log is to be understood")

    def _fold_version(self, event: Exchanged) -> None:
        """Apply a version of the exchange. Earlier ratings are learned first, because the place of a version is part of the order."""
        if event.version <= self.base:
            return
        self.learn()
        contents = self.read_version(event.version)
        if self.shared is None or digest_of_version(contents) != event.digest:
            raise DamagedLog(f"the payloads of version {event.version} are not those that event {self.seq} of the log was written for")
        self.shared.fold(self.ledger, contents)
        self.version = event.version
        if contents[self.genesis.shard] is not None:
            self.told = event.version

    def _fold_reaction(self, seq: int, event: Reacted) -> None:
        """A named event: a new rating, or the replacement of an earlier one."""
        if not event.event_id and event.decision is not None:
            self.given_up = max(self.given_up, event.decision)
        if event.replaces is None or event.before is None:
            one = Rated(event.at, event.event_id, event.user, event.item, event.rating, event.decision, event.mean, event.score)
            self.fold_all([seq], [one])
            return
        if event.user in self.visitors.hosts:  # learned on another shard
            return
        self.learn()
        user, item = self.users.numbers[event.user], self.items.numbers[event.item]
        if event.rating != event.before:
            self.agent.replace(user, item, event.before, event.rating)
            self.lessons += 1
        entry = exchanged(self.ledger, user, item, event.replaces, seq, event.rating - event.before)
        if entry == NOTHING:  # it has been on another shard meanwhile
            renewed(self.ledger, user, item, seq)
        else:
            self.series.exchange(entry, event.before, event.rating, event.mean, event.score)

    def _fold_expired(self, event: Expire) -> None:
        """The dropped decisions are no longer pending. Items of those that this model never saw are counted as shown now."""
        for dropped in event.decisions:
            if dropped.seq in self.passed_over:
                self.decisions += 1
                self.make_room(len(self.users) + 1, len(self.items))
                for item in dropped.items:
                    self.ledger.item_shown[self.items.numbers[item]] += 1
        gone = {dropped.seq for dropped in event.decisions}
        self.passed_over -= gone
        self.expired = max(self.expired, *gone)
        self.pending.drop(gone)

    def _set_rewards(self, rewards: Mapping[str, float]) -> None:
        if rewards:
            check_replaces(self.genesis.policy, self.agent.state)
        self.rewards = rewards

    def learn(self) -> None:
        """Learn from the collected ratings, in one call of compiled code."""
        unlearned = self._unlearned
        if not unlearned.users:
            return
        seqs, users, items = np.array(unlearned.seqs), np.array(unlearned.users), np.array(unlearned.items)
        ratings = np.array(unlearned.ratings, np.float64)
        means, scores = np.array(unlearned.means, np.float64), np.array(unlearned.scores, np.float64)  # None becomes NaN
        for column in unlearned:
            column.clear()
        self.agent.learn(users, items, ratings)  # valid: the numbers are ours, and the ratings were within the scale
        self.ledger = entered(self.ledger, users, items, ratings, seqs)
        self.series.add(ratings, means, scores)
        self.ratings += users.size
        self.lessons += users.size

    def make_room(self, n_users: int, n_items: int) -> None:
        """Grow if there is no room for so many. Collected ratings are learned first: the time of growth is part of the order."""
        if n_users <= self.agent.n_users and n_items <= self.agent.n_items:
            return
        self.learn()
        sizes, spare = sizes_for(self.agent, n_users, n_items), self.spare
        if spare is not None and (spare.n_users, spare.n_items) == sizes:
            self.agent = spare
        else:
            self.agent.grow(*sizes)
        self.spare = None
        if self.shared is not None:
            self.shared.serve(self.agent)
        self.ledger = grown(self.ledger, *sizes)

    @property
    def n_users(self) -> int:
        """Users with ratings, or known from the beginning."""
        return len(self.users) - self.emptied

    def row_of(self, user: str) -> int:
        """The row of a user; for an unknown user, the row they would get."""
        return self.users.numbers.get(user, len(self.users.names))

    def ratings_of(self, user: str) -> int:
        number = self.users.numbers.get(user)
        return 0 if number is None else self.ledger.user_ratings.item(number)

    @property
    def shown(self) -> Items:
        """The items that are not retired."""
        if self._shown is None:
            self._shown = np.setdiff1d(np.arange(len(self.items), dtype=np.int32), np.fromiter(self.retired, np.int32), assume_unique=True)
        return self._shown

    @property
    def state_id(self) -> str:
        if self._state_id is None or self._state_id[0] != self.seq:
            self._state_id = (self.seq, self.agent.state_id)
        return self._state_id[1]

    def saved(self) -> dict[str, Any]:
        """Everything that is neither in the agent nor in the ledger, as JSON."""
        return {
            "users": self.users.names,
            "items": self.items.names,
            "retired": sorted(self.retired),
            "pending": {user: list(waiting.items()) for user, waiting in self.pending.items()},
            "seq": self.seq,
            "ratings": self.ratings,
            "decisions": self.decisions,
            "series": self.series.saved(),
            "rewards": self.rewards,
            "described": self.described.saved(),
            "given_up": self.given_up,
            "expired": self.expired,
            "version": self.version,
            "told": self.told,
            "base": self.base,
            "visitors": self.visitors.users,
            "elsewhere": self.visitors.elsewhere,
        }

    def restore(self, saved: dict[str, Any], ledger: Ledger, sums: NDArray[np.float64]) -> None:
        """Restore what `saved` gave."""
        self.users, self.items = Vocabulary(saved["users"]), Vocabulary(saved["items"])
        self.retired = set(saved["retired"])
        self._set_rewards(saved["rewards"])
        self.described.restore(saved["described"])
        self.given_up = saved["given_up"]
        self.expired = saved.get("expired", 0)
        self.version, self.told, self.base = saved["version"], saved["told"], saved.get("base", 0)
        self.visitors = Visitors(saved["visitors"], saved.get("elsewhere"))
        self.emptied = sum(visitor in self.users for visitor in (*self.visitors.users, *self.visitors.elsewhere))
        self.pending = Pending({user: dict(waiting) for user, waiting in saved["pending"].items()})
        self.seq, self.ratings, self.decisions = saved["seq"], saved["ratings"], saved["decisions"]
        self.series.width, self.series.count = saved["series"]["width"], saved["series"]["count"]
        if sums.shape != self.series.sums.shape:
            raise ValueError("its series has other columns")
        self.series.sums = sums
        self.ledger = ledger
        self._shown = None


def _no_version(number: int) -> Sequence[bytes | None]:
    raise DamagedLog(f"the payloads of version {number} are missing")
