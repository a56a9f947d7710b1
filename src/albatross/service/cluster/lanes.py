"""All shards of a cluster as one engine: a queue per shard, and requests to several shards, split and merged."""

import threading
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from albatross.service.api.answers import Answer, Readiness
from albatross.service.api.errors import NotReady, Overloaded, Refused
from albatross.service.api.requests import Request
from albatross.service.cluster.lines.router import Call, Glance, Router
from albatross.service.cluster.merging import Directed, Plan, all_of, may_be_old, plan_of
from albatross.service.engine.learned.visitors import Moved
from albatross.service.engine.moving import Forwarded
from albatross.service.engine.queue import most_withheld
from albatross.service.engine.sharing import TakeParcels
from albatross.service.engine.tickets import Settled, Ticket, tell_all
from albatross.service.storage.placing import shard_of


class Lanes:
    """Any thread may use it. A request to one shard is passed on unchanged."""

    def __init__(self, calls: Sequence[Call], most: int) -> None:
        self.routers = [Router(call, most, self._go_on) for call in calls]
        self._most = most
        self.told: dict[tuple[int, type[Request[Any]]], tuple[Request[Any], Answer]] = {}
        """The last request and answer of each shard, of those that may be old."""

    @property
    def readiness(self) -> Readiness:
        each = [router.readiness for router in self.routers]
        away = [str(shard) for shard, one in enumerate(each) if not one.ready]
        detail = f"shards are being started: {', '.join(away)}" if away else None
        return Readiness(not away, "opening" if away else "ready", 0, 0, sum(one.waiting for one in each), detail)

    @property
    def congested(self) -> bool:
        """Where some shards can still answer, users of the others are refused by themselves."""
        return all(router.congested for router in self.routers)

    @property
    def capacity(self) -> int:
        return self._most + self.withheld

    @property
    def withheld(self) -> int:
        """How many requests wait for machine code of a shard, or take long for other reasons: they take no place of others."""
        return min(sum(router.withheld for router in self.routers), most_withheld(self._most))

    @property
    def breadth(self) -> int:
        """How many commit at one time."""
        return len(self.routers)

    def wait_ready(self, timeout: float | None = None) -> None:
        for router in self.routers:
            if not router.wait_reached(timeout):
                raise NotReady("shards are being started")

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        """Queue tickets. Returns those that are refused at once; the others are told later, from another thread."""
        if len(self.routers) == 1:
            return self.routers[0].put(tickets)
        refused: list[Ticket] = []
        single: dict[int, list[Ticket]] = {}
        for ticket in tickets:
            try:
                plan = plan_of(ticket.request, len(self.routers))
            except Refused as refusal:
                ticket.error = refusal
                refused.append(ticket)
                continue
            if isinstance(plan, Plan):
                _Gathering(self, ticket, plan).ask()
            else:
                single.setdefault(plan, []).append(ticket)
        for shard, found in single.items():
            if self.routers[shard].congested:
                for ticket in found:
                    ticket.error = Overloaded(
                        f"more is asked of this user's shard than it can answer; try again in {Overloaded.retry_after} s"
                    )
                refused += found
            else:
                refused += self.routers[shard].put(found)
        return refused

    def _go_on(self, ticket: Ticket, word: Moved | Forwarded) -> None:
        """The user lives on another shard, or another shard must take something before the answer is true."""
        if isinstance(word, Forwarded):
            answer = word.answer
            _Gathering(self, ticket, Plan([(shard, TakeParcels()) for shard in word.shards], lambda settled: all_of(settled, answer))).ask()
            return
        ticket.request = replace(ticket.request, user=str(word))  # only such requests name a user
        tell_all(self.routers[shard_of(str(word), len(self.routers))].put([ticket]))

    def close(self) -> None:
        """Answer what waits, and end."""
        closing = [threading.Thread(target=router.close, name="albatross-closing") for router in self.routers]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


class _Piece(Ticket):
    """The part of one shard in a request to several."""

    __slots__ = ("place",)

    place: int


class _OldPiece(Glance):
    """The same, with an earlier answer of the shard: it is used while the shard is away."""

    __slots__ = ("old", "place")

    old: Answer
    place: int


class _Gathering:
    """Waits for the answers of several shards, and merges them."""

    def __init__(self, lanes: Lanes, ticket: Ticket, plan: Plan) -> None:
        self._lanes, self._ticket, self._plan = lanes, ticket, plan
        self._lock = threading.Lock()
        self._parts: Sequence[Directed] = ()
        self._settled: list[Settled | None] = []

    def ask(self) -> None:
        self._parts, self._settled = self._plan.parts, [None] * len(self._plan.parts)
        for place, (shard, request) in enumerate(self._parts):
            piece = self._piece(shard, request)
            piece.place = place
            self._told(self._lanes.routers[shard].put([piece]))

    def _piece(self, shard: int, request: Request[Any]) -> _Piece | _OldPiece:
        asked, answer = self._lanes.told.get((shard, type(request)), (None, None))
        if answer is None or asked != request:
            return _Piece(request, self._told)
        old = _OldPiece(request, self._told)
        old.old = answer
        return old

    def _told(self, pieces: Sequence[Ticket]) -> None:
        with self._lock:
            for piece in pieces:
                assert isinstance(piece, _Piece | _OldPiece)
                if isinstance(piece, _OldPiece) and isinstance(piece.error, NotReady):
                    piece.answer, piece.error = piece.old, None
                self._settled[piece.place] = piece.answer if piece.error is None else piece.error
                if piece.answer is not None and may_be_old(piece.request):
                    self._lanes.told[self._parts[piece.place][0], type(piece.request)] = piece.request, piece.answer
            settled = [one for one in self._settled if one is not None]
            if not pieces or len(settled) < len(self._settled):
                return
        self._finish(settled)

    def _finish(self, settled: list[Settled]) -> None:
        ticket = self._ticket
        try:
            answer = self._plan.merge(settled)
            if isinstance(answer, Plan):
                self._plan = answer
                self.ask()
                return
            ticket.answer = answer
        except BaseException as error:
            ticket.error = error
        tell_all([ticket])
