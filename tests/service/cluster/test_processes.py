"""The supervisor of a cluster is alone, and hears each message once."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import psycopg
import pytest
from places import Place

from albatross.cli import main
from albatross.service.cluster import running
from albatross.service.cluster.processes import SUPERVISOR, Presence

PROGRAM = "import sys, albatross.cli; sys.exit(albatross.cli.main())"


@pytest.fixture
def address(databases: Place) -> str:
    address = databases.address("shop")
    assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean"]) == 0
    return address


@contextlib.contextmanager
def supervising(address: str) -> Iterator[list[str]]:
    """A supervisor that only writes down what it is told."""
    heard: list[str] = []
    presence = Presence(address, SUPERVISOR, "http://127.0.0.1:1", heard.append, alone=True)
    try:
        yield heard
    finally:
        presence.end()


def test_a_second_cluster_on_the_same_database_is_refused(address: str) -> None:
    """Its end would be the end of the first."""
    with supervising(address) as heard:
        done = subprocess.run([sys.executable, "-c", PROGRAM, "cluster", "start", address], capture_output=True, text=True, check=False)
        assert (done.returncode, heard) == (2, [])
        assert f"already, by process {os.getpid()} on" in done.stderr


def test_a_supervisor_that_was_killed_is_replaced(address: str) -> None:
    with supervising(address):
        pass  # the table is there
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        outside.execute(
            "INSERT INTO albatross.processes VALUES (%s, 'there', 1, 'http://there', clock_timestamp() + interval '1 second')", (SUPERVISOR,)
        )
        running._alone(address, "http://127.0.0.1:1", str, threading.Event()).end()
        assert outside.execute("SELECT count(*) FROM albatross.processes").fetchone() == (0,)
