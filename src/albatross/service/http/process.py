"""The process that serves a folder: from the first log line to the exit code."""

import asyncio
import contextlib
import gc
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from albatross.core.errors import InvalidInput
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.http.access.admission import Admission
from albatross.service.http.access.keys import Keys
from albatross.service.http.access.names import LOOPBACK, is_loopback
from albatross.service.http.application import Application
from albatross.service.http.bridge import AskedEngine, Bridge
from albatross.service.http.logs import everything_logged, unforeseen
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.crowd import MOST_CONNECTIONS, SPARE_DESCRIPTORS, Crowd
from albatross.service.http.wire.responder import Responder
from albatross.service.http.wire.tls import accept, context_of
from albatross.service.settings.kinds import HOSTS, ORIGINS
from albatross.service.storage.events import Genesis
from albatross.service.storage.home import Home, home_of

PROGRESS_SECONDS = 1.0
DRAIN_SECONDS = 10
"""How long requests in flight may still take after the service was told to end. Those that still wait are refused when it closes."""
LAST_SECONDS = 1.0
"""How long clients have to read the last answers, once the service is closed."""
SWITCH_SECONDS = 0.0005
"""The engine's thread and the network thread take turns. With Python's default of 5 ms, an answer would mostly wait for its turn."""
GARBAGE = 10_000
"""Objects between two garbage collections. A group of requests makes hundreds; with Python's 700, this took a tenth of the time."""
BACKLOG = 2048

log = structlog.get_logger()


@dataclass(frozen=True)
class ListenAddress:
    """Where to listen, and under which host names."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0: any free port; the log says which."""
    certificate: Path | None = None
    private_key: Path | None = None
    allow_hosts: Sequence[str] = ()
    allow_origins: Sequence[str] = ()

    def check(self, keys: Keys) -> None:
        """Refuse invalid settings, and settings that would admit other machines without a key."""
        HOSTS.read("--allow-host", self.allow_hosts)
        ORIGINS.read("--allow-origin", self.allow_origins)
        if not keys.needed:
            how = f"make one first: albatross keys create {keys.ring.name} --scope recommend --scope feedback"
            if not is_loopback(self.host):
                raise InvalidInput(f"host is {self.host!r}, which others can reach, and there is no key; {how}")
            if self.allow_hosts:
                raise InvalidInput(
                    f"--allow-host {self.allow_hosts[0]} would accept requests from other machines, and there is no key; {how}"
                )
        if (self.certificate is None) != (self.private_key is None):
            raise InvalidInput("TLS needs both --certificate and --private-key")
        for path in (self.certificate, self.private_key):
            if path is not None and not path.is_file():
                raise InvalidInput(f"{path} is not a file; accepted: a file in PEM format")

    def listen(self) -> socket.socket:
        try:
            return socket.create_server((self.host, self.port), family=_family(self.host), backlog=BACKLOG)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {self.host}, port {self.port}: {error.strerror or error}") from error

    @property
    def tls(self) -> ssl.SSLContext | None:
        return None if self.certificate is None or self.private_key is None else context_of(self.certificate, self.private_key)

    @property
    def key_needed(self) -> bool:
        """Whether others than this machine may ask, directly or through a proxy. Then a key is needed even if none was created yet."""
        return not is_loopback(self.host) or bool(self.allow_hosts)

    @property
    def names(self) -> set[str]:
        """Accepted values of the header Host, without the port."""
        return {*LOOPBACK, *self.allow_hosts, f"[{self.host}]" if ":" in self.host else self.host}


class ServedEngine(AskedEngine, Protocol):
    """What is served: an engine, or a stand-in for engines in other processes."""

    @property
    def genesis(self) -> Genesis: ...

    def wait_ready(self, timeout: float | None = None) -> None: ...

    def close(self) -> None: ...


Opening = Callable[[Home, Options, Callable[[BaseException], None]], ServedEngine]
"""Opens a home. It calls the given function when the service cannot go on."""


def open_engine(home: Home, options: Options, fail: Callable[[BaseException], None]) -> ServedEngine:
    return Engine(home, options, on_failure=fail, on_complaint=lambda text: log.warning("complaint", detail=text))


def serve(
    where: str | Path | Home,
    options: Options,
    address: ListenAddress,
    listening: socket.socket | None = None,
    opening: Opening = open_engine,
) -> None:
    """Serve a folder or a database until SIGTERM or the interrupt key. Raises the error if anything else ended it."""
    home = home_of(where) if isinstance(where, str | Path) else where
    keys = Keys(home.keyring)
    address.check(keys)
    run(keys, address, listening, lambda tls, opened: _serve(home, options, address, keys, tls, opened, opening))


def run(
    keys: Keys,
    address: ListenAddress,
    listening: socket.socket | None,
    serving: Callable[[ssl.SSLContext | None, socket.socket], Coroutine[Any, Any, None]],
) -> None:
    """Run the service in an event loop of its own, until it ends."""
    tls = address.tls
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        listening or address.listen() as opened,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
        everything_logged(runner.get_loop()),
    ):
        try:
            runner.run(serving(tls, opened))
        except (InvalidInput, OSError):
            raise
        except Exception as error:
            unforeseen(error)
            raise SystemExit(1) from None
        finally:
            keys.ring.close()
            gc.freeze()  # the last garbage collection at interpreter exit sometimes crashes in msgspec's recursive types


async def _serve(
    home: Home,
    options: Options,
    address: ListenAddress,
    keys: Keys,
    tls: ssl.SSLContext | None,
    listening: socket.socket,
    opening: Opening,
) -> None:
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    failure: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failure.append(error)
        loop.call_soon_threadsafe(ending.set)

    crowd = Crowd(most_connections())
    engine = opening(home, options, fail)
    try:
        admission = Admission(engine, keys, options.queue, address.names, address.allow_origins, address.key_needed)
        scale = engine.genesis.scale
        application = Application(Bridge(engine, loop), admission, crowd, (scale[0], scale[1]))
        on_signals(loop, ending.set)
        about = {"folder": str(home), "keys": keys.needed}
        telling = [loop.create_task(tell_progress(engine, ending, log))]
        await attend(application, crowd, tls, listening, ending, application.news.close, about, telling)
    finally:
        await asyncio.to_thread(engine.close)
        await crowd.disperse(LAST_SECONDS)
    if failure:
        known = isinstance(failure[0], InvalidInput)
        log.error("failed", reason=str(failure[0]) if known else type(failure[0]).__name__)
        raise failure[0]
    log.info("stopped")


async def attend(
    application: Responder,
    crowd: Crowd,
    tls: ssl.SSLContext | None,
    listening: socket.socket,
    ending: asyncio.Event,
    hush: Callable[[], None],
    about: Mapping[str, Any],
    tasks: Sequence[asyncio.Task[None]],
) -> None:
    """Answer requests until `ending` is set, then finish those in flight. `hush` ends the streams.

    Requests that take longer are still connected: they are answered when what is served closes, and then the crowd is to disperse.
    """
    stop = await _welcome(application, crowd, tls, listening)
    host, port = listening.getsockname()[:2]
    scheme = "http" if tls is None else "https"
    log.info("listening", url=f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}", **about)
    tasks = [*tasks, asyncio.get_running_loop().create_task(crowd.watch())]
    await ending.wait()
    log.info("draining")
    stop()
    hush()
    await crowd.drain(DRAIN_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _welcome(application: Responder, crowd: Crowd, tls: ssl.SSLContext | None, listening: socket.socket) -> Callable[[], object]:
    """Begin to accept connections. Returns a function that stops this."""
    loop = asyncio.get_running_loop()
    if tls is None:
        server = await loop.create_server(lambda: Connection(application, crowd), sock=listening, backlog=BACKLOG)
        return server.close
    return loop.create_task(accept(listening, tls, application, crowd)).cancel


async def tell_progress(engine: ServedEngine, ending: asyncio.Event, log: Any) -> None:
    """Log the progress until the service is ready."""
    told = ""
    while not ending.is_set():
        readiness = engine.readiness
        if readiness.ready:
            freeze_memory()
            log.info("ready", events=readiness.total)
            return
        if readiness.phase in ("failed", "closed"):
            return
        if readiness.phase == "replaying":
            log.info("replaying", done=readiness.done, total=readiness.total)
        elif readiness.phase != told:
            log.info(readiness.phase)
        told = readiness.phase
        await asyncio.to_thread(_wait_ready, engine)


def freeze_memory() -> None:
    """Exclude existing objects from garbage collection, because they stay until the end, and collect the rest rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])


def _wait_ready(engine: ServedEngine) -> None:
    with contextlib.suppress(Exception):  # `on_failure` reports the error
        engine.wait_ready(PROGRESS_SECONDS)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop, if it is installed: it takes half the time. There is no uvloop for Windows."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def most_connections(spare: int = SPARE_DESCRIPTORS) -> int:
    """How many connections may be open at once, besides other descriptors. Raises the soft limit of the process if the system allows it."""
    try:
        import resource
    except ImportError:  # there is no such limit on Windows
        return MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + spare
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(16, min(MOST_CONNECTIONS, soft - spare))


def on_signals(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, end)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
