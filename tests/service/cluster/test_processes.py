"""The supervisor of a cluster is alone, and hears each message once."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from types import SimpleNamespace

import psycopg
import pytest
import ray.exceptions
import structlog
from places import Place

from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.service.api.errors import StorageFailed
from albatross.service.cluster import running
from albatross.service.cluster.processes import RESTART, SUPERVISOR, Presence
from albatross.service.cluster.supervising import Supervisor, _fronts
from albatross.service.http.logs import configure_log
from albatross.service.storage.postgres.session import NotNow
from albatross.service.tools.private_postgres import PrivatePostgres

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
    with supervising(address) as heard:
        pass  # the table is there
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        outside.execute(
            "INSERT INTO albatross.processes VALUES (%s, 'there', 1, 'http://there', clock_timestamp() + interval '1 second')",
            (SUPERVISOR,),
        )
        running._alone(address, "http://127.0.0.1:1", heard.append, threading.Event()).end()
        assert outside.execute("SELECT count(*) FROM albatross.processes").fetchone() == (0,)


def test_a_cluster_is_restarted_as_often_as_it_is_told(address: str) -> None:
    """Also at once after it was: the message is then the same as before."""
    heard: list[str] = []

    def hear(word: str) -> None:
        heard.append(word)
        presence.obeyed(word)

    presence = Presence(address, SUPERVISOR, "http://127.0.0.1:1", hear)
    for _ in range(3):
        running.restart(address, threading.Event().wait)
    presence.end()
    assert heard == [RESTART] * 3


def test_a_cluster_that_ends_was_not_restarted(address: str) -> None:
    told = threading.Event()
    presence = Presence(address, SUPERVISOR, "http://127.0.0.1:1", lambda _: told.set())
    with ThreadPoolExecutor(1) as other:
        restarting = other.submit(running.restart, address, threading.Event().wait)
        assert told.wait(60)
        with pytest.raises(InvalidInput, match="by another command; accepted: one at a time"):
            running.restart(address, threading.Event().wait)
        presence.end()
        with pytest.raises(InvalidInput, match="has ended before every process was replaced"):
            restarting.result(60)
    with pytest.raises(InvalidInput, match="no cluster runs at"):
        running.restart(address, threading.Event().wait)


class FailedCall(SimpleNamespace):
    """Ray, as far as a call that has failed."""

    exceptions = ray.exceptions

    def get(self, _: object) -> None:
        raise ray.exceptions.RayTaskError("run", "a traceback", self.cause)  # type: ignore[no-untyped-call]


def supervisor_of(address: str, cause: Exception | None = None) -> Supervisor:
    supervisor = Supervisor.__new__(Supervisor)  # without processes
    supervisor._ray, supervisor._address = FailedCall(cause=cause), address
    return supervisor


def test_a_supervisor_waits_for_a_database_that_is_away(address: str, postgres: PrivatePostgres) -> None:
    stopping = threading.Event()
    postgres.stop("immediate")
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(supervisor_of(address)._asked, _fronts, stopping)
        supervisor_of(address)._end_silent()
        postgres.start()
        assert asking.result(60) == []
    stopping.set()
    assert supervisor_of(address)._asked(_fronts, stopping) is None


def test_a_database_without_a_cluster_has_nothing_to_stop(databases: Place, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "stop", databases.address("another")]) == 2  # a wrong address is no success
    assert "has no log of albatross" in capsys.readouterr().err
    assert main(["cluster", "stop", address]) == 0
    assert "0 processes have stopped" in capsys.readouterr().out


@pytest.mark.parametrize("cause", [NotNow("away"), StorageFailed("lost"), OSError(0, "the keys are out of reach")])
def test_a_front_that_met_no_database_is_started_again(cause: Exception, request: pytest.FixtureRequest) -> None:
    configure_log("text", StringIO())
    request.addfinalizer(structlog.reset_defaults)
    supervisor_of("", cause)._check_front(None)
    with pytest.raises(InvalidInput, match="a front cannot serve: it is damaged"):
        supervisor_of("", InvalidInput("it is damaged"))._check_front(None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--fronts", "0"], "--fronts is 0; accepted: a whole number, at least 1"),
        (["--queue", "0"], "--queue is 0; accepted: a whole number, at least 1"),
        (["--port", "65536"], "--port is 65536; accepted: a whole number from 0 to 65535"),
        (["--port", "0", "--address", "nowhere://x"], "no Ray cluster answers at nowhere://x"),
        (["--port", "0", "--ray", "nowhere://x"], "no Ray cluster answers at nowhere://x"),
    ],
)
def test_what_a_cluster_cannot_be_started_with_is_said(address: str, words: list[str], sentence: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, "cluster", "start", address, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, running.status(address)["fronts"]) == (2, [])
    assert sentence in done.stderr
