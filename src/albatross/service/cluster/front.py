"""A front: the HTTP application over a shard in another process. Several fronts of one machine share a port."""

import contextlib
import os
import signal
import socket
import sys
import threading
from typing import Any

from albatross.service.api.errors import NotReady
from albatross.service.cluster.processes import Presence
from albatross.service.cluster.router import Call, Router
from albatross.service.engine.learned.options import Options
from albatross.service.http.logs import configure_log
from albatross.service.http.process import Address, serve
from albatross.service.storage.events import Genesis
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.storage.reading import read_genesis

GREET_SECONDS = 0.2
"""Between two looks whether a shard is there, at the beginning."""


class RemoteEngine(Router):
    """What the HTTP application takes for an engine."""

    def __init__(self, call: Call, most: int, genesis: Genesis) -> None:
        super().__init__(call, most)
        self.genesis = genesis

    def wait_ready(self, timeout: float | None = None) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._reached, timeout):
                raise NotReady("the shard is being started")


class Front:
    """Made an actor by `cluster.running`. What it serves it is told with `run`: after a restart, again."""

    def run(self, address: str, shard: Any, listen: Address, queue: int, url: str) -> None:
        """Serve until told to stop."""
        configure_log("json", sys.stderr)
        home = PostgresHome(address)
        with home.reading() as log:
            genesis = read_genesis(log, str(home))
        presence = Presence(address, "front", url, lambda: os.kill(os.getpid(), signal.SIGTERM))
        try:
            with reused(listen) as listening:
                serve(home, Options(queue=queue), listen, listening, lambda *_: _remote(shard, queue, genesis))
        finally:
            presence.end()


def _remote(shard: Any, queue: int, genesis: Genesis) -> RemoteEngine:
    engine = RemoteEngine(lambda requests: shard.answer.remote(requests).future(), queue, genesis)

    def greet() -> None:
        """Wait for the shard, which answers once it has replayed its log."""
        pause = threading.Event()
        while not engine.readiness.ready:
            with contextlib.suppress(Exception):  # it is not there yet
                shard.state.remote().future().result()
                engine.reached()
            pause.wait(GREET_SECONDS)

    threading.Thread(target=greet, name="albatross-greeting", daemon=True).start()
    return engine


def reused(listen: Address) -> socket.socket:
    """A socket on a port that others of this machine listen on, too."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    return socket.create_server((listen.host, listen.port), family=family, backlog=2048, reuse_port=True)


def free_port(host: str) -> tuple[socket.socket, int]:
    """A port for several fronts, and the socket that keeps it for them: bound, and not listening."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, 0))
    return held, int(held.getsockname()[1])
