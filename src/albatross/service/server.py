"""The process that serves a folder: from the first log line to the exit code."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import structlog
import uvicorn
import uvloop

from albatross.core.errors import InvalidInput
from albatross.service.engine import Engine, Options
from albatross.service.express import Express
from albatross.service.gate import LOOPBACK, Gate, is_loopback
from albatross.service.http import PATHS, application
from albatross.service.keys import Keys
from albatross.service.metrics import Metrics
from albatross.service.protocol import BoundedProtocol
from albatross.service.serving import Service

PROGRESS_SECONDS = 1.0
DRAIN_SECONDS = 10
"""How long a request may still take once the service is told to end."""
SWITCH_SECONDS = 0.0005
"""The engine's thread and the one that talks to the network take turns: Python's 5 ms would be most of an answer's time."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Address:
    """Where to listen, and under which names."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0: any that is free; the log says which."""
    certificate: Path | None = None
    private_key: Path | None = None
    allow_hosts: Sequence[str] = ()
    allow_origins: Sequence[str] = ()

    def check(self, keys: Keys) -> None:
        if not is_loopback(self.host) and not keys:
            raise InvalidInput(
                f"host is {self.host!r}, which others can reach, and there is no key; "
                f"make one first: albatross keys create {keys.path.parent} --scope recommend --scope feedback"
            )
        if (self.certificate is None) != (self.private_key is None):
            raise InvalidInput("TLS needs both --certificate and --private-key")
        for path in (self.certificate, self.private_key):
            if path is not None and not path.is_file():
                raise InvalidInput(f"{path} is not a file; accepted: a file in PEM format")

    def listen(self) -> socket.socket:
        try:
            return socket.create_server((self.host, self.port), family=_family(self.host), backlog=2048)
        except OSError as error:
            raise InvalidInput(f"cannot listen on {self.host}, port {self.port}: {error.strerror or error}") from error


def serve(folder: Path, options: Options, address: Address, listening: socket.socket | None = None) -> None:
    """Serve until told to end by SIGTERM or the interrupt key. Raises what made it end otherwise."""
    keys = Keys(folder)
    address.check(keys)
    sys.setswitchinterval(SWITCH_SECONDS)
    with listening or address.listen() as opened, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(folder, options, address, keys, opened))


async def _serve(folder: Path, options: Options, address: Address, keys: Keys, listening: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    failure: list[BaseException] = []
    server: _Server | None = None

    def end() -> None:
        service.ending.set()
        if server is not None:
            server.should_exit = True

    def fail(error: BaseException) -> None:
        failure.append(error)
        loop.call_soon_threadsafe(end)

    engine = Engine(folder, options, on_failure=fail)
    try:
        service = Service(engine, keys, Metrics(PATHS), needs_key=not is_loopback(address.host))
        hosts = {*LOOPBACK, *address.allow_hosts, f"[{address.host}]" if ":" in address.host else address.host}
        gate = Gate(Express(application(service), service), service.metrics, hosts, address.allow_origins, options.queue)
        service.in_flight = lambda: gate.in_flight
        server = _Server(_configuration(gate, address))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        host, port = listening.getsockname()[:2]
        scheme = "https" if address.certificate else "http"
        log.info("listening", url=f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}", folder=str(folder), keys=bool(keys))
        telling = asyncio.create_task(_tell_progress(service))
        if not service.ending.is_set():
            await server.serve(sockets=[listening])
        service.ending.set()
        await telling
        log.info("draining")
    finally:
        await asyncio.to_thread(engine.close)
    if failure:
        log.error("failed", reason=str(failure[0]))
        raise failure[0]
    log.info("stopped")


async def _tell_progress(service: Service) -> None:
    """Say how far the replay is, until it is over."""
    while not service.ending.is_set():
        readiness = service.engine.readiness
        if readiness.ready:
            log.info("ready", events=readiness.total)
            return
        log.info(readiness.phase, done=readiness.done, total=readiness.total)
        ready = asyncio.create_task(asyncio.to_thread(_wait_ready, service.engine))
        ending = asyncio.create_task(service.ending.wait())
        await asyncio.wait([ready, ending], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        await ready


def _wait_ready(engine: Engine) -> None:
    with contextlib.suppress(Exception):  # what fails is told by `on_failure`
        engine.wait_ready(PROGRESS_SECONDS)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `_serve`: it ends the engine, too, and with its own exit code."""
        yield


def _configuration(app: Any, address: Address) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.private_key,
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def configure_log(form: str, stream: TextIO) -> None:
    """One line an event, as JSON or for people. Bodies and headers are never logged, so no key is."""
    renderer: Any = structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.format_exc_info] if form == "json" else []),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = _Forward(level=logging.WARNING)
    for name in ("uvicorn.error", "asyncio", "litestar"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False


class _Forward(logging.Handler):
    """What the libraries warn of goes the same way."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, record.getMessage(), library=record.name, exc_info=record.exc_info)
