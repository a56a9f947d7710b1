"""`albatross serve`: a recommender over HTTP."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from albatross.cli.arguments import parse_events, parse_policy, parse_scale, parse_silence, parse_time
from albatross.core.errors import InvalidInput
from albatross.service.engine.learned.options import QUEUE, Options
from albatross.service.http.logs import configure_log
from albatross.service.http.process import Address
from albatross.service.http.process import serve as serve_home
from albatross.service.storage.home import home_of


def serve(
    folder: str,
    *,
    scale: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    policy: str | None = None,
    setting: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
    accept_changed_policy: Annotated[bool, Parameter(negative=())] = False,
    seed: int | None = None,
    floor: float | None = None,
    closed_catalogue: bool | None = None,
    events: str | None = None,
    silence: str | None = None,
    retention: str | None = None,
    durability: Literal["commit", "relaxed"] = "commit",
    host: str = "127.0.0.1",
    port: int = 8000,
    certificate: Path | None = None,
    private_key: Path | None = None,
    allow_host: Annotated[list[str] | None, Parameter(negative=())] = None,
    allow_origin: Annotated[list[str] | None, Parameter(negative=())] = None,
    snapshots: Path | None = None,
    queue: int = QUEUE,
    log: Literal["text", "json"] = "text",
) -> None:
    """Serve a folder over HTTP. It is made if it does not exist; nothing else is needed. Or serve a database of PostgreSQL.

    Examples: albatross serve shop.albatross --scale 1..5; albatross serve postgresql://albatross@db.example/shop --scale 1..5

    Parameters
    ----------
    folder
        Where everything is kept; or postgresql://user@host/database, where the log and the keys are kept.
    scale
        Lowest and highest rating, as 1..5. Needed for a new folder, unless --events say it.
    policy
        Name of a policy (see: albatross list), file.py:Class or module:Class; for a new folder, mean-field if not given.
    setting
        Parameter of the policy, as key=value; may be given several times.
    accept_changed_policy
        If the source of a policy from outside has changed: learn from the whole log again, with the new source.
    seed
        Seed of a new folder; 0 if not given.
    floor
        Share of decisions left to chance, so that propensities are true; 0.05 for a new folder.
    closed_catalogue
        Items appear only by upsert, not by being named.
    events
        Names of events, and what they are worth, as impression=0,click=1,cart=3,purchase=5. Then `event` may stand for `rating` in
        feedback; of the same item of a decision the last one counts. Without --scale, the scale is that of the events.
    silence
        What it counts for that nobody answers, and after how long, as 30m=0. Units: s, m, h, d. What comes later takes its place.
    retention
        How long a decision that nobody answers stays in the log, as 90d; for ever if not given. An answer that comes later is refused.
    durability
        commit: on disk before it is acknowledged; relaxed: up to a second may be lost if the power fails.
    host
        Address to listen on. Anything but this machine needs a key: albatross keys create.
    port
        Port to listen on; 0 for any that is free.
    certificate
        TLS: the certificate chain, a PEM file.
    private_key
        TLS: its private key, a PEM file.
    allow_host
        A further name under which the service may be called (the Host header), as shop.example; may be given several times. Needs a key.
    allow_origin
        A further origin whose pages may call the service, as https://shop.example; may be given several times.
    snapshots
        With an address of PostgreSQL: the folder for snapshots, which make a start quick. If not given, one in the user's cache.
    queue
        Requests that may wait, at most; beyond, they are refused with 429.
    log
        How to log, to standard error: text, or json, one object a line.
    """
    if not 0 <= port <= 65535:
        raise InvalidInput(f"--port is {port}; accepted: 0 to 65535")
    if queue < 1:
        raise InvalidInput(f"--queue is {queue}; accepted: a whole number, at least 1")
    options = Options(
        policy=None if policy is None else parse_policy(policy),
        scale=None if scale is None else parse_scale(scale),
        seed=seed,
        floor=floor,
        closed=closed_catalogue,
        events=None if events is None else parse_events(events),
        silence=None if silence is None else parse_silence(silence),
        retention=None if retention is None else parse_time("--retention", retention),
        durability=durability,
        queue=queue,
        accept_changed_policy=accept_changed_policy,
    )
    configure_log(log, sys.stderr)
    serve_home(home_of(folder, snapshots), options, Address(host, port, certificate, private_key, allow_host or (), allow_origin or ()))
