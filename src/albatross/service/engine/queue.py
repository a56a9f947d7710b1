"""Requests that wait for the engine's owner thread: their limit, their groups, and their expected time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from albatross.service.api.errors import EventInFlight, Overloaded
from albatross.service.api.requests import ForgetUser, JoinUsers, LookBack, Recommend, Request, TakeBackup, TakeSnapshot, Verify
from albatross.service.engine.describing import describes
from albatross.service.engine.sharing import SHARING, TakeBase
from albatross.service.engine.tickets import Ticket

MOST_WITHHELD = 2048
"""Limit of requests that wait for machine code, besides half of the queue: each may hold a connection, and others need some, too."""
RELEASED_AT_ONCE = 16
"""Of those that waited for machine code, so many are answered at once in turn with others: many at once would make all others wait."""
MOST_AT_ONCE = 256
"""Limit of requests committed together: the first should not wait long for the last."""
PATIENCE = 0.05
"""Seconds that the oldest request may wait; after that, new ones from the network are refused."""
GATHER_SECONDS = 0.001
"""How long to wait, at most, for clients that are expected to ask again."""
SLOWEST_PACE = 0.005
"""Limit of the estimated seconds per request: a single event such as compiling says little about the next."""
PACE_SHARE = 0.1
"""Weight of the last group in the estimated time per request."""

ALONE = (ForgetUser, JoinUsers, TakeSnapshot, TakeBackup, LookBack, Verify, TakeBase, *SHARING)
"""Requests that are not committed together with others."""
_ALONE = frozenset(ALONE)
Needing = Callable[[Request[Any]], bool]
"""Whether a request needs machine code that is not there yet. It waits for it, and a request to forget somebody waits behind it:
otherwise a join, or a decision, could write the name again."""


def most_withheld(most: int) -> int:
    """How many of so many requests may wait for machine code."""
    return max(1, min(most // 2, MOST_WITHHELD))


class Queue:
    """Changed only while `changed` is held; its properties may be read at any time."""

    def __init__(self, changed: threading.Condition, most: int) -> None:
        self._changed, self._most = changed, most
        self._tickets: deque[Ticket] = deque()
        self._flying: set[str] = set()
        """Ids of events that wait or are being processed."""
        self._weight = 0
        """The cost of all that wait, in simple requests."""
        self._awaited = 1
        """Wake the owner thread when so many requests wait."""
        self._expected = 0
        """Expected number of waiting requests, if every answered client asks again: one commit for all costs little more than for one."""
        self._pace = 0.0
        """Recent seconds per request."""
        self._needing: Needing | None = None
        self._withheld: list[Ticket] = []
        """Requests that wait for machine code, while others are answered."""
        self._released: deque[Ticket] = deque()
        """Requests whose machine code is there now. They get their turn, a few at a time."""
        self._last_let_in: Ticket | None = None
        """The last of those few, while it waits among the others."""
        self._most_withheld = most_withheld(most)

    def __len__(self) -> int:
        return len(self._tickets) + len(self._released)

    @property
    def congested(self) -> bool:
        """Whether the oldest request has waited too long."""
        try:
            return time.monotonic() - self._tickets[0].since > PATIENCE
        except IndexError:
            return False

    @property
    def capacity(self) -> int:
        """How many requests can be answered before the last of them has waited too long."""
        room = self._most if self._pace * self._most <= PATIENCE else int(PATIENCE / self._pace)
        return room + self.withheld  # they are in flight, and do not make others wait

    @property
    def withheld(self) -> int:
        """How many requests wait for machine code, or for their turn after that."""
        return len(self._withheld) + len(self._released)

    def add(self, ticket: Ticket, now: float) -> None:
        """Add a ticket. Refuses it if the queue is full, or if one of its events is being processed."""
        withheld = self._is_needing(ticket) or (type(ticket.request) is ForgetUser and self.withheld > 0)
        # Too many that wait for machine code refuse only their like.
        waiting, most = (self.withheld, self._most_withheld) if withheld else (len(self._tickets), self._most)
        if waiting >= most:
            raise Overloaded(f"{waiting} requests wait already; try again in {Overloaded.retry_after} s")
        if ids := ticket.event_ids:
            if not self._flying.isdisjoint(ids):
                raise EventInFlight("this event_id is still being processed; try again to get its answer")
            self._flying.update(ids)
        ticket.since = now
        self._sort_in(ticket)

    def wake(self) -> None:
        """Wake the owner thread, if enough requests wait."""
        if len(self._tickets) >= self._awaited or self._weight >= MOST_AT_ONCE:
            self._changed.notify()

    def gather(self, ending: Callable[[], bool], seconds: float | None) -> None:
        """Wait for requests, and a moment longer for expected ones that can join the group; or until the end, or for so many seconds."""
        self._changed.wait_for(lambda: len(self) or ending(), seconds)
        if len(self) < self._expected and self._weight < MOST_AT_ONCE and not ending():
            self._awaited = self._expected
            self._changed.wait(GATHER_SECONDS)
            self._awaited = 1

    def take(self) -> list[Ticket]:
        """All waiting requests, up to a limit, or up to one that must be alone.

        A recommendation after a description of items waits for the next group: descriptions are visible only when they are on disk.
        """
        if self._released and self._last_let_in is None:
            self._let_in()
        taken: list[Ticket] = []
        weight, describing, tickets = 0, False, self._tickets
        while tickets and weight < MOST_AT_ONCE:
            ticket = tickets[0]
            kind = type(ticket.request)
            alone = kind in _ALONE
            if taken and (alone or (describing and kind is Recommend)):
                break
            describing = describing or describes(ticket.request)
            taken.append(tickets.popleft())
            weight += ticket.weight
            if ticket is self._last_let_in:
                self._last_let_in = None
            if alone:
                break
        self._weight -= weight
        return taken

    def withhold(self, needing: Needing | None) -> None:
        """From now on, withhold the requests that need this; None: nothing. Those that need it no longer get their turn."""
        waited, waiting = [*self._released, *self._withheld], self._tickets
        self.take_all()
        self._needing = needing
        for ticket in waited:
            self._sort_in(ticket, waited=True)
        for ticket in waiting:
            self._sort_in(ticket)
        self._changed.notify()

    def _is_needing(self, ticket: Ticket) -> bool:
        return self._needing is not None and self._needing(ticket.request)

    def _sort_in(self, ticket: Ticket, waited: bool = False) -> None:
        """Put a ticket where it belongs. `waited`: whether it was withheld. None that forgets somebody overtakes one that waits."""
        forgets = type(ticket.request) is ForgetUser
        if self._is_needing(ticket) or (forgets and self._withheld):
            self._withheld.append(ticket)
        elif waited or (forgets and self._released):
            self._released.append(ticket)
        else:
            self._tickets.append(ticket)
            self._weight += ticket.weight

    def _let_in(self) -> None:
        """Put a few that are released behind the others."""
        now = time.monotonic()
        for _ in range(min(len(self._released), RELEASED_AT_ONCE)):
            self._last_let_in = ticket = self._released.popleft()
            ticket.since = now
            self._tickets.append(ticket)
            self._weight += ticket.weight

    def take_all(self) -> list[Ticket]:
        tickets = [*self._released, *self._withheld, *self._tickets]
        self._withheld, self._released, self._tickets, self._weight = [], deque(), deque(), 0
        self._last_let_in = None
        return tickets

    def release(self, tickets: Iterable[Ticket]) -> None:
        """These tickets are processed."""
        if self._flying:
            for ticket in tickets:
                self._flying.difference_update(ticket.event_ids)

    def observe(self, answered: list[Ticket], seconds: float) -> None:
        """Record the duration of a group."""
        one = seconds / sum(ticket.weight for ticket in answered)
        self._pace += PACE_SHARE * (min(one, SLOWEST_PACE) - self._pace)
        self._expected = min(len(answered) + len(self._tickets), MOST_AT_ONCE)
