"""Snapshots on disk, so that a start need not replay everything. They may all be deleted; only time is lost.

A snapshot is an `.npz` file and a manifest beside it, which is written last. A reader accepts neither without the right
digest.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.files import sync_folder, whole_file
from albatross.service.storage.folder import SNAPSHOTS, make_folder

KEEP = 3
"""How many snapshots to keep: the newest."""


class Manifest(NamedTuple):
    seq: int
    chain: str
    state_id: str
    kernel: str
    handles: tuple[int, int]
    """The sum of the handles of all events up to `seq`."""
    digest: str = ""
    """Of the `.npz` file."""


def write(folder: Path, manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write a snapshot, and remove all but the newest. Returns the path of the `.npz` file."""
    target = folder / SNAPSHOTS
    make_folder(target)
    path = target / f"{manifest.seq:015d}.npz"
    with whole_file(path, 0o600) as partial, partial.open("wb+") as file:
        named: dict[str, Any] = dict(arrays)
        np.savez(file, allow_pickle=False, **named)
        file.seek(0)
        digest = hashlib.file_digest(file, _blake).hexdigest()
    text = json.dumps(manifest._replace(digest=digest)._asdict())
    with whole_file(path.with_suffix(".json"), 0o600) as partial:
        partial.write_text(f"{text}\n{_digest(text)}\n")
    for old in sorted(target.glob("*.json"))[:-KEEP]:
        old.unlink()
        old.with_suffix(".npz").unlink(missing_ok=True)
    return path


def manifests(folder: Path) -> tuple[list[tuple[Path, Manifest]], list[str]]:
    """The valid manifests, newest first, each with the path of its arrays; and the reasons why others are invalid."""
    sound, complaints = [], []
    for path in sorted((folder / SNAPSHOTS).glob("*.json"), reverse=True):
        try:
            text, digest, *end = path.read_bytes().decode().split("\n")
            if _digest(text) != digest or end != [""]:
                raise ValueError("its digest does not fit")
            manifest = Manifest(**json.loads(text))
            sound.append((path.with_suffix(".npz"), manifest._replace(handles=(manifest.handles[0], manifest.handles[1]))))
        except FileNotFoundError:
            continue  # removed, because a newer one replaced it
        except (OSError, ValueError, TypeError) as error:
            complaints.append(f"{path} is damaged: {error}")
    return sound, complaints


def read(path: Path, manifest: Manifest) -> dict[str, NDArray[Any]]:
    """The arrays of a snapshot. Raises `InvalidInput` if they are not exactly what was written."""
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, _blake).hexdigest() != manifest.digest:
                raise InvalidInput(f"{path} is damaged: its digest does not fit")
            file.seek(0)
            return dict(np.load(file, allow_pickle=False))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a snapshot: {error}") from error


def remove_all(folder: Path) -> None:
    """Remove every snapshot: after an erasure, none of them is valid."""
    for path in (folder / SNAPSHOTS).glob("*"):
        if path.is_file():
            path.unlink(missing_ok=True)
    if (folder / SNAPSHOTS).exists():
        sync_folder(folder / SNAPSHOTS)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _blake() -> Any:
    return hashlib.blake2b(digest_size=16)
