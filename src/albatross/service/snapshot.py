"""The model on disk beside the log, so that a start need not replay everything. Deleting all of them loses nothing but time.

A snapshot is an `.npz` file and a manifest beside it, which is written last: {seq, chain, state id, kernel, and the digest of the file}.
Each is written, synchronised, renamed, and the folder synchronised; a reader believes nothing that does not have the digests given.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.state import flatten, identity, restored
from albatross.kernels.compiling import source_fingerprint
from albatross.service.events import Genesis
from albatross.service.ledger import Ledger, no_ledger, trimmed
from albatross.service.log import Head, sync_folder
from albatross.service.model import Model

SNAPSHOTS = "snapshots"
KEEP = 3
"""Snapshots to keep: the newest."""


class Manifest(NamedTuple):
    seq: int
    chain: str
    state_id: str
    kernel: str
    digest: str
    """Of the file of arrays."""


class Capture(NamedTuple):
    """A model as it was at one event, apart from the one that lives on."""

    head: Head
    kernel: str
    state: Any
    ledger: Ledger
    sums: NDArray[np.float64]
    saved: bytes


def kernel_of(model: Model) -> str:
    return source_fingerprint(type(model.policy))


def capture(model: Model, head: Head) -> Capture:
    """Copy a model: quick, so that whoever serves it need not wait for the disk."""
    model.learn()
    saved = model.saved()
    saved["n_users"], saved["n_items"] = model.agent.n_users, model.agent.n_items
    saved["learning"] = model.agent.learning.bit_generator.state
    return Capture(
        head=head,
        kernel=kernel_of(model),
        state=_copied(model.agent.state),
        ledger=trimmed(model.ledger),
        sums=model.series.sums.copy(),
        saved=json.dumps(saved).encode(),
    )


def _copied(state: Any) -> Any:
    parts = (_copied(value) if isinstance(value, tuple) else value.copy(order="K") for value in state)
    return type(state)(*parts)


def write(folder: Path, taken: Capture) -> tuple[Path, Manifest]:
    """Write a snapshot, and remove all but the newest."""
    target = folder / SNAPSHOTS
    target.mkdir(exist_ok=True)
    arrays = {f"state.{name}": array for name, array in flatten(taken.state)}
    arrays |= {f"ledger.{name}": array for name, array in flatten(taken.ledger)}
    arrays["sums"] = taken.sums
    arrays["saved"] = np.frombuffer(taken.saved, np.uint8)
    path = target / f"{taken.head.seq:015d}.npz"

    def save(file: Any) -> None:
        np.savez(file, allow_pickle=False, **arrays)

    _write_durably(path, save)
    digest = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    manifest = Manifest(taken.head.seq, taken.head.chain.hex(), identity(taken.state), taken.kernel, digest)
    text = json.dumps(manifest._asdict())
    _write_durably(path.with_suffix(".json"), lambda file: file.write(f"{text}\n{_digest(text)}\n".encode()))
    for old in sorted(target.glob("*.json"))[:-KEEP]:
        old.unlink()
        old.with_suffix(".npz").unlink(missing_ok=True)
    return path, manifest


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _write_durably(path: Path, save: Callable[[Any], Any]) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with unfinished.open("wb") as file:
            save(file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def manifests(folder: Path) -> tuple[list[tuple[Path, Manifest]], list[str]]:
    """The manifests that can be believed, newest first, each with the path of its arrays; and why others cannot."""
    sound, complaints = [], []
    for path in sorted((folder / SNAPSHOTS).glob("*.json"), reverse=True):
        try:
            text, digest, *end = path.read_bytes().decode().split("\n")
            if _digest(text) != digest or end != [""]:
                raise ValueError("its digest does not fit")
            sound.append((path.with_suffix(".npz"), Manifest(**json.loads(text))))
        except (OSError, ValueError, TypeError) as error:
            complaints.append(f"{path} is damaged: {error}")
    return sound, complaints


def load(path: Path, manifest: Manifest, genesis: Genesis) -> Model:
    """The model of a snapshot. Raises `InvalidInput` where it is not exactly what was written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    if hashlib.blake2b(content, digest_size=16).hexdigest() != manifest.digest:
        raise InvalidInput(f"{path} is damaged: its digest does not fit")
    model = Model(genesis)
    if kernel_of(model) != manifest.kernel:
        raise InvalidInput(f"{path} was written by another version of the code")
    try:
        with path.open("rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
        saved = json.loads(arrays.pop("saved").tobytes())
        model.agent.grow(saved["n_users"], saved["n_items"])
        model.agent.state = restored(model.agent.state, _part(arrays, "state."))
        model.agent.learning.bit_generator.state = saved["learning"]
        ledger = _ledger(_part(arrays, "ledger."), saved["n_users"], saved["n_items"])
        model.restore(saved, ledger, arrays["sums"])
    except (OSError, BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a snapshot: {error}") from error
    if model.state_id != manifest.state_id:
        raise InvalidInput(f"{path} does not hold the state it names")
    return model


def _ledger(arrays: dict[str, NDArray[Any]], n_users: int, n_items: int) -> Ledger:
    blank = no_ledger(n_users, n_items)
    used = int(arrays["used"][0])
    return restored(blank._replace(before=np.empty(used, np.int32), items=np.empty(used, np.int32)), arrays)


def _part(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def remove_all(folder: Path) -> None:
    """Remove every snapshot: after something was erased, none of them is true any more."""
    for path in (folder / SNAPSHOTS).glob("*"):
        path.unlink()
    if (folder / SNAPSHOTS).exists():
        sync_folder(folder / SNAPSHOTS)
