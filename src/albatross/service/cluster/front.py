"""A front: the HTTP application over shards in other processes. Several fronts of one machine share a port."""

import asyncio
import os
import signal
import socket
import sys

from albatross.core.errors import InvalidInput
from albatross.service.cluster.lanes import Lanes
from albatross.service.cluster.lines.links import Link, Links
from albatross.service.cluster.processes import FRONT, Presence
from albatross.service.engine.learned.options import Options
from albatross.service.http.logs import configure_log
from albatross.service.http.process import ListenAddress, serve
from albatross.service.storage.events import Genesis
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.storage.reading import read_genesis


class RemoteEngine(Lanes):
    """The engine of the HTTP application, on the front's side. Made in the event loop, closed from another thread."""

    def __init__(self, database: str, most: int, genesis: Genesis) -> None:
        links = [Link() for _ in range(genesis.shards)]
        super().__init__([link.call for link in links], most)
        self.genesis = genesis
        self._loop = asyncio.get_running_loop()
        self._links = Links(database, links, self.routers)

    def close(self) -> None:
        super().close()
        asyncio.run_coroutine_threadsafe(self._links.close(), self._loop).result()


class Front:
    """Made an actor by `cluster.supervising`. `run` tells it what to serve, after a restart again."""

    def __init__(self) -> None:
        self._has_served = False

    def run(self, address: str, listen: ListenAddress, queue: int, url: str) -> None:
        """Serve until told to stop. A process serves once: called again, it ends, and Ray starts another."""
        if self._has_served:
            os._exit(1)
        configure_log("json", sys.stderr)
        home = PostgresHome(address, shard=0)
        with home.reading() as log:
            genesis = read_genesis(log, str(home))
        presence = Presence(address, FRONT, url, lambda _: os.kill(os.getpid(), signal.SIGTERM))
        self._has_served = True
        try:
            with reused(listen) as listening:
                serve(home, Options(queue=queue), listen, listening, lambda *_: RemoteEngine(address, queue, genesis))
        finally:
            presence.end()


def reused(listen: ListenAddress) -> socket.socket:
    """A socket on a port that other processes of this machine listen on, too."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        return socket.create_server((listen.host, listen.port), family=family, backlog=2048, reuse_port=True)
    except OSError as error:
        raise InvalidInput(f"cannot listen on {listen.host}, port {listen.port}: {error.strerror or error}") from None


def free_port(host: str) -> tuple[socket.socket, int]:
    """A port for several fronts, and the socket that reserves it: bound, but not listening."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, 0))
    return held, int(held.getsockname()[1])
