"""An agent in service: one thread owns the agent and the log, so there are no locks around either.

It takes all waiting requests, decides, commits once, updates the model, and answers all of them (group commit).
"""

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Answer, Forgotten, Readiness
from albatross.service.api.errors import EventInFlight, NotReady, Refused, StorageFailed, UnknownUser
from albatross.service.api.requests import ForgetUser, JoinUsers, Request, TakeBackup, TakeSnapshot
from albatross.service.engine.aside import Aside
from albatross.service.engine.erasing import expire, forget, names_of, rows_of
from albatross.service.engine.group import Engaged, Group
from albatross.service.engine.handling.looking import READING
from albatross.service.engine.handling.writing import WRITING
from albatross.service.engine.learned import snapshots
from albatross.service.engine.learned.options import Options, check_options
from albatross.service.engine.learned.silence import LOOK_SECONDS, Silence, given_up
from albatross.service.engine.moving import Forwarded, take_in
from albatross.service.engine.opening import OpenStore, open_home
from albatross.service.engine.queue import ALONE, Needing, Queue
from albatross.service.engine.recovering.recovery import recover
from albatross.service.engine.sharing import SHARING, Known, TakeBase, TakeParcels, begin_from, follow, known, share
from albatross.service.engine.standing import Standing
from albatross.service.engine.tickets import Promise, Ticket, tell_all
from albatross.service.storage.events import Erase, decode_message
from albatross.service.storage.home import Home, home_of
from albatross.service.storage.store import CatalogueMoved, FollowingStore, HandleTaken, Parcel

A = TypeVar("A", bound=Answer)


class Engine:
    """Serves one folder. `submit`, `ask` and `put` may be called from any thread.

    Opening returns at once: the owner thread checks and replays the log, and `readiness` reports its progress.
    """

    def __init__(
        self,
        folder: str | Path | Home,
        options: Options | None = None,
        on_failure: Callable[[BaseException], None] | None = None,
        on_complaint: Callable[[str], None] | None = None,
        open_store: OpenStore | None = None,
    ) -> None:
        """Begin to open a folder, or a database by its address. It is created if it does not exist.

        Refuses at once, with `InvalidInput`, a folder that another process serves and options that contradict it.
        `on_failure` is called from the owner thread, once, when the engine cannot go on (the log is damaged, the disk failed):
        a server should then end with an exit code other than zero. Without it, the next request raises the error.
        `on_complaint` is called with harmless problems, such as a snapshot that could not be used.
        """
        self.home = home_of(folder) if isinstance(folder, str | Path) else folder
        self.folder, self.options = self.home.folder, options or Options()
        check_options(self.options)
        self.home.claim()
        try:
            self._store, self.genesis = open_home(self.home, self.options, open_store)
        except BaseException:
            self.home.release(refused=True)
            raise
        self._on_failure, self._on_complaint = on_failure, on_complaint
        self._standing = Standing(str(self.home), self._store.head.seq)
        self._changed = self._standing.changed
        self._queue = Queue(self._changed, self.options.queue)
        self._incarnation = secrets.token_hex(8) + (f".{self.genesis.shard}" if self.genesis.shards > 1 else "")
        self._snapshot_due = 0
        self._beat_due = 0.0
        self._behind = False
        """Whether more decisions may have reached their time limit."""
        self._aside = Aside(self.home, self.genesis, self.complain)
        self.complaints: list[str] = []
        """Harmless problems: why snapshots were skipped or could not be written."""
        self._owner = threading.Thread(target=self._own, name="albatross-engine", daemon=True)
        self._owner.start()

    @property
    def readiness(self) -> Readiness:
        """The state of the engine; never waits."""
        return self._standing.readiness(len(self._queue))

    @property
    def congested(self) -> bool:
        """Whether the oldest request has waited too long; never waits."""
        return self._queue.congested

    @property
    def capacity(self) -> int:
        """How many requests can be answered before the last of them has waited too long; never waits."""
        return self._queue.capacity

    @property
    def withheld(self) -> int:
        """How many requests wait for machine code, and so do not delay others; never waits."""
        return self._queue.withheld

    @property
    def breadth(self) -> int:
        """How many commit at one time."""
        return 1

    @property
    def lessons(self) -> tuple[int, int, int]:
        """A value that changes when other shards should hear of something; and the numbers of ratings and items. Never waits."""
        model = self._model
        return id(model) ^ model.lessons, model.ratings, len(model.items)

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the log has been replayed. Raises the error, or `NotReady` after the timeout."""
        self._standing.wait_ready(timeout)

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        """Queue tickets together. Returns those that are refused at once; the others are settled later, by the owner thread.

        Refused at once: `Overloaded` (the queue is full), `NotReady` (replaying, draining, closed), `EventInFlight`, `StorageFailed`.
        """
        self._standing.check_process()
        refused: list[Ticket] = []
        now = time.monotonic()
        with self._changed:
            for ticket in tickets:
                try:
                    self._standing.check_open()
                    self._queue.add(ticket, now)
                except InvalidInput as error:
                    ticket.error = error
                    refused.append(ticket)
            self._queue.wake()
        return refused

    def submit(self, request: Request[A]) -> "Future[A]":
        """Put a request in the queue. A refusal for its content or by the disk is the future's exception (a `Refused`).

        What `put` refuses at once is raised at once.
        """
        future: Future[A] = Future()
        refused = self.put([Promise(request, future)])
        if refused and refused[0].error is not None:
            raise refused[0].error
        return future

    def ask(self, request: Request[A], timeout: float | None = None) -> A:
        """Submit and wait for the answer. Raises the error if there is none."""
        return self.submit(request).result(timeout)

    def close(self) -> None:
        """Drain: refuse new requests, answer waiting ones, write a snapshot, close the log, release the folder."""
        if self._standing.is_ours:  # only the parent closes it
            self._standing.drain()
            self._owner.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def complain(self, complaint: str) -> None:
        """Report a harmless problem."""
        self.complaints.append(complaint)
        if self._on_complaint is not None:
            self._on_complaint(complaint)

    def _own(self) -> None:
        """The main function of the owner thread."""
        try:
            if restored := self._store.restored:
                self.complain(f"{restored} events were missing at the end of the log, after a power failure or damage; they were restored")
            self._standing.enter("compiling")
            self._aside.load_first(self._needs_all, lambda: self._standing.is_draining)
            if self._standing.is_draining:
                return
            self._standing.enter("replaying")
            try:
                self._recover(self._standing.opening_progress)
            except NotReady:
                return
            self._load_the_rest()
            self._standing.enter("ready")
            while (taken := self._take()) is not None:
                self._serve(taken)
            self._refuse_all(NotReady("the service is closing, before all of its code is compiled; try again when it is open"))
            self._finish()
        except BaseException as error:
            self._fail(error)
        finally:
            self._aside.stop_warming()
            self._store.close()
            self.home.release()
            self._standing.enter("closed" if self._standing.failure is None else "failed")

    def _recover(self, progress: Callable[[int, int], None]) -> None:
        recovered = recover(self.folder, self._store, self.genesis, progress)
        self._model, self._handles = recovered.model, recovered.handles
        for complaint in recovered.complaints:
            self.complain(complaint)
        self._aside.begin_from(recovered.snapshot)
        self._snapshot_due = self._aside.snapshot_seq

    @property
    def _needs_all(self) -> bool:
        """Whether the first request may need what replaces and joins ratings."""
        return bool(self.genesis.events) or self.options.silence is not None or self.genesis.shards > 1

    def _load_the_rest(self) -> None:
        """What only some requests need: now, if the next one may need it, or else beside serving."""
        if self._needs_all or self._model.rewards or self._model.given_up:
            self._standing.enter("compiling")
            self._aside.load_rest(lambda: self._standing.is_draining)
        else:
            self._aside.load_rest_beside(self._withhold)

    def _withhold(self, needing: Needing | None) -> None:
        with self._changed:
            self._queue.withhold(needing)

    def _take(self) -> list[Ticket] | None:
        """The next group, which may be empty; None when the engine is closed and nothing waits."""
        with self._changed:
            unwatched = self.options.silence is None and self.options.retention is None
            pause = None if unwatched else 0.0 if self._behind else LOOK_SECONDS
            pauses = [seconds for seconds in (pause, self._store.beat) if seconds is not None]
            self._queue.gather(lambda: self._standing.is_draining, min(pauses, default=None))
            return None if not self._queue and self._standing.is_draining else self._queue.take()

    def _serve(self, taken: list[Ticket]) -> None:
        present = [ticket for ticket in taken if not isinstance(ticket, Promise) or ticket.begin()]
        alone = bool(present) and isinstance(present[0].request, ALONE)
        try:
            if alone:
                self._serve_alone(present[0])
            elif present:
                began = time.monotonic()
                self._run_group(present)
                self._queue.observe(present, time.monotonic() - began)
        except BaseException as error:
            for ticket in present:
                if ticket.answer is None and ticket.error is None:
                    ticket.error = error
            alone = False
            raise
        finally:
            with self._changed:
                self._queue.release(taken)
            if not alone:
                tell_all(present)
        self._keep_up()

    def _run_group(self, tickets: Sequence[Ticket]) -> None:
        """Decide, commit, apply and settle together."""
        known, assume_new = self._aside.known_state, self._store.refuses_taken
        while True:
            chosen = self.options.durability, self.options.strangers
            engaged = Engaged(self._model, self._store, self.folder, *chosen, self._incarnation, known, self._handles)
            group = Group(engaged, assume_new)
            try:
                group.run(tickets, WRITING, READING)
                self._handles = group.handles
                return
            except CatalogueMoved:
                self._handles = follow(self._model, self._store, self._handles)
                self._take_parcels()
            except HandleTaken as error:
                if not assume_new:
                    raise StorageFailed(f"a handle is taken that was looked for and not found ({error})") from error
                assume_new = False
            for ticket in tickets:  # nothing was written, and nobody was answered
                ticket.answer = ticket.error = None

    def _serve_alone(self, ticket: Ticket) -> None:
        """Settle a long request. Snapshots, backups and replays run in their own threads."""
        request = ticket.request
        try:
            if isinstance(request, ForgetUser):
                ticket.answer = self._forget(request.user)
            elif isinstance(request, TakeBase):
                ticket.answer = self._take_base(request.version)
            elif isinstance(request, TakeParcels):
                self._take_parcels()
                ticket.answer = known(self._model, self._store)
            elif isinstance(request, SHARING):
                ticket.answer, self._handles = share(request, self._model, self._store, self._handles)
            elif isinstance(request, JoinUsers):
                self._run_group([ticket])
            elif isinstance(request, TakeSnapshot):
                if self._aside.writing:
                    raise EventInFlight("a snapshot is being written; accepted: one at a time")
                self._begin_snapshot(ticket)
                return
            elif isinstance(request, TakeBackup):
                self._aside.back_up(ticket)
                return
            else:
                self._aside.look(ticket)
                return
        except StorageFailed:
            raise
        except Refused as refusal:
            ticket.error = refusal
        tell_all([ticket])

    def _forget(self, user: str) -> Answer:
        self._take_parcels()
        names = names_of(user, self._model)
        if not rows_of(names, self._store):
            raise UnknownUser("this user is not in the log; accepted: a user who is")
        rows, shards = self._erase(names)
        answer = Forgotten(user, self._store.head.seq, rows, self._model.seq)
        return Forwarded(answer, shards) if shards else answer

    def _erase(self, names: Sequence[str], taken: Parcel | None = None) -> tuple[int, list[int]]:
        """Erase users from the log, and rebuild the model. Returns the number of rows, and the shards that must do the same."""
        self._aside.join_writer()
        self._aside.forget_past()
        self.home.remove_snapshots()
        found = forget(names, self._store, self.genesis, taken)
        self.home.erased()
        self._rebuild()
        return found

    def _take_parcels(self) -> None:
        """Take all that other shards have sent."""
        if self.genesis.shards == 1:
            return
        following = cast(FollowingStore, self._store)
        while parcels := following.parcels():
            for parcel in parcels:
                if following.followed < parcel.catalogue:
                    self._handles = follow(self._model, self._store, self._handles)
                message = decode_message(parcel.content)
                if isinstance(message, Erase):
                    self._erase(message.names, parcel)
                else:
                    take_in(message, parcel, self._model, self._store)

    def _take_base(self, version: int) -> Known:
        self._aside.join_writer()
        self._aside.forget_past()
        begin_from(version, self._model, self._store)
        self.home.remove_snapshots()
        self._rebuild()
        self._begin_snapshot()
        return known(self._model, self._store)

    def _rebuild(self) -> None:
        """The log means something else now."""
        self._standing.enter("replaying")
        self._recover(self._standing.progress)
        self._standing.enter("ready")

    def _begin_snapshot(self, ticket: Ticket | None = None) -> None:
        """Copy the model now; the copy is written while the service goes on."""
        if self.options.durability != "commit":
            self._store.flush()
        self._snapshot_due = self._store.head.seq
        self._aside.write(snapshots.capture(self._model, self._store.head, self._handles), ticket)

    def _keep_up(self) -> None:
        """Periodic work: machine code, snapshots, silence, retention, and what the store needs."""
        if self._aside.has_search(self._model.agent.n_items):
            self._model.agent.search(True)
        self._behind = False
        if self.options.silence is not None:
            self._give_up(Silence(*self.options.silence))
        if self.options.retention is not None:
            before = self._model.expired
            self._handles = expire(self.options.retention, self._model, self._store, self._handles)
            self._behind |= self._model.expired > before
        every, head = self.options.snapshot_every, self._store.head.seq
        if every and head >= self._snapshot_due + every and not self._aside.writing:
            self._begin_snapshot()
        elif self._store.beat is not None and time.monotonic() >= self._beat_due:
            self._store.keep()
            self._beat_due = time.monotonic() + self._store.beat

    def _give_up(self, silence: Silence) -> None:
        """Apply silence to decisions that have waited long enough, a few at a time."""
        before = self._model.given_up
        due = given_up(self._model, self._store, silence)
        if due is not None:
            ticket = Ticket(due, lambda _: None)
            self._run_group([ticket])
            if ticket.error is not None and not isinstance(ticket.error, Refused):
                raise ticket.error
            if ticket.error is None:
                self._model.given_up = due.decisions[-1]
        self._behind |= self._model.given_up > before

    def _finish(self) -> None:
        self._aside.join()
        self._store.flush()
        if self._store.head.seq > self._aside.snapshot_seq:
            self._begin_snapshot()
            self._aside.join()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._standing.failure, self._standing.phase = error, "failed"
            self._changed.notify_all()
        self._refuse_all(StorageFailed(f"the engine has failed: {error}"))
        if self._on_failure is not None:
            self._on_failure(error)

    def _refuse_all(self, error: Refused) -> None:
        """Answer all who still wait."""
        with self._changed:
            waiting = self._queue.take_all()
        present = [ticket for ticket in waiting if not isinstance(ticket, Promise) or ticket.begin()]
        for ticket in present:
            ticket.error = error
        tell_all(present)
