"""Starting, watching, stopping and listing the processes of a cluster."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from msgspec.structs import replace as replaced

from albatross.core.errors import InvalidInput
from albatross.core.sharing.exchange import check_shards
from albatross.service.api.rules import By
from albatross.service.cluster.front import free_port
from albatross.service.cluster.processes import RESTART, STOP, SUPERVISOR, NotAlone, Presence, present, tell, told
from albatross.service.cluster.supervising import Supervisor
from albatross.service.engine.learned.options import Options, new_genesis, policy_of
from albatross.service.engine.opening import try_out
from albatross.service.http.access.keys import Keys
from albatross.service.http.process import ListenAddress
from albatross.service.storage.events import encode
from albatross.service.storage.postgres.home import PostgresHome, snapshots_of
from albatross.service.storage.postgres.session import Session, connect, name_of, shards_of, understood
from albatross.service.storage.postgres.sharing import create_shards
from albatross.service.storage.store import Row

SHARDS = "SELECT shard, epoch, owner, seq, until > clock_timestamp() FROM albatross.shards WHERE shard >= 0 ORDER BY shard"
MOST_SHARDS = 256
"""Limit of shards: every shard receives the payloads of every other, and has its own connections to the database."""
LOOK_SECONDS = 0.5
"""Seconds between two checks of all processes."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that end a cluster: a request to end, the interrupt key, or the end of the terminal."""

log = structlog.get_logger()


def check_number(shards: int) -> None:
    if not 1 <= shards <= MOST_SHARDS:
        raise InvalidInput(f"--shards is {shards}; accepted: 1 to {MOST_SHARDS}")


def make(address: str, shards: int, options: Options) -> None:
    """Make the tables of a cluster, and the first event of each shard."""
    check_number(shards)
    home = PostgresHome(address, shard=0)
    if home.begun:
        raise InvalidInput(f"{home} has a log already; accepted: a database without one")
    genesis = new_genesis(options)
    check_shards(policy_of(genesis), shards)
    try_out(genesis)
    if shards == 1:
        home.begin([Row(encode(genesis))])
    else:
        create_shards(address, [Row(encode(replaced(genesis, shard=shard, shards=shards))) for shard in range(shards)])


def run(
    address: str, listen: ListenAddress, fronts: int, ray_address: str | None, snapshots: str | None, queue: int, strangers: By = "policy"
) -> None:
    """Run a cluster until it is told to stop. `strangers`: by what items are ranked for users without ratings."""
    import ray

    homes = homes_of(address, snapshots)
    keys = Keys(homes[0].keyring)
    listen.check(keys)
    keys.ring.close()
    stopping, restarting = threading.Event(), threading.Event()
    held, port = free_port(listen.host) if listen.port == 0 else (None, listen.port)
    listen = replace(listen, port=port)
    url = f"http://{f'[{listen.host}]' if ':' in listen.host else listen.host}:{port}"
    _heed(stopping)
    presence = _alone(address, url, lambda word: (stopping if word == STOP else restarting).set(), stopping)
    try:
        _begin(ray, ray_address)
        _heed(stopping)  # once more: Ray would end at once
        folder = snapshots if snapshots is None or "://" in snapshots else str(Path(snapshots).absolute())
        if not stopping.is_set():
            shards = [(home.shard, folder) for home in homes]
            supervisor = Supervisor(ray, address, shards, fronts, (listen, queue, url), ray_address is None, strangers)
            log.info("started", url=url, shards=len(homes), fronts=fronts)
            while not stopping.wait(LOOK_SECONDS):
                supervisor.look()
                if restarting.is_set():
                    supervisor.restart(stopping)
                    restarting.clear()
                    presence.obeyed(RESTART)
            log.info("stopping")
            supervisor.stop()
    finally:
        presence.end()
        ray.shutdown()
        if held is not None:
            held.close()
    log.info("stopped")


def _alone(address: str, url: str, on_told: Callable[[str], None], stopping: threading.Event) -> Presence:
    """The presence of the only supervisor. One that was killed is present until it was silent for long enough: wait for that."""
    known: NotAlone | None = None
    while True:
        try:
            return Presence(address, SUPERVISOR, url, on_told, alone=True)
        except NotAlone as other:
            if stopping.wait(LOOK_SECONDS) or (known is not None and other.until != known.until):
                raise
            known = other


def _heed(stopping: threading.Event) -> None:
    """Let signals set `stopping`, without ending anything at once: everything that was started must end first."""
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda *_: stopping.set())


def _begin(ray: Any, address: str | None) -> None:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # by default, Ray gives workers a low priority
    try:
        ray.init(address=address or "local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InvalidInput(f"no Ray cluster answers at {address}: {error}") from error


def restart(address: str, wait: Callable[[float], object]) -> None:
    """Replace all processes of a cluster by new ones, one after the other, and wait until that is done."""
    where = name_of(address)
    with contextlib.closing(connect(address, writing=True)) as session, understood(where):
        if not present(session):
            raise InvalidInput(f"no cluster runs at {where}; accepted: one that albatross cluster start runs")
        if told(session, SUPERVISOR) != [""]:
            raise InvalidInput(f"the cluster at {where} is being restarted or stopped by another command; accepted: one at a time")
        tell(session, RESTART, SUPERVISOR)
        while (words := told(session, SUPERVISOR)) == [RESTART]:
            wait(0.1)
        if words != [""]:
            raise InvalidInput(f"the cluster at {where} has ended before every process was replaced; accepted: one that runs")


def stop(address: str, wait: Callable[[float], object]) -> int:
    """Tell a cluster to stop, and wait until it has. Returns how many processes there were."""
    where = name_of(address)
    with contextlib.closing(connect(address, writing=True)) as session, understood(where):
        _check_begun(session, where)
        count = tell(session, STOP)
        while present(session):
            wait(0.1)
    return count


def _check_begun(session: Session, where: str) -> None:
    if not shards_of(session, where):
        raise InvalidInput(f"{where} has no log of albatross; accepted: one that albatross cluster init made")


def homes_of(address: str, snapshots: str | Path | None) -> list[PostgresHome]:
    """The shards of a database, each with its own folder or URL for snapshots below the given one."""
    first = PostgresHome(address, shard=0)
    if not first.begun:
        raise InvalidInput(f"{first} has no log of albatross; accepted: one that albatross cluster init made")
    return [PostgresHome(address, snapshots_of(snapshots, shard), shard) for shard in range(first.shards)]


def status(address: str) -> dict[str, Any]:
    """The running processes, as recorded in the database."""
    where = name_of(address)
    with contextlib.closing(connect(address)) as session, understood(where):
        _check_begun(session, where)
        rows = session.execute(SHARDS).fetchall()
        several = len(rows) > 1
        version = session.execute("SELECT coalesce(max(version), 0) FROM albatross.payloads").fetchone() if several else None
        processes = present(session)
    shards = []
    for shard, epoch, owner, seq, held in rows:
        node, _, pid = owner.rpartition(", process ")
        known = {"pid": int(pid), "node": node} if held and pid else {"pid": None, "node": None}
        shards.append({"shard": shard, "epoch": epoch, **known, "seq": seq, "state": "serving" if held else "stopped"})
    fronts = [{"url": process.url, "pid": process.pid} for process in processes if process.kind == "front"]
    return {"item_version": 0 if version is None else version[0], "shards": shards, "fronts": fronts}
