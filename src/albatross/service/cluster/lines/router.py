"""The front's side of a shard in another process: what is under way there, and what waits while the shard is away."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from albatross.service.api.answers import Readiness
from albatross.service.api.errors import EventInFlight, NotReady, Overloaded, StorageFailed
from albatross.service.engine.learned.visitors import Moved
from albatross.service.engine.moving import Forwarded
from albatross.service.engine.queue import ALONE, PATIENCE, most_withheld
from albatross.service.engine.sharing import SHARING
from albatross.service.engine.tickets import Settled, Ticket, tell_all
from albatross.service.engine.warming import is_changing, is_explaining

MOST_PATIENCE = 2 * PATIENCE
"""Seconds that the oldest request may be under way, which includes its own commit; after that, new ones are refused."""
AGAIN_SECONDS = 0.1
"""Seconds between two attempts to reach a shard that does not answer."""
MOST_SECONDS = 60.0
"""How long a request waits for a restarting shard."""

AWAY = "the shard of this user is being started again; try again"
GOING = (NotReady, StorageFailed)
"""Errors of a shard that is about to end: the outcome of the request is unknown, and it is sent again."""
STILL = (EventInFlight, Overloaded)
"""What a request may meet that is sent again: its first attempt, or all others that were sent again."""

Settle = Callable[[Sequence[tuple[Ticket, Settled]]], None]
Call = Callable[[Sequence[Ticket], Settle], None]
"""Asks a shard, without waiting. Each ticket is settled once, together with others or alone, from any thread.

If the shard is gone, that is with `NotReady`: then the outcome is unknown.
"""

GoOn = Callable[[Ticket, "Moved | Forwarded"], None]


class Glance(Ticket):
    """A request that does not wait for a restarting shard, because its caller has another answer."""

    __slots__ = ()


class Router:
    """Any thread may use it. Requests without an answer from a shard that ended are sent again: an event counts once."""

    def __init__(self, call: Call, most: int, go_on: GoOn | None = None) -> None:
        """`go_on` is called with a request, and an answer of the shard that is not the last word."""
        self._call, self._most, self._go_on = call, most, go_on
        self._most_slow = most_withheld(most)
        self._changed = threading.Condition()
        self._under_way: dict[Ticket, float] = {}
        """When each was sent, oldest first."""
        self._slow: set[Ticket] = set()
        """Requests under way that take long. No other waits for them here."""
        self._waiting: deque[Ticket] = deque()
        """While the shard is away."""
        self._repeated: set[Ticket] = set()
        """Requests that were sent before, with an unknown outcome."""
        self._timer: threading.Timer | None = None
        self._reached = False
        self._explains = False
        """Whether the shard has explained something since it was reached. Before, what explains may be compiled there first."""
        self._closed = False

    @property
    def readiness(self) -> Readiness:
        detail = None if self._reached else "the shard is being started"
        return Readiness(self._reached, "ready" if self._reached else "opening", 0, 0, len(self._under_way) + len(self._waiting), detail)

    @property
    def congested(self) -> bool:
        try:
            oldest = next(iter(self._under_way.values()), None)
        except RuntimeError:  # another thread has changed it just now
            return False
        return oldest is not None and self._reached and time.monotonic() - oldest > MOST_PATIENCE

    @property
    def capacity(self) -> int:
        return self._most + self.withheld

    @property
    def withheld(self) -> int:
        """How many requests under way take long, and so do not delay others."""
        return min(len(self._slow), self._most_slow)

    def reached(self) -> None:
        """Record that the shard answers, and send what waits for it."""
        with self._changed:
            self._reached = True
            self._changed.notify_all()
        self._send_waiting()

    def lost(self) -> None:
        """Record that the shard is away, also if nothing is under way to it."""
        with self._changed:
            self._reached = self._explains = False

    def wait_reached(self, timeout: float | None = None) -> bool:
        """Wait until the shard answers; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: self._reached, timeout)

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        """Send tickets. Returns those that are refused at once; the others are told later, perhaps from another thread."""
        refused: list[Ticket] = []
        sent: list[Ticket] = []
        now = time.monotonic()
        with self._changed:
            count, slow = len(self._under_way) + len(self._waiting), len(self._slow)
            for ticket in tickets:
                if self._closed:
                    ticket.error = NotReady("the front is being closed")
                elif not self._reached and isinstance(ticket, Glance):
                    ticket.error = NotReady(AWAY)
                elif count >= self._most:
                    ticket.error = Overloaded(f"{count} requests wait already; try again in {Overloaded.retry_after} s")
                elif (takes_long := self._takes_long(ticket)) and slow >= self._most_slow and not isinstance(ticket.request, SHARING):
                    ticket.error = Overloaded(f"{slow} requests that take long wait already; try again in {Overloaded.retry_after} s")
                else:
                    ticket.since = now
                    count, slow = count + (not takes_long), slow + takes_long
                    sent.append(ticket)
                    continue
                refused.append(ticket)
            if not self._reached:
                self._waiting += sent
                self._try_later()
                return refused
            self._note(sent, now)
        if sent:
            self._call(sent, self._settle)
        return refused

    def close(self) -> None:
        """Answer what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not (self._under_way or self._slow or self._waiting), MOST_SECONDS)

    def _note(self, tickets: Sequence[Ticket], now: float) -> None:
        """These are under way. The lock is held."""
        for ticket in tickets:
            if self._takes_long(ticket):
                self._slow.add(ticket)
            else:
                self._under_way[ticket] = now

    def _takes_long(self, ticket: Ticket) -> bool:
        """Whether it takes long by itself, or may wait until the shard has compiled what it needs."""
        request = ticket.request
        return isinstance(request, ALONE) or is_changing(request) or (not self._explains and is_explaining(request))

    def _try_later(self) -> None:
        """Send what waits after a pause, unless that will happen anyway. The lock is held."""
        if self._timer is None and self._waiting:
            self._timer = threading.Timer(AGAIN_SECONDS, self._try_again)
            self._timer.daemon = True
            self._timer.start()

    def _try_again(self) -> None:
        with self._changed:
            self._timer = None
        self._send_waiting()

    def _send_waiting(self) -> None:
        with self._changed:
            waiting, self._waiting = list(self._waiting), deque()
            self._note(waiting, time.monotonic())
        if waiting:
            self._call(waiting, self._settle)

    def _settle(self, settled: Sequence[tuple[Ticket, Settled]]) -> None:
        again: list[Ticket] = []
        told: list[Ticket] = []
        going: list[tuple[Ticket, Moved | Forwarded]] = []
        now = time.monotonic()
        with self._changed:
            away, explained, before = False, False, self._reached
            for ticket, result in settled:
                if self._under_way.pop(ticket, None) is None:
                    self._slow.discard(ticket)
                if isinstance(result, BaseException):
                    ending = isinstance(result, GOING)
                    away = away or ending
                    repeated = self._repeated and ticket in self._repeated and isinstance(result, STILL)
                    if (ending or repeated) and now - ticket.since < MOST_SECONDS and not isinstance(ticket, Glance):
                        again.append(ticket)
                        continue
                    if isinstance(result, Moved) and self._go_on is not None:
                        going.append((ticket, result))
                    else:
                        ticket.error = result
                        told.append(ticket)
                elif isinstance(result, Forwarded) and self._go_on is not None:
                    going.append((ticket, result))
                else:
                    ticket.answer = result
                    told.append(ticket)
                    explained = explained or is_explaining(ticket.request)
            self._reached = not away
            self._explains = self._reached and (self._explains or explained)
            if self._repeated:
                self._repeated.difference_update(told, (ticket for ticket, _ in going))
            if again:
                self._repeated.update(again)
                self._waiting.extendleft(reversed(again))
                self._try_later()
            if away:
                told += self._take_glances()
            if self._closed or self._reached != before:
                self._changed.notify_all()
        tell_all(told)
        for ticket, word in going:
            assert self._go_on is not None
            self._go_on(ticket, word)

    def _take_glances(self) -> list[Ticket]:
        """The waiting requests that do not wait for a shard that is away. The lock is held."""
        glances: list[Ticket] = [ticket for ticket in self._waiting if isinstance(ticket, Glance)]
        for ticket in glances:
            self._waiting.remove(ticket)
            ticket.error = NotReady(AWAY)
        return glances
