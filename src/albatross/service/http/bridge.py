"""From the event loop to the engine's thread and back.

Crossing between the threads is the largest cost. So all requests of one turn of the loop cross together, and all answers of one
group of the engine come back together.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from albatross.service.api.answers import Answer, Readiness
from albatross.service.api.requests import Request
from albatross.service.engine.tickets import Ticket
from albatross.service.http.logs import unforeseen
from albatross.service.http.wire.exchange import Exchange

A = TypeVar("A", bound=Answer)


class AskedEngine(Protocol):
    """What this package needs of an engine."""

    @property
    def readiness(self) -> Readiness: ...

    @property
    def congested(self) -> bool: ...

    @property
    def capacity(self) -> int: ...

    @property
    def withheld(self) -> int: ...

    @property
    def breadth(self) -> int: ...

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]: ...


class Question(Ticket):
    """A request with its callback, which runs in the event loop once the request is settled."""

    __slots__ = ("settle",)

    settle: Callable[[Any], None]


class Posted(Question):
    """The request of an exchange."""

    __slots__ = ("exchange",)

    becomes_json = True
    exchange: Exchange


class Bridge:
    """Belongs to one event loop."""

    def __init__(self, engine: AskedEngine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine, self._loop = engine, loop
        self._collected: list[Question] = []
        self._tell = self._told

    def send(self, request: Request[Any], exchange: Exchange, settle: Callable[[Posted], None]) -> None:
        """Send a request. Later, in the event loop, `settle` gets the question with its answer or its error."""
        question = Posted(request, self._tell)
        question.exchange, question.settle = exchange, settle
        self._collect(question)

    async def ask(self, request: Request[A]) -> A:
        """The engine's answer. Raises the error if there is none."""
        future: asyncio.Future[A] = self._loop.create_future()

        def settle(question: Question) -> None:
            if future.cancelled():
                return
            if question.error is None:
                future.set_result(question.answer)  # type: ignore[arg-type]
            else:
                future.set_exception(question.error)

        question = Question(request, self._tell)
        question.settle = settle
        self._collect(question)
        return await future

    def _collect(self, question: Question) -> None:
        if not self._collected:
            self._loop.call_soon(self._hand_over)
        self._collected.append(question)

    def _hand_over(self) -> None:
        questions, self._collected = self._collected, []
        try:
            self._settle(self.engine.put(questions))
        except Exception as error:  # every waiting request must get the error
            for question in questions:
                question.error = error
            self._settle(questions)

    def _told(self, tickets: Sequence[Ticket]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so there is no listener
            self._loop.call_soon_threadsafe(self._settle, tickets)

    def _settle(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            try:
                ticket.settle(ticket)  # type: ignore[attr-defined]
            except Exception as error:  # one failure must not stop the other answers
                unforeseen(error)
