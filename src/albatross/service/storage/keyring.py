"""Where a service keeps what it knows of its keys: one document, which several processes read and change."""

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from albatross.core.files import lock_file, whole_file
from albatross.service.storage.folder import KEYS

LOCK = "keys.lock"


class Keyring(Protocol):
    """A document that is there from the first key on, and never gone again."""

    @property
    def name(self) -> str:
        """Of the service, as commands take it."""

    @property
    def lost(self) -> bool:
        """Whether there was a document, if there is none."""

    def stamp(self) -> Hashable | None:
        """Another one whenever the document is; none where there is none. Raises `OSError` where that cannot be told."""

    def read(self) -> bytes | None:
        """The document; none where there is none."""

    def close(self) -> None:
        """Nobody asks for a stamp any more."""

    def changing(self) -> AbstractContextManager[Callable[[bytes], None]]:
        """Keep every other process from changing it. What is given is durable when it returns."""


class FileKeyring:
    """A file in the folder of the service. The lock beside it stays behind, and says that there has been a key."""

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
            yield self._write

    def _write(self, document: bytes) -> None:
        with whole_file(self.path, 0o600) as new:
            new.write_bytes(document)
