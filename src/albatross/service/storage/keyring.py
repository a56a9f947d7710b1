"""Where the key records of a service are stored: one document that several processes read and change."""

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from albatross.core.files import lock_file, whole_file
from albatross.service.storage.folder import KEYS

LOCK = "keys.lock"


class Keyring(Protocol):
    """A document that exists from the first key on, and must not disappear after that."""

    @property
    def name(self) -> str:
        """The name of the service, as commands take it."""

    @property
    def lost(self) -> bool:
        """If there is no document: whether there was one before."""

    def stamp(self) -> Hashable | None:
        """A value that changes whenever the document does; None if there is no document. Raises `OSError` if it cannot be read."""

    def read(self) -> bytes | None:
        """The document, or None."""

    def close(self) -> None:
        """No more stamps will be asked for."""

    def changing(self) -> AbstractContextManager[Callable[[bytes], None]]:
        """Lock the document against other processes, and give a function that replaces it. When that function returns, it is durable."""


class FileKeyring:
    """A file in the folder of the service. The lock file beside it stays, and shows that there has been a key."""

    def __init__(self, folder: Path) -> None:
        self.name, self.path = str(folder), folder / KEYS
        self._path = str(self.path)

    @property
    def lost(self) -> bool:
        return self.path.with_name(LOCK).exists()

    def stamp(self) -> Hashable | None:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - while requests wait, and a Path takes three times as long
        except FileNotFoundError:
            return None
        return (status.st_mtime_ns, status.st_ino, status.st_size)

    def read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None

    def close(self) -> None:
        pass

    @contextmanager
    def changing(self) -> Iterator[Callable[[bytes], None]]:
        lock = os.open(self.path.with_name(LOCK), os.O_CREAT | os.O_RDWR, 0o600)
        with open(lock, "r+b") as file:  # noqa: PTH123 - a Path cannot set the mode
            lock_file(file, wait=True)
            for partial in self.path.parent.glob(f".{KEYS}.*.partial"):
                partial.unlink(missing_ok=True)  # of a killed process: this one holds the lock
            yield self._write

    def _write(self, document: bytes) -> None:
        with whole_file(self.path, 0o600) as new:
            new.write_bytes(document)


def copy_keys(ring: Keyring, folder: Path) -> None:
    """Write the keys of a service to a new folder. Where a key was needed, one is needed there too, also if the keys were lost."""
    document = ring.read()
    if document is None and not ring.lost:
        return
    (folder / LOCK).touch(0o600)
    if document is not None:
        with whole_file(folder / KEYS, 0o600) as new:
            new.write_bytes(document)
