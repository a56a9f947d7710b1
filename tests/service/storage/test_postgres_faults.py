"""PostgreSQL restarts, is replaced by its replica, or is lost in a commit; owners are paused. Nothing acknowledged is lost."""

import contextlib
import http.client
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from live import Live
from places import Place

from albatross import Recommender
from albatross.cli import main
from albatross.policies.item_mean import ItemMean
from albatross.service.api.answers import Accepted
from albatross.service.api.errors import StorageFailed
from albatross.service.api.requests import AskVersion, Feedback, FeedbackBatch, UpsertItem
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.home import home_of
from albatross.service.storage.postgres import lease, log
from albatross.service.tools.private_postgres import PrivatePostgres

OPTIONS = Options(scale=(1, 5), policy=ItemMean(), snapshot_every=0)
SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Stands between a log and its database, and cuts the next thing that is said: on the way there, or only the answer."""

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="albatross-proxy-"))  # a socket's path must be short
        self.cut: Literal["question", "answer"] | None = None
        self._server = server
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.folder / SOCKET))
        self._listening.listen()
        self._sockets = [self._listening]
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def _begin(self, target: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=target, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(str(self._server / SOCKET))
                first = client.recv(65536)
                server.sendall(first)
                watched = b"albatross log" in first
                for source, sink, way in ((client, server, "question"), (server, client, "answer")):
                    self._begin(self._pump, source, sink, way if watched else "")

    def _pump(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.cut == way:
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for end in self._sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._sockets:
            end.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that looks often whether it still has its database."""
    monkeypatch.setattr(lease, "SECONDS", 0.3)
    monkeypatch.setattr(log, "BEAT", 0.02)


@pytest.fixture
def proxy(postgres: PrivatePostgres) -> Iterator[Proxy]:
    between = Proxy(Path(postgres.address("x").partition("host=")[2]))
    yield between
    between.close()


@pytest.mark.parametrize("cut", ["question", "answer"])
def test_a_connection_lost_in_a_commit_is_an_unknown_outcome(cut: Literal["question", "answer"], databases: Place, proxy: Proxy) -> None:
    """It is not acknowledged, the engine ends, and the next one finds out."""
    address = databases.address("shop")
    home = home_of(address.partition("host=")[0] + f"host={proxy.folder}", databases.folder / "shop")
    failures: list[BaseException] = []
    with Engine(home, OPTIONS, on_failure=failures.append) as engine:
        engine.wait_ready()
        engine.ask(Feedback("kept", 4, user="ann", item="tea"))
        engine.ask(UpsertItem("water"))  # from here on the server knows the statement: one question, one answer
        proxy.cut = cut
        with pytest.raises(StorageFailed, match="or the outcome is unknown"):
            engine.ask(UpsertItem("cake"))
        with pytest.raises(StorageFailed):
            engine.ask(AskVersion())
    assert len(failures) == 1
    with Engine(databases / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()).ratings == 1
        assert engine.ask(UpsertItem("cake")).created == (cut == "question")
    assert main(["verify", address]) == 0


def test_a_server_that_ends_in_a_commit_keeps_nothing_of_it(databases: Place) -> None:
    with Engine(databases / "shop", OPTIONS) as engine:
        engine.wait_ready()
        engine.ask(Feedback("kept", 4, user="ann", item="tea"))
        with contextlib.closing(psycopg.connect(databases.address("shop"), autocommit=True)) as outside:
            outside.execute(
                "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
            outside.execute(
                "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON albatross.log DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION die()"
            )
            with pytest.raises(StorageFailed):
                engine.ask(Feedback("lost", 4, user="ann", item="tea"))
            outside.execute("DROP TRIGGER die ON albatross.log")
    with Engine(databases / "shop") as engine:
        engine.wait_ready()
        assert not engine.ask(Feedback("lost", 4, user="ann", item="tea")).duplicate


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.usefixtures("quick")
def test_a_restart_of_postgresql_ends_the_engine_and_loses_nothing(mode: str, databases: Place, postgres: PrivatePostgres) -> None:
    acknowledged: list[str] = []
    begun = threading.Event()
    with Engine(databases / "shop", OPTIONS) as engine:
        engine.wait_ready()

        def write() -> None:
            with contextlib.suppress(StorageFailed):
                while True:
                    name = f"e{len(acknowledged)}"
                    engine.ask(Feedback(name, 4, user="ann", item="tea"))
                    acknowledged.append(name)
                    if len(acknowledged) == 20:
                        begun.set()

        writer = threading.Thread(target=write)
        writer.start()
        begun.wait()
        postgres.stop(mode)
        postgres.start()
        writer.join()
        engine._owner.join()  # it ends by itself
    with Engine(databases / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()).ratings in (len(acknowledged), len(acknowledged) + 1)
        answers = engine.ask(FeedbackBatch([Feedback(name, 4, user="ann", item="tea") for name in acknowledged])).answers
        assert all(isinstance(answer, Accepted) and answer.duplicate for answer in answers)


@pytest.mark.usefixtures("quick")
def test_an_idle_engine_notices_that_postgresql_is_gone(databases: Place, postgres: PrivatePostgres) -> None:
    engine = Engine(databases / "shop", OPTIONS)
    engine.wait_ready()
    postgres.stop()
    try:
        engine._owner.join()
        assert engine.readiness.phase == "failed"
        assert "was lost" in str(engine.readiness.detail)
    finally:
        postgres.start()


def test_a_process_that_was_paused_until_its_lease_had_moved_writes_nothing(databases: Place, tmp_path: Path) -> None:
    address = databases.address("shop")
    short = "from albatross.service.storage.postgres import lease; lease.SECONDS = 0.5"
    rating = {"user": "ann", "item": "tea", "rating": 4}
    with Live(address, "--policy", "item-mean", "--snapshots", str(tmp_path / "paused"), before=short) as paused:
        assert paused.post("/v1/feedback", {**rating, "event_id": "kept"}).status == 200
        paused.process.send_signal(signal.SIGSTOP)
        with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
            outside.execute("SELECT pg_sleep(EXTRACT(epoch FROM until - clock_timestamp())) FROM albatross.shards")
        with Engine(home_of(address, tmp_path / "present")) as present:
            present.wait_ready()
            assert present.ask(Feedback("second", 4, user="ann", item="tea")).seq == 4
            paused.process.send_signal(signal.SIGCONT)
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert paused.post("/v1/feedback", {**rating, "event_id": "late"}).status == 503
            assert paused.wait() != 0
            assert not present.ask(Feedback("late", 4, user="ann", item="tea")).duplicate
            assert present.ask(AskVersion()).ratings == 3
    assert "another process has replaced this one" in "".join(paused.lines)
    assert main(["verify", address]) == 0


def test_a_promoted_replica_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    with PrivatePostgres() as primary:
        first = primary.create_database("shop")
        with primary.replica() as replica:
            with contextlib.closing(psycopg.connect(first, autocommit=True)) as outside:
                outside.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                outside.execute("SELECT pg_reload_conf()")
            second = replica.address("shop")
            either = f"{first},{second.partition('host=')[2]}"
            home = home_of(either, tmp_path)
            with Recommender(home, scale=(1, 5), policy=ItemMean()) as shop:
                for number in range(20):
                    shop.rate_item("ann", f"i{number % 5}", 3, event_id=f"e{number}")
                expected = shop.version()
                primary.stop("immediate")
                with pytest.raises(StorageFailed):
                    shop.rate_item("ann", "i0", 3, event_id="lost")
            replica.promote()
            with Recommender(home_of(either, tmp_path)) as shop:
                assert shop.version() == expected
                assert all(shop.rate_item("ann", f"i{k % 5}", 3, event_id=f"e{k}").duplicate for k in range(20))
                assert not shop.rate_item("ann", "i0", 3, event_id="lost").duplicate
            primary.start()
