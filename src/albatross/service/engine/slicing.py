"""A long batch is served in slices, each in a group of its own: other requests get their turn in between."""

from collections.abc import Callable
from typing import Any

from albatross.service.api.answers import BatchAccepted, ItemsAccepted, Refusal
from albatross.service.api.errors import Refused, StorageFailed
from albatross.service.api.requests import FeedbackBatch, Request, UpsertItems
from albatross.service.api.values import MOST_EVENTS
from albatross.service.engine.tickets import Promise, Ticket, tell_all

SLICE = 256
"""Ratings or items that are committed together. New items take the longest: so many keep the engine busy for about 30 ms."""


def is_long(request: Request[Any]) -> bool:
    """Whether a request is a batch to be served in slices. One that is too long is refused as a whole."""
    if type(request) is FeedbackBatch:
        return SLICE < len(request.events) <= MOST_EVENTS
    return type(request) is UpsertItems and SLICE < len(request.items) <= MOST_EVENTS


class Slices:
    """The slices of one batch: the next is queued when the last is settled. If one is refused, each further event gets its refusal."""

    def __init__(self, whole: Ticket, add: Callable[[Ticket], None]) -> None:
        """`add` puts a slice into the queue of the engine, or raises a `Refused`."""
        self._whole, self._add = whole, add
        self._answers: list[Any] = []
        self._length = whole.weight
        if isinstance(whole, Promise):
            whole.begin()  # from now on it cannot be cancelled

    def next(self) -> Ticket:
        request, done = self._whole.request, len(self._answers)
        if isinstance(request, FeedbackBatch):
            return Ticket(FeedbackBatch(request.events[done : done + SLICE]), self._settle)
        assert isinstance(request, UpsertItems)
        return Ticket(UpsertItems(request.items[done : done + SLICE]), self._settle)

    def _settle(self, tickets: Any) -> None:
        """Called by the owner thread, with one slice."""
        (part,) = tickets
        error: BaseException | None = part.error
        if error is None:
            self._answers += part.answer.answers
            if len(self._answers) < self._length:
                try:
                    self._add(self.next())
                    return
                except Refused as refusal:
                    error = refusal
        if isinstance(error, Refused) and not isinstance(error, StorageFailed) and self._answers:
            self._answers += [Refusal(error.status, error.code, str(error))] * (self._length - len(self._answers))
            error = None
        self._whole.error = error
        if error is None:
            answered = BatchAccepted if isinstance(self._whole.request, FeedbackBatch) else ItemsAccepted
            self._whole.answer = answered(self._answers)
        tell_all([self._whole])
