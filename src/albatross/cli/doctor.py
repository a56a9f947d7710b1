"""`albatross doctor`: is this folder, and this machine, fit to serve?"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import albatross
from albatross.cli.folder import opened_log
from albatross.core.errors import InvalidInput
from albatross.kernels.compiling import cache_root, source_fingerprint
from albatross.service import snapshot
from albatross.service.log import LOG
from albatross.service.model import policy_of
from albatross.service.recovery import check_keys

SYNCS = 50
"""Writes to time."""
LITTLE_ROOM = 1 << 30
"""Bytes below which the disk is called almost full."""


def doctor(folder: Path) -> None:
    """Look at everything a service needs, and say what is wrong, with what to do.

    Parameters
    ----------
    folder
        A folder of the service, or where one is to be made.
    """
    troubles: list[str] = []
    print(f"albatross {albatross.__version__}, Python {sys.version.partition(' ')[0]}, machine code in {cache_root()}")
    where = folder if folder.is_dir() else folder.absolute().parent
    if not os.access(where, os.W_OK):
        troubles.append(f"{where} cannot be written to")
    else:
        _disk(where, troubles)
    if (folder / LOG).is_file():
        try:
            _log(folder, troubles)
        except InvalidInput as error:
            troubles.append(str(error))
    else:
        print(f"{folder} is not there yet: albatross serve makes it")
    for trouble in troubles:
        print(f"trouble: {trouble}")
    if troubles:
        raise InvalidInput(f"{folder}: {len(troubles)} {'thing is' if len(troubles) == 1 else 'things are'} wrong")
    print("nothing is wrong")


def _disk(where: Path, troubles: list[str]) -> None:
    room = shutil.disk_usage(where).free
    print(f"{where}: {room / 2**30:,.1f} GiB are free")
    if room < LITTLE_ROOM:
        troubles.append(f"{where} has {room / 2**20:,.0f} MiB left; a service answers 507 when it is full")
    times = []
    with tempfile.NamedTemporaryFile(dir=where, prefix=".doctor") as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    print(f"{where}: a durable write takes {1e3 * statistics.median(times):.2f} ms")


def _log(folder: Path, troubles: list[str]) -> None:
    with opened_log(folder) as (store, genesis):
        low, high = genesis.scale
        print(f"{folder}: policy {genesis.policy}, scale {low:g} to {high:g}, {store.head.seq:,} events")
        for _ in store.read():
            pass
        check_keys(store)
        print(f"{folder}: every event, every id and the chain are sound")
        if source_fingerprint(type(policy_of(genesis))) != genesis.kernel:
            print("the code has changed since the folder was made: the next start replays the whole log")
        sound, complaints = snapshot.manifests(folder)
        for path, manifest in sound:
            try:
                snapshot.load(path, manifest, genesis)
            except InvalidInput as error:
                complaints.append(str(error))
            else:
                print(f"{path.name}: a sound snapshot of event {manifest.seq:,}")
        troubles += [f"{complaint}; nothing is lost: the log has it all, and the next snapshot takes its place" for complaint in complaints]
