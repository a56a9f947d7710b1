"""The front's side of a shard in another process. All requests that wait for a shard go there in one call."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from albatross.service.api.answers import Answer, Readiness
from albatross.service.api.errors import NotReady, Overloaded, StorageFailed
from albatross.service.api.requests import Request
from albatross.service.engine.learned.visitors import Moved
from albatross.service.engine.moving import Forwarded
from albatross.service.engine.queue import ALONE, MOST_AT_ONCE, PATIENCE
from albatross.service.engine.tickets import Ticket, tell_all

CALLS = 2
"""Limit of calls under way: while a shard commits one group, the next is on its way, if it is large enough for its own call."""
WORTH = 64
"""Number of simple requests that is large enough. A call costs as much as a dozen of them, so fewer wait for the previous call."""
GATHER_SECONDS = 0.002
"""Longest wait for clients that were answered together and are expected to ask again."""
AGAIN_SECONDS = 0.1
"""Seconds between two attempts to reach a shard that does not answer."""
MOST_SECONDS = 60.0
"""How long a request waits for a restarting shard."""

AWAY = "the shard of this user is being started again; try again"
GOING = (NotReady, StorageFailed)
"""Errors of a shard that is about to end: the outcome of the request is unknown, and it is sent again."""

Settled = Sequence[Answer | BaseException]
Call = Callable[[list[Request[Any]]], "Future[Settled]"]
"""Asks a shard. The future fails if the shard is gone: then the outcome of the requests is unknown."""


GoOn = Callable[[Ticket, "Moved | Forwarded"], None]


class Glance(Ticket):
    """A request that does not wait for a restarting shard, because its caller has another answer."""

    __slots__ = ()


class Router:
    """Any thread may use it. Requests without an answer from a shard that ended are sent again: an event counts once."""

    def __init__(self, call: Call, most: int, go_on: GoOn | None = None) -> None:
        """`go_on` is called with a request, and an answer of the shard that is not the last word."""
        self._call, self._most, self._go_on = call, most, go_on
        self._changed = threading.Condition()
        self._waiting: deque[Ticket] = deque()
        self._weight = 0
        """Total weight of the waiting requests."""
        self._calls = self._slow = 0
        """Calls under way; those of slow requests are counted separately, because no other request waits for them."""
        self._expected = 0
        """Number of requests expected soon, if all clients that were answered ask again."""
        self._awaited = 1
        """Number of waiting requests at which the sender is woken."""
        self._not_before = 0.0
        """When to ask a shard again that did not answer."""
        self._reached = False
        self._closed = False
        self._sender = threading.Thread(target=self._send_all, name="albatross-router", daemon=True)
        self._sender.start()

    @property
    def readiness(self) -> Readiness:
        detail = None if self._reached else "the shard is being started"
        return Readiness(self._reached, "ready" if self._reached else "opening", 0, 0, len(self._waiting), detail)

    @property
    def congested(self) -> bool:
        try:
            return self._reached and time.monotonic() - self._waiting[0].since > PATIENCE
        except IndexError:
            return False

    @property
    def capacity(self) -> int:
        return self._most

    def reached(self) -> None:
        """Record that the shard answers."""
        with self._changed:
            self._reached = True
            self._changed.notify_all()

    def wait_reached(self, timeout: float | None = None) -> bool:
        """Wait until the shard answers; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: self._reached, timeout)

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        """Queue tickets. Returns those that are refused at once; the others are told later, from another thread."""
        refused: list[Ticket] = []
        now = time.monotonic()
        with self._changed:
            for ticket in tickets:
                if self._closed:
                    ticket.error = NotReady("the front is being closed")
                elif isinstance(ticket, Glance) and not self._reached:
                    ticket.error = NotReady(AWAY)
                elif len(self._waiting) >= self._most:
                    ticket.error = Overloaded(f"{len(self._waiting)} requests wait already; try again in {Overloaded.retry_after} s")
                else:
                    ticket.since = now
                    self._waiting.append(ticket)
                    self._weight += ticket.weight
                    continue
                refused.append(ticket)
            if len(self._waiting) >= self._awaited:
                self._changed.notify_all()
        return refused

    def close(self) -> None:
        """Answer what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._sender.join()
        with self._changed:
            self._changed.wait_for(lambda: self._calls + self._slow == 0, MOST_SECONDS)

    def _send_all(self) -> None:
        """The loop of the sender thread."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._is_worth_a_call())
                if not self._waiting:
                    if self._closed:
                        return
                    continue
                pause = self._not_before - time.monotonic() if self._is_worth_a_call() else AGAIN_SECONDS
                if pause > 0:
                    self._changed.wait(pause)
                    continue
                self._gather()
                taken = self._take()
                slow = isinstance(taken[0].request, ALONE)
                self._slow += slow
                self._calls += not slow
            try:
                future = self._call([ticket.request for ticket in taken])
            except Exception as error:  # starting a call may fail like the call itself
                future = Future()
                future.set_exception(error)
            future.add_done_callback(lambda done, taken=taken: self._settle(taken, done))  # type: ignore[misc]

    def _is_worth_a_call(self) -> bool:
        """Whether requests wait, and need not wait for a call under way."""
        if not self._waiting:
            return False
        if isinstance(self._waiting[0].request, ALONE):
            return self._slow < CALLS
        return self._calls == 0 or (self._calls < CALLS and self._weight >= WORTH)

    def _gather(self) -> None:
        """Wait a moment for clients that are expected to ask again: one call for all costs little more than one for the first."""
        end = time.monotonic() + GATHER_SECONDS
        self._awaited = self._expected
        while len(self._waiting) < self._expected and not self._closed and (left := end - time.monotonic()) > 0:
            self._changed.wait(left)
        self._awaited = 1

    def _take(self) -> list[Ticket]:
        """All waiting requests, up to a limit. A slow request is taken alone, so that no other waits for its answer."""
        taken: list[Ticket] = []
        weight = 0
        while self._waiting and weight < MOST_AT_ONCE:
            alone = isinstance(self._waiting[0].request, ALONE)
            if alone and taken:
                break
            taken.append(self._waiting.popleft())
            weight += taken[-1].weight
            if alone:
                break
        self._weight -= weight
        return taken

    def _settle(self, taken: list[Ticket], done: "Future[Settled]") -> None:
        try:
            settled = done.result()
        except Exception:  # the shard is gone, or is not there yet
            settled = [NotReady(AWAY)] * len(taken)
        again: list[Ticket] = []
        going: list[tuple[Ticket, Moved | Forwarded]] = []
        now = time.monotonic()
        for ticket, result in zip(taken, settled, strict=True):
            if self._go_on is not None and isinstance(result, Moved | Forwarded):
                going.append((ticket, result))
            elif isinstance(result, GOING) and now - ticket.since < MOST_SECONDS and not isinstance(ticket, Glance):
                again.append(ticket)
            elif isinstance(result, BaseException):
                ticket.error = result
            else:
                ticket.answer = result
        with self._changed:
            slow = isinstance(taken[0].request, ALONE)
            self._slow -= slow
            self._calls -= not slow
            self._expected = 0 if slow or again else min(len(taken) + len(self._waiting), MOST_AT_ONCE)
            self._reached = not any(isinstance(result, GOING) for result in settled)
            if again:
                self._not_before = now + AGAIN_SECONDS
                self._waiting.extendleft(reversed(again))
                self._weight += sum(ticket.weight for ticket in again)
            glances = [] if self._reached else [ticket for ticket in self._waiting if isinstance(ticket, Glance)]
            for ticket in glances:
                self._waiting.remove(ticket)
                self._weight -= ticket.weight
                ticket.error = NotReady(AWAY)
            self._changed.notify_all()
        tell_all(ticket for ticket in (*taken, *glances) if ticket.error is not None or ticket.answer is not None)
        for ticket, word in going:
            assert self._go_on is not None
            self._go_on(ticket, word)
