"""`albatross cluster`: a service of several processes, on PostgreSQL and Ray."""

import json
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from albatross.cli.arguments import parse_policy
from albatross.cli.cluster.demo import demo
from albatross.cli.service.folder import meet, opened_log, watched
from albatross.cli.service.restore import restore
from albatross.cli.service.verify import verify_home
from albatross.core.errors import check_whole
from albatross.service.api.rules import By
from albatross.service.cluster import pruning, running
from albatross.service.cluster.dividing import divide
from albatross.service.engine.learned.options import QUEUE, Options
from albatross.service.http.logs import configure_log
from albatross.service.http.process import ListenAddress
from albatross.service.settings.kinds import parse_scale
from albatross.service.settings.table import BY_KEY
from albatross.service.storage.postgres.session import name_of
from albatross.service.storage.postgres.sharing import check_copied

cluster = App(
    name="cluster",
    help="A service of several processes: init, start, status, restart, stop, verify, prune, accept-loss, move, demo.",
    help_format="plaintext",
)

cluster.command(demo)


@cluster.command
def init(
    address: str,
    *,
    scale: Annotated[str, Parameter(allow_leading_hyphen=True)],
    shards: int = 1,
    policy: str | None = None,
    setting: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
    seed: int | None = None,
    floor: float | None = None,
    closed_catalogue: bool | None = None,
) -> None:
    """Make the tables of a cluster in a database of PostgreSQL.

    Example: albatross cluster init postgresql://albatross@db.example/shop --scale 1..5

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    scale
        Lowest and highest rating, as 1..5.
    shards
        Number of shards that the users are split over. It cannot be changed: take as many as you may ever have machines.
    policy
        Name of a policy (see: albatross list), file.py:Class or module:Class; mean-field if not given.
    setting
        Parameter of the policy, as key=value; may be given several times.
    seed
        Seed; 0 if not given.
    floor
        Share of places filled at random, so that propensities are valid; 0.05 if not given.
    closed_catalogue
        Items are added only by upsert, not when a request names them.
    """
    chosen = None if policy is None else parse_policy(policy)
    options = Options(policy=chosen, scale=parse_scale(scale), seed=seed, floor=floor, closed=closed_catalogue)
    running.make(address, shards, options)


@cluster.command
def start(
    address: str,
    /,
    *,
    fronts: int = 2,
    ray: Annotated[str | None, Parameter(name=("--ray", "--address"))] = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    allow_host: Annotated[list[str] | None, Parameter(negative=())] = None,
    allow_origin: Annotated[list[str] | None, Parameter(negative=())] = None,
    snapshots: str | None = None,
    queue: int = QUEUE,
    strangers: By = "policy",
    log: Literal["text", "json"] = "text",
) -> None:
    """Run a cluster until it is told to stop: by albatross cluster stop, SIGTERM or the interrupt key.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    fronts
        Processes that speak HTTP; on one machine they share the port.
    ray
        A running Ray cluster, as auto or ray://host:port; if not given, one is started on this machine and stopped at the end.
    host
        Address to listen on. Any other than this machine needs a key: albatross keys create.
    port
        Port to listen on; 0 for any free port.
    allow_host
        A further name under which the service may be called (the Host header); may be given several times. Needs a key.
    allow_origin
        A further origin whose pages may call the service; may be given several times.
    snapshots
        Where snapshots are, for a quick start: a folder, or a URL that fsspec knows, such as s3://bucket/shop, so that a shard finds them
        on any machine. A folder in the user's cache if not given.
    queue
        Limit of waiting requests per front; further ones are refused with 429.
    strangers
        What users without ratings are shown: what the policy predicts for everybody, popular items, or new ones.
    log
        Format of the log on standard error: text, or json with one object per line.
    """
    check_whole("--fronts", fronts, 1)
    BY_KEY["port"].kind.read("--port", port)
    BY_KEY["queue"].kind.read("--queue", queue)
    configure_log(log, sys.stderr)
    listen = ListenAddress(host, port, None, None, allow_host or (), allow_origin or ())
    running.run(address, listen, fronts, ray, snapshots, queue, strangers)


@cluster.command
def status(address: str, *, as_json: Annotated[bool, Parameter(name="--json", negative=())] = False) -> None:
    """Show the shards and fronts and their processes.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    as_json
        Print JSON, for programs.
    """
    found = running.status(address)
    if as_json:
        print(json.dumps(found))
        return
    for shard in found["shards"]:
        where = f" by process {shard['pid']} on {shard['node']}" if shard["pid"] else ""
        print(f"shard {shard['shard']}: {shard['state']}{where}, epoch {shard['epoch']}, {shard['seq']:,} events")
    for front in found["fronts"]:
        print(f"front {front['url']}: process {front['pid']}")


@cluster.command
def stop(address: str) -> None:
    """Tell a cluster to stop, and wait until it has. Waiting requests are answered and snapshots are written.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    """
    count = running.stop(address, threading.Event().wait)
    print(f"{count} processes have stopped")


@cluster.command
def restart(address: str) -> None:
    """Replace every process of a cluster, one after the other, while the others serve: for a new version of the code.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    """
    running.restart(address, threading.Event().wait)
    print("every process was replaced")


@cluster.command
def verify(address: str, *, decisions: bool = False, policy: str | None = None, snapshots: str | None = None) -> None:
    """Rebuild the model of every shard from its log alone, also while the cluster runs.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    decisions
        Also repeat every decision, and compare.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    snapshots
        Where snapshots are, if the cluster was started with --snapshots.
    """
    meet(policy)
    for home in running.homes_of(address, snapshots):
        print(f"shard {home.shard}")
        verify_home(home, decisions)
        if home.shards > 1:
            print(f"{check_copied(address, home.shard):,} events of the catalogue are those of all shards")


@cluster.command
def prune(address: str, *, policy: str | None = None, snapshots: str | None = None) -> None:
    """Merge all exchanges so far, so that they take little space. Their sum is kept, not each one.

    Every shard rebuilds its model from its log and this sum, one after the other, while the others serve. After that, albatross cluster
    verify --decisions cannot check earlier decisions. If it is interrupted, run it again: it continues.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    policy
        Where a policy from outside is now, as file.py:Class, if it was moved.
    snapshots
        Where snapshots are, if the cluster is started with --snapshots: for shards that do not run.
    """
    meet(policy)
    done = pruning.prune(address, snapshots, threading.Event().wait)
    print(f"exchanges up to version {done.version:,} were merged; {done.payloads:,} payloads were removed")
    print(f"payloads took {done.before:,} bytes, and now take {done.after:,}")


@cluster.command
def accept_loss(address: str, *, snapshots: str | None = None) -> None:
    """Go on with a database that lacks acknowledged events: an older one was restored, or a replica that was behind was promoted.

    The cluster must not run. Every log is checked, and all snapshots are removed, because they may contain the missing events.

    Parameters
    ----------
    address
        The database, as postgresql://user@host/database.
    snapshots
        Where snapshots are, if the cluster is started with --snapshots.
    """
    for home in running.homes_of(address, snapshots):
        _, now = home.accept_loss()
        print(f"shard {home.shard}: from now on the log ends at event {now.seq:,}")


@cluster.command
def move(folder: Path, address: str, *, shards: int = 1, policy: str | None = None) -> None:
    """Copy the log of a folder into a database without one. The folder is not changed.

    With several shards events get new numbers: earlier decisions are unknown there, and ratings that name them are refused.

    Parameters
    ----------
    folder
        A folder of the service.
    address
        The database, as postgresql://user@host/database.
    shards
        The number of shards that users are divided over. It cannot be changed later: take as many as you may ever have machines.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    """
    running.check_number(shards)
    if shards == 1:
        restore(folder, address, policy=policy)
        return
    meet(policy)
    with opened_log(folder) as (log, _), watched(log.head.seq) as progress:
        done = divide(folder, address, shards, progress)
    print(f"{name_of(address)}: {done.verdict.seq:,} events, {done.verdict.ratings:,} ratings, on {shards} shards")
    for shard, count in enumerate(done.events):
        print(f"shard {shard}: {count:,} events")
