"""A request on its way through the engine, with its result."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from albatross.service.api.answers import Answer
from albatross.service.api.requests import (
    Feedback,
    FeedbackBatch,
    ListEvents,
    ListItems,
    ListUsers,
    Recommend,
    Request,
    SimilarItems,
    Suppose,
    UpsertItems,
    ViewUser,
)

Settled = Answer | BaseException
"""What became of a request."""


class Ticket:
    """A waiting request. Once it is settled, it has an `answer` or an `error`, and `tell` is called."""

    __slots__ = ("answer", "error", "request", "since", "tell", "weight")

    becomes_json = False
    """Whether the answer is only encoded. Then a large part of it may be JSON already."""

    def __init__(self, request: Request[Any], tell: "Tell") -> None:
        self.request = request
        self.tell = tell
        """Called from the engine's thread, once for all tickets of a group that share it."""
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.since = 0.0
        """When it was queued."""
        self.weight = _weight_of(request)
        """Its cost in simple requests."""

    @property
    def event_ids(self) -> Sequence[str]:
        request = self.request
        if type(request) is Feedback:
            return (request.event_id,)
        return [event.event_id for event in request.events] if type(request) is FeedbackBatch else ()


def _weight_of(request: Request[Any]) -> int:
    if type(request) is Feedback:
        return 1
    if type(request) is Recommend:
        named = 0 if request.candidates is None else len(request.candidates)
        return (request.n if request.n > 0 else 1) + named // 1_000 + (0 if request.where is None else 4)
    if isinstance(request, ListUsers | ListItems | ListEvents):
        return 1 + request.n // 10
    if isinstance(request, ViewUser | Suppose):
        return 1 + request.n // 10 + (request.history // 10 if isinstance(request, ViewUser) else 10)
    if isinstance(request, UpsertItems):
        return max(1, len(request.items))
    if isinstance(request, SimilarItems):
        return 10
    return max(1, len(request.events)) if isinstance(request, FeedbackBatch) else 1


Tell = Callable[[Sequence[Ticket]], None]


def tell_all(tickets: Iterable[Ticket]) -> None:
    """Report all settled tickets; each `tell` is called once."""
    tellers: dict[Tell, list[Ticket]] = {}
    for ticket in tickets:
        tellers.setdefault(ticket.tell, []).append(ticket)
    for tell, told in tellers.items():
        tell(told)


class Promise(Ticket):
    """A ticket with a future, which may be cancelled."""

    __slots__ = ("future",)

    def __init__(self, request: Request[Any], future: "Future[Any]") -> None:
        super().__init__(request, _settle)
        self.future = future

    def begin(self) -> bool:
        """Whether the answer is still wanted; from now on it cannot be cancelled."""
        return self.future.set_running_or_notify_cancel()


def _settle(tickets: Sequence[Ticket]) -> None:
    for ticket in tickets:
        if isinstance(ticket, Promise):
            if ticket.error is not None:
                ticket.future.set_exception(ticket.error)
            else:
                ticket.future.set_result(ticket.answer)
