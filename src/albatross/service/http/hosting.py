"""The process that serves every sub-folder of a folder. A failure of one shop does not affect the others."""

import asyncio
import contextlib
import re
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from albatross.core.errors import InvalidInput
from albatross.service.engine.learned.options import Options
from albatross.service.http.access.admission import MOST_GUESSES, Admission
from albatross.service.http.access.keys import Keys
from albatross.service.http.application import Application
from albatross.service.http.bridge import Bridge
from albatross.service.http.process import (
    LAST_SECONDS,
    ListenAddress,
    Opening,
    ServedEngine,
    attend,
    most_connections,
    on_signals,
    open_engine,
    run,
    tell_progress,
)
from albatross.service.http.shops import PREFIX, Shop, Shops
from albatross.service.http.wire.crowd import SPARE_DESCRIPTORS, Crowd
from albatross.service.storage.folder import LOG, SETTINGS
from albatross.service.storage.home import FolderHome, may_be_home

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Accepted names of shops; they appear in URLs and in metrics."""
ACCEPTED = "letters, digits, dots, hyphens and underscores, 64 at most, a letter or a digit first"
MOST_SHOPS = 64
"""Each has a thread, a log and a model in memory."""
DESCRIPTORS = 8
"""File descriptors per shop."""

log = structlog.get_logger()


class How(NamedTuple):
    """How one shop is served."""

    options: Options
    allow_origins: tuple[str, ...]


def found_in(root: Path) -> tuple[list[str], dict[str, str]]:
    """The names of the shops in a folder, and the refused folders with reasons. Files and hidden folders are skipped.

    A new shop is an empty folder, or one with settings. Nothing is written into any other.
    """
    names: list[str] = []
    refused: dict[str, str] = {}
    for path in sorted(root.iterdir()):
        if path.name.startswith(".") or not (path.is_symlink() or path.is_dir()):
            continue
        if path.is_symlink():
            refused[path.name] = "it is a symbolic link; accepted: a folder"
        elif not NAME.fullmatch(path.name):
            refused[path.name] = f"its name is not accepted; accepted: {ACCEPTED}"
        elif reason := _refusal(path):
            refused[path.name] = reason
        elif len(names) >= MOST_SHOPS:
            refused[path.name] = f"there are more than {MOST_SHOPS} shops; accepted: no more in one process"
        else:
            names.append(path.name)
    return names, refused


def _refusal(folder: Path) -> str:
    """Why a folder cannot be a shop; empty if it can."""
    try:
        if may_be_home(folder):
            return ""
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"
    return f"it has files, but neither {LOG} nor {SETTINGS}; accepted: the folder of a shop, an empty one, or one with {SETTINGS}"


def serve_root(root: Path, how: Callable[[Path], How], address: ListenAddress, listening: socket.socket | None = None) -> None:
    """Serve each sub-folder until SIGTERM or the interrupt key. If `how` refuses a shop, that shop is not served.

    SIGHUP looks again for new folders and for shops that could not be served.
    """
    if not root.is_dir():
        raise InvalidInput(f"{root} is not a folder; accepted: one whose sub-folders are shops")
    if (root / LOG).exists():
        raise InvalidInput(f"{root} is a shop itself (it has {LOG}); accepted: albatross serve {root}, or a folder of shops")
    keys = Keys(FolderHome(root).keyring)
    address.check(keys)

    async def serving(tls: ssl.SSLContext | None, opened: socket.socket) -> None:
        await Hosting(root, how, address, keys).serve(tls, opened)

    run(keys, address, listening, serving)


class Hosting:
    """Opens and closes shops. Belongs to one event loop."""

    def __init__(self, root: Path, how: Callable[[Path], How], address: ListenAddress, keys: Keys, opening: Opening = open_engine) -> None:
        self.root, self.how, self.address, self.opening = root, how, address, opening
        self.crowd = Crowd(most_connections(SPARE_DESCRIPTORS + DESCRIPTORS * MOST_SHOPS))
        self.shops = Shops(keys, sorted(address.names), address.key_needed, self.crowd)
        self.ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(MOST_SHOPS + MOST_GUESSES))  # opening shops must not block requests
        self._engines: dict[str, ServedEngine] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, tls: ssl.SSLContext | None, listening: socket.socket) -> None:
        try:
            self.look()
            on_signals(self._loop, self.ending.set)
            with contextlib.suppress(AttributeError, NotImplementedError):  # there is no such signal on Windows
                self._loop.add_signal_handler(signal.SIGHUP, self.look)
            about = {"root": str(self.root), "shops": len(self._engines)}
            settled = self._loop.create_task(self._tell_settled())
            await attend(self.shops, self.crowd, tls, listening, self.ending, self.shops.hush, about, [settled])
        finally:
            self.ending.set()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.gather(*(asyncio.to_thread(engine.close) for engine in self._engines.values()))
            await self.crowd.disperse(LAST_SECONDS)
        log.info("stopped")

    def look(self) -> None:
        """Open every shop in the folder that is not served yet."""
        if self.ending.is_set():
            return
        names, refused = found_in(self.root)
        for name, reason in refused.items():
            log.error("not a shop", folder=name, reason=reason)
        for name in names:
            shop = self.shops.by_name.setdefault(name.encode(), Shop(name))
            if shop.application is None and name not in self._engines:
                self._open(shop)

    def _open(self, shop: Shop) -> None:
        folder = self.root / shop.name

        def fail(error: BaseException) -> None:
            self._loop.call_soon_threadsafe(self._fail, shop, error)

        try:
            how = self.how(folder)
            engine = self.opening(FolderHome(folder), how.options, fail)
        except (InvalidInput, OSError) as error:
            log.error("shop failed", shop=shop.name, reason=str(error))
            return
        keys = Keys(FolderHome(folder).keyring)
        admission = Admission(engine, keys, how.options.queue, self.address.names, how.allow_origins, self.address.key_needed)
        low, high = engine.genesis.scale
        self._engines[shop.name] = engine
        shop.application = Application(Bridge(engine, self._loop), admission, self.crowd, (low, high), f"{PREFIX}{shop.name}")
        self._run(tell_progress(engine, self.ending, log.bind(shop=shop.name)))

    def _fail(self, shop: Shop, error: BaseException) -> None:
        """Stop serving a shop that has failed. The other shops go on."""
        log.error("shop failed", shop=shop.name, reason=str(error) if isinstance(error, InvalidInput) else type(error).__name__)
        engine, application = self._engines.get(shop.name), shop.application
        shop.application = None
        if application is not None:
            application.news.close()
        if engine is not None:
            self._run(self._close(shop.name, engine))

    async def _close(self, name: str, engine: ServedEngine) -> None:
        await asyncio.to_thread(engine.close)
        del self._engines[name]
        log.info("shop closed", shop=name)

    async def _tell_settled(self) -> None:
        """Log when every shop is ready or has failed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        served = sum(shop.application is not None for shop in self.shops.by_name.values())
        log.info("all settled", served=served, failed=len(self.shops.by_name) - served)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
