"""Work beside serving, each in its own thread: writing snapshots, making backups, replaying, compiling ahead."""

import threading
from collections.abc import Callable

from albatross.core.errors import InvalidInput
from albatross.kernels.building.beside import Ending
from albatross.kernels.search.catalogue import SEARCHED_FROM
from albatross.service.api.answers import BackupTaken, SnapshotTaken
from albatross.service.api.errors import EventInFlight, NotReady, NotWritten, Refused
from albatross.service.api.requests import LookBack
from albatross.service.engine.learned import snapshots
from albatross.service.engine.learned.model import Model
from albatross.service.engine.queue import Needing
from albatross.service.engine.recovering.looking_back import look_back, report
from albatross.service.engine.tickets import Ticket, tell_all
from albatross.service.engine.warming import (
    Warmed,
    is_changing,
    is_changing_or_explaining,
    load_explanations,
    load_the_rest,
    warm,
)
from albatross.service.storage.events import Genesis
from albatross.service.storage.home import Home
from albatross.service.storage.snapshots import Manifest

LONGEST_STOP = 2.0
"""Seconds to wait for what is being compiled in this process, which cannot be stopped."""


class Aside:
    """The engine's owner thread starts work here; a waiting ticket is answered when it is done."""

    def __init__(self, home: Home, genesis: Genesis, complain: Callable[[str], None]) -> None:
        self.home, self.genesis, self._complain = home, genesis, complain
        self.snapshot_seq = 0
        """The event of the newest snapshot on disk."""
        self.known_state: tuple[int, str] | None = None
        """Event and state id of that snapshot."""
        self._writer: threading.Thread | None = None
        self._copier: threading.Thread | None = None
        self._warmed: Warmed | None = None
        self._warmers: list[threading.Thread] = []
        self._ending = threading.Event()
        self._search: bool | None = None
        """Whether what searches large catalogues is loaded; None if nobody has asked for it."""
        self._looker: threading.Thread | None = None
        self._past: Model | None = None
        """The model of the last look back. Going on from there replays only the events in between."""

    def begin_from(self, manifest: Manifest | None) -> None:
        """Set the newest snapshot."""
        self.snapshot_seq = 0 if manifest is None else manifest.seq
        self.known_state = None if manifest is None else (manifest.seq, manifest.state_id)

    @property
    def writing(self) -> bool:
        """Whether a snapshot is being written."""
        return self._writer is not None and self._writer.is_alive()

    def write(self, taken: snapshots.Capture, ticket: Ticket | None = None) -> None:
        """Write a copy of the model to disk."""
        self.join_writer()
        self._writer = threading.Thread(target=self._write, args=(taken, ticket), name="albatross-snapshot")
        self._writer.start()

    def _write(self, taken: snapshots.Capture, ticket: Ticket | None) -> None:
        try:
            path, manifest = snapshots.write(self.home.folder, taken)
            self.home.keep_snapshot(path)
        except Exception as error:  # the log has everything; a snapshot only saves time
            self._complain(f"no snapshot could be written at event {taken.head.seq}: {error}")
            if ticket is not None:
                ticket.error = NotWritten(f"the snapshot could not be written: {error}")
        else:
            self.begin_from(manifest)
            if ticket is not None:
                ticket.answer = SnapshotTaken(manifest.seq, manifest.state_id, str(path))
        if ticket is not None:
            tell_all([ticket])

    def back_up(self, ticket: Ticket) -> None:
        """Copy the folder while it is served."""
        if self._copier is not None and self._copier.is_alive():
            raise EventInFlight("a backup is being taken; accepted: one at a time")
        self._copier = threading.Thread(target=self._copy, args=(ticket,), name="albatross-backup")
        self._copier.start()

    def _copy(self, ticket: Ticket) -> None:
        try:
            path, head = self.home.keep_backup()
            ticket.answer = BackupTaken(head.seq, head.chain.hex(), str(path))
        except InvalidInput as error:
            ticket.error = error
        except Exception as error:  # any error: a request waits for the answer
            ticket.error = NotWritten(f"the backup could not be written: {error}")
        tell_all([ticket])

    def look(self, ticket: Ticket) -> None:
        """Rebuild the model from the log, beside the serving model."""
        if self._looker is not None and self._looker.is_alive():
            raise EventInFlight("the log is being replayed for another request; accepted: one at a time")
        self._looker = threading.Thread(target=self._replay, args=(ticket,), name="albatross-looking", daemon=True)
        self._looker.start()

    def _replay(self, ticket: Ticket) -> None:
        request = ticket.request
        try:
            if isinstance(request, LookBack):
                self._past, ticket.answer = look_back(self.home, self.genesis, request, self._past)
            else:
                ticket.answer = report(self.home, self.genesis)
        except Refused as error:
            ticket.error = error
        except Exception as error:  # any error: a request waits for the answer
            ticket.error = NotReady(f"the log could not be replayed: {type(error).__name__}")
        tell_all([ticket])

    def forget_past(self) -> None:
        """Drop the rebuilt model, which may know a user who is to be forgotten."""
        if self._looker is not None:
            self._looker.join()
        self._past = None

    def load_first(self, at_once: bool, ending: Ending) -> None:
        """Load what most requests need, or all."""
        self._warmed = warm(self.genesis, at_once, ending)

    def load_rest(self, ending: Ending) -> None:
        """Load what only some requests need."""
        load_explanations(self.genesis, self._warmed, ending)
        load_the_rest(self.genesis, ending=ending)

    def load_rest_beside(self, withhold: Callable[[Needing | None], None]) -> None:
        """The same beside serving. The requests that need it are withheld until it is there."""
        ending = self._ending.is_set

        def load() -> None:
            try:
                load_explanations(self.genesis, self._warmed, ending)
                withhold(is_changing)
                load_the_rest(self.genesis, ending=ending)
            finally:
                if not ending():
                    withhold(None)

        explains = self._warmed is None or self._warmed.explains
        withhold(is_changing if explains else is_changing_or_explaining)
        self._load_beside(load)

    def has_search(self, n_items: int) -> bool:
        """Whether what searches a large catalogue is loaded. Begins to load it before a catalogue is large: until then, all is scored."""
        if self._search is None and n_items >= SEARCHED_FROM // 2:
            self._search = False
            self._load_beside(self._load_search)
        return self._search is True

    def _load_search(self) -> None:
        load_the_rest(self.genesis, 2 * SEARCHED_FROM, self._ending.is_set)
        self._search = not self._ending.is_set()

    def _load_beside(self, load: Callable[[], None]) -> None:
        self._warmers.append(threading.Thread(target=self._load, args=(load,), name="albatross-warming", daemon=True))
        self._warmers[-1].start()

    def _load(self, load: Callable[[], None]) -> None:
        try:
            load()
        except Exception as error:
            self._complain(f"machine code could not be loaded ahead: {type(error).__name__}: {error}")

    def stop_warming(self) -> None:
        """Nobody will need more machine code."""
        self._ending.set()
        for warmer in self._warmers:
            warmer.join(LONGEST_STOP)
        if self._warmed is not None:
            self._warmed.helper.end()

    def join_writer(self) -> None:
        if self._writer is not None:
            self._writer.join()

    def join(self) -> None:
        """Wait until everything is written."""
        self.join_writer()
        if self._copier is not None:
            self._copier.join()
