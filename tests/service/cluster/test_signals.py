"""A cluster that is ended by a signal leaves nothing behind: neither Ray, nor PostgreSQL, nor a shard."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import Place

from albatross.cli import main
from albatross.service.tools.private_postgres import PrivatePostgres

PROGRAM = "import sys, albatross.cli; sys.exit(albatross.cli.main())"


def descendants(mark: str) -> list[str]:
    """All processes with this in their environment, whatever their parent is now."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended
    return found


@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
@pytest.mark.parametrize(("command", "number"), [("demo", signal.SIGTERM), ("start", signal.SIGINT)])
def test_a_signal_ends_all_that_was_started(
    databases: Place, postgres: PrivatePostgres, tmp_path: Path, command: str, number: signal.Signals
) -> None:
    words = ["demo", "--seconds", "600"]
    if command == "start":
        address = databases.address("shop")
        assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean", "--shards", "2"]) == 0
        words = ["start", address, "--port", "0", "--snapshots", str(tmp_path)]
    mark = secrets.token_hex(16)
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "cluster", *words], stdout=log, stderr=log, env={**os.environ, "ALBATROSS_MARK": mark}
        )
        wanted = ["raylet/raylet"] if command == "start" else ["bin/postgres", "raylet/raylet"]
        while process.poll() is None and not all(any(word in one for one in descendants(mark)) for word in wanted):
            pass  # they are on their way
        process.send_signal(number)
        code = process.wait()
        log.seek(0)
        assert code == (0 if command == "start" else 130), log.read()
    deadline = time.monotonic() + 60
    while descendants(mark) and time.monotonic() < deadline:
        pass  # Ray's agents end once they notice that their raylet has ended
    assert descendants(mark) == []
