"""One client connection. Its requests are answered one after the other, and all memory it can make us hold is bounded.

There is no ASGI between the parser and the application: a task, an event and three messages per request would cost more processor
time than everything else done here.
"""

import asyncio
import time

from albatross.service.api.answers import Problem
from albatross.service.api.errors import Refused
from albatross.service.http.wire import refusals
from albatross.service.http.wire.crowd import CROWDED, HEAD_SECONDS, IDLE_SECONDS, LINGER_SECONDS, READ_SECONDS, SLOW_BODY, Crowd
from albatross.service.http.wire.exchange import Exchange
from albatross.service.http.wire.receiver import HeadTooLarge, NotHttp, Receiver
from albatross.service.http.wire.responder import Responder

MAX_DISCARDED = 2**24
"""Bytes of a refused body that are still read. Many clients read the answer only after they have sent everything."""

SHED_SECONDS = 0.1
"""How long a client is not read after a refusal for overload, because refusing costs time too."""

MOST_AT_ONCE = 32
"""Requests of one connection that are answered before others get their turn. A client may send thousands ahead."""


class Connection(asyncio.Protocol):
    """While a request is being answered, nothing more is read. `_go_on` alone decides what comes next."""

    transport: asyncio.Transport

    def __init__(self, application: Responder, crowd: Crowd) -> None:
        self.application, self.crowd = application, crowd
        self._receiver = Receiver(self)
        self._current: Exchange | None = None
        """The request that is answered next."""
        self._awaited: Exchange | None = None
        """The request for whose head the crowd has set a deadline."""
        self._discarded = 0
        self._rest = b""
        """Bytes that arrived too early to be parsed."""
        self._feeding = self._going = self._choked = False
        self._resting = False
        """Whether the client is not read for a moment: it was refused for overload, or others get their turn."""
        self._answered = 0
        """Requests answered since others had their turn."""
        self._deaf = False
        """Whether nothing more is parsed."""
        self._silent = False
        """Whether the client sends no more: the connection ends once everything received is answered."""
        self._leaving = False
        """Whether the connection ends as soon as everything is sent."""

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        if not self.crowd.enter(self):
            self.hang_up()

    def connection_lost(self, error: Exception | None) -> None:
        self._deaf = self._leaving = True
        self.crowd.leave(self)
        lost = (self._current, *self._receiver.pipeline, self._receiver.receiving)
        self._current = self._receiver.receiving = None
        self._receiver.pipeline.clear()
        for exchange in lost:
            if exchange is not None:
                exchange.abandon()

    def data_received(self, data: bytes) -> None:
        self._answered = 0
        if self._deaf:
            self._discard(len(data))
        elif self._rest or self._busy:
            self._rest += data
            self.transport.pause_reading()
        elif (exchange := self._receiver.recall(data)) is not None:
            self._receiver.pipeline.append(exchange)
            self._feeding = True
            self._go_on()
            self._feeding = False
        else:
            self._feed(data)

    def eof_received(self) -> bool:
        """The client sends no more but may still read: answer what it has asked. Returns whether the connection stays open."""
        asked = self._rest or self._receiver.pipeline or (self._current is not None and self._current.complete)
        # TLS cannot be half closed. A client that stops sending while it listens to a stream is gone.
        if not asked or self._leaving or not self.transport.can_write_eof() or (self._current is not None and self._current.streaming):
            return False
        self._silent = True
        return True

    def pause_writing(self) -> None:
        self._choked = True
        if not self._leaving:  # which has its own deadline
            self.crowd.unread[self] = time.monotonic() + READ_SECONDS

    def resume_writing(self) -> None:
        self._choked = False
        if not self._leaving:
            self.crowd.unread.pop(self, None)
        self.proceed()

    # Called by the receiver and the exchanges.

    def receive(self, exchange: Exchange, body: bytes) -> None:
        """A part of a body."""
        if exchange.answered:
            self._discard(len(body))
            return
        exchange.size += len(body)
        if exchange.body:
            exchange.body += body
        else:
            exchange.body = bytearray(body)  # so that more can be appended
        if exchange is self._current:  # other exchanges hold at most one piece; it is counted when their turn comes
            self._check_size(exchange, len(body))

    def send(self, exchange: Exchange, data: bytes) -> None:
        """Send the whole answer to the current request."""
        if exchange is self._current:  # otherwise the client is gone
            self.transport.write(data)
            if exchange.shed:
                self._resting = True
                asyncio.get_running_loop().call_later(SHED_SECONDS, self._rested)
            self.proceed()

    def _rested(self) -> None:
        self._resting = False
        self._answered = 0
        if not self._leaving:
            self.proceed()

    def write(self, exchange: Exchange, data: bytes) -> bool:
        """Send a part of the answer. A client that does not read gets no more. Returns whether it was sent."""
        if exchange is not self._current or self._choked:
            return False
        self.transport.write(data)
        return True

    def finish(self, exchange: Exchange) -> None:
        """There are no more parts: closing the connection ends the answer."""
        if exchange is self._current:
            self._close()

    def proceed(self) -> None:
        """Do what waited for the current request."""
        if self._going:
            return
        self._go_on()
        if self._rest and not (self._feeding or self._busy):
            rest, self._rest = self._rest, b""
            self._feed(rest)
            if not self._rest:
                self.transport.resume_reading()
        if self._silent and not self._feeding:
            self._part()

    def release(self, exchange: Exchange) -> None:
        """The exchange is over: free what it held."""
        self.crowd.let_go(exchange)
        self.application.leave(exchange)

    # Called by the crowd.

    def hang_up(self) -> None:
        """End at once, whatever is in progress."""
        self._forget_waiting()
        self.transport.abort()

    def give_up_head(self) -> None:
        """No complete head came in time."""
        if self._receiver.in_head:
            self._tell(refusals.HEAD_TOO_SLOW)
        self._turn_away()

    def give_up_body(self) -> None:
        """The body did not arrive in time."""
        self.refuse(SLOW_BODY)
        self._turn_away()

    def refuse(self, error: Refused) -> None:
        """Refuse the request whose body is arriving. The rest of the body is read and ignored."""
        if self._current is not None and not self._current.answered:
            self.application.refuse(self._current, error)

    def end(self) -> None:
        """No more requests: end as soon as what has been received is answered."""
        self._deaf, self._rest = True, b""
        self._receiver.pipeline.clear()
        if self._current is not None and self._current.complete:
            self._current.keep_alive = False
        elif self._current is None and not self.transport.can_write_eof() and not self.transport.get_write_buffer_size():
            self.hang_up()  # closing TLS would wait for a client that does not listen
        else:
            self.refuse(refusals.ENDING)
            self._turn_away()

    # The next step.

    @property
    def _busy(self) -> bool:
        """Whether new bytes must wait: the client is not reading, is being held back, or is being answered."""
        return self._choked or self._resting or (self._current is not None and self._current.complete)

    def _feed(self, data: bytes) -> None:
        """Parse what has arrived, piece by piece. Bytes behind a request that is being answered wait."""
        receiver, position = self._receiver, 0
        self._feeding = True
        while position < len(data) and not self._deaf:
            if self._busy:
                self._rest = data[position:]
                self.transport.pause_reading()
                break
            try:
                position = receiver.feed(data, position)
            except NotHttp:
                self._stumble()
                break
            except HeadTooLarge:
                self._tell(refusals.HEAD_TOO_LARGE)
                self._turn_away()
                break
            self._deaf = receiver.over
            self._go_on()
        self._feeding = False

    def _go_on(self) -> None:
        """Pass complete requests to the application, one after the other, until something must be waited for."""
        self._going = True
        pipeline = self._receiver.pipeline
        while True:
            exchange = self._current
            if exchange is None:
                if not pipeline or self._choked or self._resting:
                    break
                exchange = self._current = pipeline.popleft()
                self._start(exchange)
            if not exchange.complete:
                break
            if exchange.answered:
                if not exchange.keep_alive:
                    self._close()
                    break
                self._current = None
                self._answered += 1
                if self._answered >= MOST_AT_ONCE and not self._resting:
                    self._resting = True
                    asyncio.get_running_loop().call_soon(self._rested)
            elif exchange.admitted and not exchange.acted:
                exchange.acted = True
                self.application.act(exchange)
            else:
                break
        self._going = False
        self._wait()

    def _start(self, exchange: Exchange) -> None:
        exchange.began = time.monotonic()
        self._discarded = 0
        self.application.open(exchange)
        if exchange.answered:
            return
        if exchange.size:
            self._check_size(exchange, exchange.size)
        elif b"expect" in exchange.headers and not exchange.complete:
            self.transport.write(refusals.CONTINUE)

    def _wait(self) -> None:
        """Tell the crowd what we wait for."""
        heads, bodies, current, receiver = self.crowd.heads, self.crowd.bodies, self._current, self._receiver
        if current is not None and not current.complete:
            heads.pop(self, None)
            bodies[self] = current
            return
        bodies.pop(self, None)
        if current is not None or self._deaf:
            heads.pop(self, None)
            self._awaited = None
        elif not receiver.in_head:
            heads.pop(self, None)  # so that it moves to the end of the dictionary
            heads[self] = time.monotonic() + IDLE_SECONDS
            self._awaited = None
        elif self._awaited is not receiver.receiving:
            self._awaited = receiver.receiving
            heads.pop(self, None)
            heads[self] = time.monotonic() + HEAD_SECONDS

    def _check_size(self, exchange: Exchange, more: int) -> None:
        if exchange.size > refusals.MAX_BODY:
            self.application.refuse(exchange, refusals.BODY_TOO_LARGE)
        elif not self.crowd.hold(exchange, more):
            self.application.refuse(exchange, CROWDED)

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > MAX_DISCARDED:
            self.hang_up()

    def _stumble(self) -> None:
        """Bytes arrived that are not HTTP. Answer what came before them, then end."""
        if self._current is None and not self._receiver.pipeline:
            self._tell(refusals.NOT_HTTP)
            self._turn_away()
            return
        self._deaf = self._silent = True
        last = self._receiver.pipeline[-1] if self._receiver.pipeline else self._current
        if last is not None and last.complete:
            last.keep_alive = False
        self._go_on()
        self._part()

    def _part(self) -> None:
        """End, if the client sends no more and everything is answered."""
        if self._current is not None:
            if not self._current.complete:  # and never will be
                self.refuse(refusals.NOT_HTTP_BODY)
                self._turn_away()
        elif not self._rest and not self._receiver.pipeline:
            self._turn_away()

    def _tell(self, content: Problem) -> None:
        """Answer bytes that never became a request."""
        self.application.wire.observe(content.status, 0.0)
        self.transport.write(refusals.farewell(content))

    def _turn_away(self) -> None:
        """End, perhaps within a request. Closing while the client still sends would discard the answer before it reads it."""
        if self._leaving:
            return
        if self._receiver.receiving is None or not self.transport.can_write_eof():
            self._close()
            return
        self._leaving = True
        self._forget_waiting()
        self.crowd.unread[self] = time.monotonic() + LINGER_SECONDS
        self.transport.write_eof()

    def _close(self) -> None:
        """End when everything is sent, or when the client does not read it."""
        self._leaving = True
        self._forget_waiting()
        if not self.transport.is_closing():
            self.crowd.unread[self] = time.monotonic() + READ_SECONDS
            self.transport.close()

    def _forget_waiting(self) -> None:
        self._deaf, self._rest = True, b""
        self.crowd.heads.pop(self, None)
        self.crowd.bodies.pop(self, None)
