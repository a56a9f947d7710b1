"""What a connection needs of the application behind it."""

from typing import Protocol

from albatross.service.http.metrics import Meter
from albatross.service.http.wire.exchange import Exchange


class Responder(Protocol):
    """The application behind a connection."""

    wire: Meter
    """Counts answers to bytes that never became a request."""

    def open(self, exchange: Exchange) -> None:
        """The head has arrived: admit or refuse the request. May answer at once."""

    def act(self, exchange: Exchange) -> None:
        """An admitted request has arrived completely: answer it, now or later."""

    def leave(self, exchange: Exchange) -> None:
        """The exchange is over."""

    def refuse(self, exchange: Exchange, error: BaseException) -> None:
        """Answer with an error."""
