"""Files that are written completely or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

try:  # only this empties the cache of the disk on macOS
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined, unused-ignore]
except ImportError:
    fcntl = None  # type: ignore[assignment, unused-ignore]


@contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """A temporary file to write to. It replaces `path` once everything is on disk; after an error, `path` is unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "greeting") as partial:
    ...         _ = partial.write_text("hello")
    ...     [path.name for path in Path(folder).iterdir()]
    ['greeting']
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def synchronise(file: int) -> None:
    """Make the content of an open file durable."""
    if fcntl is not None:
        try:
            fcntl(file, F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
            os.fsync(file)  # not every file system can do more
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)  # quicker where there is one
    else:
        os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Make the list of files in a folder durable."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_file(file: IO[Any], wait: bool) -> bool:
    """Lock an open file against other processes, until it is closed or the process ends. False if another process holds it."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(file, wait)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _lock_on_windows(file: IO[Any], wait: bool) -> bool:
    import msvcrt

    file.seek(0)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except OSError:
        return False
    return True
