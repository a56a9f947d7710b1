"""The official archives: where they are stored, downloads, and checks.

A file that the user put into a folder is used even if its checksum differs from the official one: copies are often repacked.
A file that cannot be read without error is refused, whatever its source.
"""

import hashlib
import io
import logging
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.progress import Progress

Tell = Callable[[str], None]
"""Takes a note for the user: a full sentence, never an error."""

quietly: Tell = logging.getLogger(__name__).info

SECONDS_WITHOUT_ANSWER = 30


@dataclass(frozen=True)
class Archive:
    """One official zip file."""

    address: str
    names: tuple[str, ...]
    """The file names under which it is accepted, the official one first."""
    checksum: str | None
    """Of the official file, as `md5:…` or `sha256:…`; None if none was published."""
    terms: str
    """The terms that a download agrees to."""

    @property
    def name(self) -> str:
        return self.names[0]


def folders() -> list[Path]:
    """Folders that are searched for archives: the one that `ALBATROSS_DATA` names, then the user's cache."""
    named = os.environ.get("ALBATROSS_DATA")
    if named and not Path(named).expanduser().is_dir():
        raise InvalidInput(f"ALBATROSS_DATA is {named!r}; accepted: an existing folder")
    return [Path(named).expanduser(), cache_folder()] if named else [cache_folder()]


def cache_folder() -> Path:
    """The folder for downloads."""
    return Path(os.environ.get("ALBATROSS_CACHE") or platformdirs.user_cache_path("albatross")).expanduser() / "data"


def find(archive: Archive) -> Path | None:
    """The file, if it is on this machine."""
    candidates = (folder / name for folder in folders() for name in archive.names)
    return next((path for path in candidates if path.is_file()), None)


def fetch(archive: Archive, accept: bool | None = None, tell: Tell = quietly) -> Path:
    """The file, downloaded if it is missing.

    accept: whether the user agrees to the terms of use. None: ask on a terminal, unless the user has agreed before.
    """
    path = find(archive)
    if path is None:
        _agree(archive, accept, tell)
        path = _downloaded(archive)
        tell(f"Downloaded {archive.address} to {path}.")
    remark = difference(archive, path)
    if remark:
        tell(remark)
    return path


def difference(archive: Archive, path: Path) -> str:
    """A note if a file differs from the official one; otherwise empty."""
    if archive.checksum is None:
        return ""
    method, _, official = archive.checksum.partition(":")
    with path.open("rb") as file:
        same = hashlib.file_digest(file, method).hexdigest() == official
    return "" if same else f"{path} is not the official {archive.name} bit for bit; it is used as it is."


def verify(path: Path) -> None:
    """Refuse an archive if any part of it cannot be read."""
    with _refusing_damage(path), zipfile.ZipFile(path) as archive:
        broken = archive.testzip()
        if broken is not None:
            raise zipfile.BadZipFile(f"bad checksum of {broken}")


def member(path: Path, name: str) -> bytes:
    """The content of one file in an archive, in whatever folder."""
    with _refusing_damage(path), zipfile.ZipFile(path) as archive:
        return archive.read(_entry(path, archive, name))


def _entry(path: Path, archive: zipfile.ZipFile, name: str) -> str:
    for entry in archive.namelist():
        if entry.rpartition("/")[2] == name:
            return entry
    raise InvalidInput(f"{path} does not contain {name}; accepted: the official archive")


def _extract(path: Path, name: str, header: str, target: Path) -> None:
    """Copy one file of an archive, which may be larger than memory. Refuse it if it does not begin with the header.

    Latin-1 decodes every byte. DuckDB's own Latin-1 reader refuses 0x80 to 0x9f, which Book-Crossing contains.
    """
    with _refusing_damage(path), zipfile.ZipFile(path) as archive, archive.open(_entry(path, archive, name)) as member:
        text = io.TextIOWrapper(member, encoding="latin-1", newline="")
        begin = text.read(len(header))
        if begin != header:
            raise InvalidInput(f"{path}: {name} does not begin with {header}; accepted: the official archive")
        with target.open("w", encoding="utf-8", newline="") as file:
            file.write(begin)
            shutil.copyfileobj(text, file)


def columns(path: Path, name: str, types: dict[str, str], separator: str, header: str = "", escape: str = "") -> dict[str, NDArray[Any]]:
    """The columns of a text file in an archive. With a header, values are in quotes, and `escape` precedes a quote inside."""
    import duckdb  # slow to import, and needed only to read a file

    query = (
        "FROM read_csv($file, columns = $types, delim = $separator, header = $header, quote = $quote, escape = $escape, "
        "auto_detect = false, allow_quoted_nulls = false)"
    )
    options = {"types": types, "separator": separator, "header": bool(header), "quote": '"' if header else "", "escape": escape}
    with tempfile.TemporaryDirectory(prefix="albatross-") as folder, duckdb.connect() as connection:
        file = Path(folder) / name
        _extract(path, name, header, file)
        try:
            found = connection.execute(query, {"file": str(file), **options}).fetchnumpy()
        except duckdb.Error as error:
            reason = "; ".join(str(error).splitlines()[:3])
            raise InvalidInput(f"{path}: {name} is damaged: {reason}") from error
    gaps = [column for column, values in found.items() if np.ma.is_masked(values)]
    if gaps:
        row = int(np.flatnonzero(np.ma.getmaskarray(found[gaps[0]]))[0]) + 1 + bool(header)
        raise InvalidInput(f"{path}: {name} is damaged: no {gaps[0]} in line {row}")
    return {column: np.asarray(values) for column, values in found.items()}


@contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    """Turn any error of zipfile into one that names the file."""
    try:
        yield
    except InvalidInput:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        # A flipped bit in a header may look like encryption (RuntimeError) or an unknown method (NotImplementedError, a subclass of it).
        raise InvalidInput(f"{path} is damaged or cannot be read: {error}") from error


def _agree(archive: Archive, accept: bool | None, tell: Tell) -> None:
    """Make sure that the user agrees to the terms of use, now or earlier."""
    note = cache_folder() / f"agreed-{hashlib.blake2b(archive.terms.encode(), digest_size=6).hexdigest()}.txt"
    if accept is not False and note.is_file():
        return
    if accept is None and sys.stdin is not None and sys.stdin.isatty():
        print(f"{archive.name} comes with terms of use: {archive.terms}\nDo you agree? [y/N] ", end="", file=sys.stderr, flush=True)
        accept = sys.stdin.readline().strip().lower() in ("y", "yes")
    elif accept:
        tell(f"{archive.name} comes with terms of use: {archive.terms}")
    if not accept:
        raise InvalidInput(
            f"{archive.name} is not here, and to download it is to agree to its terms of use: {archive.terms} "
            f"If you do, say so (accept=True). Otherwise {_by_hand(archive)}"
        )
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{archive.terms}\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{note.parent} cannot be written to ({error}); name another folder in ALBATROSS_CACHE") from error


def _downloaded(archive: Archive) -> Path:
    """Download the file from its official address."""
    import pooch  # type: ignore[import-untyped] # heavy, and needed only by those who do not have the data
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    pooch.get_logger().setLevel(logging.WARNING)
    looks = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    try:
        with Progress(*looks, console=Console(stderr=True)) as progress:
            downloader = pooch.HTTPDownloader(progressbar=_Bar(progress, archive.name), timeout=SECONDS_WITHOUT_ANSWER)
            path = Path(pooch.retrieve(archive.address, archive.checksum, archive.name, cache_folder(), downloader=downloader))
        _keep_if_whole(path)
    except (OSError, ValueError) as error:  # no network, no such page, disk full; another checksum; an HTML page instead of the file
        reason = f"{archive.name} could not be downloaded from {archive.address}: {error}"
        raise InvalidInput(f"{reason}. You can {_by_hand(archive)}") from error
    return path


def _keep_if_whole(path: Path) -> None:
    try:
        verify(path)
    except InvalidInput:
        path.unlink()
        raise


def _by_hand(archive: Archive) -> str:
    return f"get {archive.address} by other means and put it into {folders()[0]}, or into a folder that ALBATROSS_DATA names."


class _Bar:
    """A progress bar for Pooch, drawn by Rich."""

    def __init__(self, progress: "Progress", name: str) -> None:
        self.progress = progress
        self.task = progress.add_task(name, total=None)
        self.total = 0

    def update(self, n_bytes: int) -> None:
        self.progress.update(self.task, total=self.total or None, advance=n_bytes)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        self.progress.stop()
