"""Checks whether a folder and this machine are ready to serve."""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.core.version import VERSION
from albatross.kernels.compiling import cache_root, source_fingerprint
from albatross.service.engine.learned.options import Options, check_agrees, policy_of
from albatross.service.engine.learned.snapshots import load
from albatross.service.engine.opening import check_stance, first_event
from albatross.service.settings.force import InForce, described, options_of, with_genesis
from albatross.service.storage.home import Home
from albatross.service.storage.numbering import rewards_now
from albatross.service.storage.reading import check_log, lacking, read_genesis
from albatross.service.storage.snapshots import manifests

SYNCS = 50
"""Number of writes that are timed."""
LITTLE_ROOM = 1 << 30
"""Below so many free bytes, a warning is given."""


class Examination(NamedTuple):
    facts: list[str]
    troubles: list[str]


def examine(home: Home, settings: Mapping[str, InForce] | None = None) -> Examination:
    """Check everything a service needs. A running service is not disturbed. `settings`: those it would be started with."""
    folder = home.folder
    found = Examination([f"albatross {VERSION}, Python {sys.version.partition(' ')[0]}, machine code in {cache_root()}"], [])
    where = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())
    if not os.access(where, os.W_OK):
        found.troubles.append(f"{where} cannot be written to")
    else:
        _disk(where, found)
    if folder.exists() and not folder.is_dir():
        found.troubles.append(f"{folder} is a file; accepted: a folder")
        return found
    try:
        if home.begun:
            _log(home, settings, found)
        else:
            found.facts.append(f"{home} is not there yet: albatross serve makes it")
            found.facts.extend(described(settings or {}))
            options = options_of(settings) if settings else Options()
            if options.scale is not None or options.events is not None:  # otherwise it is not said yet what is to be made
                first_event(options)
    except InvalidInput as error:
        found.troubles.append(str(error))
    return found


def _disk(where: Path, found: Examination) -> None:
    room = shutil.disk_usage(where).free
    found.facts.append(f"{where}: {room / 2**30:,.1f} GiB are free")
    if room < LITTLE_ROOM:
        found.troubles.append(f"{where} has {room / 2**20:,.0f} MiB left; a service answers 507 when it is full")
    times = []
    with tempfile.NamedTemporaryFile(dir=where, prefix=".doctor") as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    found.facts.append(f"{where}: a durable write takes {1e3 * statistics.median(times):.2f} ms")


def _log(home: Home, settings: Mapping[str, InForce] | None, found: Examination) -> None:
    found.facts.extend(home.facts())
    with home.reading() as log:
        genesis = read_genesis(log, str(home))
        low, high = genesis.scale
        found.facts.append(f"{home}: policy {genesis.policy}, scale {low:g} to {high:g}, {log.head.seq:,} events")
        rewards = rewards_now(log, genesis)[1]
        if rewards:
            since = "" if rewards == genesis.events else " (set since the folder was made; they count, whatever it began with)"
            found.facts.append(f"{home}: events " + ", ".join(f"{name} = {reward:g}" for name, reward in rewards.items()) + since)
        check_log(log)
        if log.restored:
            found.facts.append(f"{home}: {lacking(log)}")
        found.facts.append(f"{home}: every event, every handle, the chain and the mark are sound")
        if source_fingerprint(type(policy_of(genesis))) != genesis.kernel:
            found.facts.append("the code has changed since the folder was made: its first start replays the whole log")
        sound, complaints = manifests(home.folder)
        for path, manifest in sound:
            try:
                load(path, manifest, genesis)
            except InvalidInput as error:
                if path.exists():  # otherwise a newer snapshot replaced it
                    complaints.append(str(error))
            else:
                found.facts.append(f"{path.name}: a sound snapshot of event {manifest.seq:,}")
        lost = "nothing is lost: the log has it all, and the next snapshot takes its place"
        found.troubles.extend(f"{complaint}; {lost}" for complaint in complaints)
        if settings is not None:
            found.facts.extend(described(with_genesis(settings, genesis, rewards)))
            options = options_of(settings)
            check_stance(options, genesis)
            check_agrees(options, genesis, str(home), rewards)
