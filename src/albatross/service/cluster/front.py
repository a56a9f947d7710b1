"""A front: the HTTP application over shards in other processes. Several fronts of one machine share a port."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from albatross.service.api.requests import Request
from albatross.service.cluster.lanes import Lanes
from albatross.service.cluster.packing import pack_batches
from albatross.service.cluster.processes import FRONT, Presence
from albatross.service.cluster.router import Call, Router, Settled
from albatross.service.engine.learned.options import Options
from albatross.service.http.logs import configure_log
from albatross.service.http.process import Address, serve
from albatross.service.storage.events import Genesis
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.storage.reading import read_genesis

GREET_SECONDS = 0.2
"""Seconds between two checks whether a shard is there, at the start."""


class RemoteEngine(Lanes):
    """The engine of the HTTP application, on the front's side."""

    def __init__(self, calls: Sequence[Call], most: int, genesis: Genesis) -> None:
        super().__init__(calls, most)
        self.genesis = genesis


class Front:
    """Made an actor by `cluster.supervising`. `run` tells it what to serve, after a restart again."""

    def run(self, address: str, shards: Sequence[Any], listen: Address, queue: int, url: str) -> None:
        """Serve until told to stop."""
        configure_log("json", sys.stderr)
        pack_batches()
        home = PostgresHome(address, shard=0)
        with home.reading() as log:
            genesis = read_genesis(log, str(home))
        presence = Presence(address, FRONT, url, lambda _: os.kill(os.getpid(), signal.SIGTERM))
        try:
            with reused(listen) as listening:
                serve(home, Options(queue=queue), listen, listening, lambda *_: _remote(shards, queue, genesis))
        finally:
            presence.end()


def _remote(shards: Sequence[Any], queue: int, genesis: Genesis) -> RemoteEngine:
    engine = RemoteEngine([partial(_call, shard) for shard in shards], queue, genesis)
    for shard, router in zip(shards, engine.routers, strict=True):
        threading.Thread(target=_greet, args=(shard, router), name="albatross-greeting", daemon=True).start()
    return engine


def _call(shard: Any, requests: list[Request[Any]]) -> "Future[Settled]":
    future: Future[Settled] = shard.answer.remote(requests).future()
    return future


def _greet(shard: Any, router: Router) -> None:
    """Wait for a shard, which answers once it has replayed its log."""
    pause = threading.Event()
    while not router.readiness.ready:
        with contextlib.suppress(Exception):  # it is not there yet
            shard.state.remote().future().result()
            router.reached()
        pause.wait(GREET_SECONDS)


def reused(listen: Address) -> socket.socket:
    """A socket on a port that other processes of this machine listen on, too."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    return socket.create_server((listen.host, listen.port), family=family, backlog=2048, reuse_port=True)


def free_port(host: str) -> tuple[socket.socket, int]:
    """A port for several fronts, and the socket that reserves it: bound, but not listening."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, 0))
    return held, int(held.getsockname()[1])
