"""Start, stop, overload and failing disks: what a server process does when it is not a good day."""

import asyncio
import json
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from in_process import Service, run
from live import Live

from albatross import Recommender
from albatross.cli import main
from albatross.service.api.answers import Readiness
from albatross.service.api.errors import NotReady
from albatross.service.http.wire.crowd import MOST_BODY_BYTES
from benchmarks.serving.loopback import Connection

pytestmark = pytest.mark.xdist_group("service-lifecycle")

FAILING_FSYNC = """
from albatross.service.storage.sqlite.log import SQLiteLog
from albatross.service.api.errors import StorageFailed
append, commits = SQLiteLog.append, []
def fail(self, rows):
    commits.append(rows)
    if len(commits) > 6:
        raise StorageFailed("the disk did not keep a commit: injected")
    append(self, rows)
SQLiteLog.append = fail
"""
FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
"""


NOTHING_EXPLAINS = """
from albatross.service.engine import aside
from albatross.service.http import process
warm, process.DRAIN_SECONDS = aside.warm, 0.1
aside.warm = lambda *given: warm(*given)._replace(explains=False)
aside.load_explanations = lambda genesis, warmed, ending: ending.__self__.wait()  # until the service closes
"""


def event(number: int) -> dict[str, Any]:
    return {"event_id": f"e-{number}", "user": f"u{number % 7}", "item": f"i{number % 11}", "rating": 1 + number % 5}


def check_kept(folder: Path, acknowledged: dict[int, int], at_most: int) -> None:
    """Everything acknowledged is there, where it was said to be, and hardly anything else."""
    with Recommender(folder) as shop:
        assert len(acknowledged) <= shop.version().ratings <= at_most
        for number, seq in acknowledged.items():
            fields = event(number)
            again = shop.rate_item(fields["user"], fields["item"], fields["rating"], event_id=fields["event_id"])
            assert (again.duplicate, again.seq) == (True, seq)


def test_sigterm_answers_what_it_took_and_leaves_with_zero(tmp_path: Path) -> None:
    live = Live(tmp_path / "shop")
    live.wait_for("ready")
    acknowledged: dict[int, int] = {}
    sent: set[int] = set()
    enough = threading.Event()

    async def write(client: int) -> None:
        connection = await Connection.open(live.port)
        try:
            for number in range(client, 100_000, 8):
                sent.add(number)
                status, body = await connection.post("/v1/feedback", json.dumps(event(number)).encode())
                if status != 200:
                    assert status == 503, body
                    return
                acknowledged[number] = json.loads(body)["seq"]
                if len(acknowledged) > 100:
                    enough.set()
        except ConnectionError:
            return
        finally:
            connection.close()

    async def write_all() -> None:
        await asyncio.gather(*(write(client) for client in range(8)))

    writing = threading.Thread(target=asyncio.run, args=(write_all(),))
    writing.start()
    enough.wait()
    assert live.kill(signal.SIGTERM) == 0
    writing.join()
    assert [line["event"] for line in live.log][-2:] == ["draining", "stopped"]
    check_kept(tmp_path / "shop", acknowledged, at_most=len(acknowledged))


def test_an_open_stream_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with Live(tmp_path / "shop") as live:

        async def listen() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
            writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"event: series")
            live.process.send_signal(signal.SIGTERM)
            rest = await reader.read()
            writer.close()
            return rest

        asyncio.run(listen())
        assert live.wait() == 0


def test_after_a_failed_commit_nothing_is_acknowledged_and_the_process_ends(tmp_path: Path) -> None:
    live = Live(tmp_path / "shop", before=FAILING_FSYNC)
    live.wait_for("ready")
    acknowledged: dict[int, int] = {}
    for number in range(100):
        reply = live.post("/v1/feedback", event(number))
        if reply.status != 200:
            break
        acknowledged[number] = reply.json["seq"]
    assert (reply.status, reply.json["code"]) == (503, "storage-failed")
    assert live.wait() != 0
    assert "injected" in "".join(live.lines)
    check_kept(tmp_path / "shop", acknowledged, at_most=len(acknowledged))


def test_on_a_full_disk_nothing_is_acknowledged_and_reading_goes_on(tmp_path: Path) -> None:
    with Live(tmp_path / "shop", before=FULL_DISK) as live:
        acknowledged: dict[int, int] = {}
        for number in range(10_000):
            reply = live.post("/v1/feedback", event(number))
            if reply.status != 200:
                break
            acknowledged[number] = reply.json["seq"]
        assert (reply.status, reply.json["code"]) == (507, "disk-full")
        assert live.post("/v1/feedback", event(number)).status == 507
        assert live.get("/v1/version").json["ratings"] == len(acknowledged)
        assert live.post("/v1/users/get", {"user": "u0"}).status == 200
        assert live.get("/readyz").status == 200
    assert acknowledged
    check_kept(tmp_path / "shop", acknowledged, at_most=len(acknowledged))


def test_overload_is_refused_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with Live(tmp_path / "shop", "--queue", "4") as live:
        acknowledged: dict[int, int] = {}
        refused: list[bytes] = []

        async def write(client: int) -> None:
            connection = await Connection.open(live.port)
            for number in range(client, 1280, 64):
                status, body = await connection.post("/v1/feedback", json.dumps(event(number)).encode())
                if status == 200:
                    acknowledged[number] = json.loads(body)["seq"]
                else:
                    assert status == 429
                    refused.append(body)
            connection.close()

        async def write_all() -> None:
            await asyncio.gather(*(write(client) for client in range(64)))

        asyncio.run(write_all())
        assert acknowledged
        assert refused
        assert all(json.loads(body)["code"] == "overloaded" for body in refused)
        assert live.get("/v1/version").json["ratings"] == len(acknowledged)
        assert live.kill(signal.SIGTERM) == 0
    check_kept(tmp_path / "shop", acknowledged, at_most=len(acknowledged))


def test_who_waits_for_the_compiler_holds_up_nobody_and_is_answered_when_the_service_closes(tmp_path: Path) -> None:
    with Live(tmp_path / "shop", "--queue", "4", before=NOTHING_EXPLAINS) as live:
        live.wait_for("ready")

        async def explain() -> tuple[int, bytes]:
            connection = await Connection.open(live.port)
            try:
                return await connection.post("/v1/recommend", b'{"user": "ann", "explain": true}')
            finally:
                connection.close()

        async def play() -> None:
            assert live.post("/v1/feedback", event(0)).status == 200
            asked = [asyncio.ensure_future(explain()) for _ in range(5)]
            refused, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert {answer.result()[0] for answer in refused} == {429}
            for number in range(1, 9):
                assert live.post("/v1/feedback", event(number)).status == 200
                assert live.post("/v1/recommend", {"user": "bob"}).status == 200
            live.process.send_signal(signal.SIGTERM)
            answers = await asyncio.gather(*asked)
            assert sorted(status for status, _ in answers) == [429] * 3 + [503] * 2
            assert all(json.loads(body)["code"] in ("overloaded", "not-ready") for _, body in answers)

        asyncio.run(play())
        assert live.wait() == 0


def test_large_bodies_cannot_fill_the_memory(tmp_path: Path) -> None:
    """More bodies than may wait are announced and sent but for the last byte: the rest is refused before it is read."""
    size = 2**20
    most = MOST_BODY_BYTES // size

    def resident() -> int:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{live.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    async def announce() -> tuple[list[bytes], int]:
        head = f"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode()
        pairs = [await asyncio.open_connection("127.0.0.1", live.port) for _ in range(2 * most)]
        for _, writer in pairs:
            writer.write(head + b" " * (size - 1))
        refusals = [asyncio.ensure_future(reader.readuntil(b"\r\n\r\n")) for reader, _ in pairs]
        async with asyncio.timeout(120):  # not a measure of anything: a server that refuses nothing would keep us for ever
            while sum(refusal.done() for refusal in refusals) < most:
                await asyncio.wait([refusal for refusal in refusals if not refusal.done()], return_when=asyncio.FIRST_COMPLETED)
        heads = [refusal.result() for refusal in refusals if refusal.done()]
        used = resident()
        for refusal in refusals:
            refusal.cancel()
        await asyncio.gather(*refusals, return_exceptions=True)
        for _, writer in pairs:
            writer.close()
        return heads, used

    with Live(tmp_path / "shop") as live:
        before = resident()
        heads, used = asyncio.run(announce())
        assert all(head.startswith(b"HTTP/1.1 429 ") and b"retry-after: 1\r\n" in head for head in heads)
        assert used - before < 3 * MOST_BODY_BYTES
        assert live.post("/v1/feedback", event(1)).status == 200


def test_a_second_server_on_the_same_folder_is_refused_with_a_sentence(shop: Live, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shop.wait_for("listening")["folder"]
    assert main(["serve", folder, "--port", "0"]) == 2
    assert "in use by process" in capsys.readouterr().err


def test_options_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "shop")
    for options in (
        [],
        ["--scale", "5..1"],
        ["--scale", "1-5"],
        ["--scale", "1..nan"],
        ["--scale", "1..5", "--policy", "albatros"],
        ["--scale", "1..5", "--policy", "alb", "--set", "rank=0"],
        ["--scale", "1..5", "--policy", "oracle"],
        ["--scale", "1..5", "--port", "70000"],
        ["--scale", "1..5", "--durability", "never"],
        ["--scale", "1..5", "--queue", "0"],
    ):
        assert main(["serve", folder, *options]) == 2, options
        assert capsys.readouterr().err.strip()
        assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("phase", "healthy"), [("opening", 200), ("compiling", 200), ("replaying", 200), ("draining", 200), ("failed", 503)]
)
def test_an_engine_that_is_not_ready_says_so(tmp_path: Path, phase: Any, healthy: int) -> None:
    async def play(service: Service) -> None:
        service.engine.readiness = Readiness(False, phase, 30, 100, 0, None)
        service.engine.refuse = lambda _: NotReady("the log is being replayed")
        talk = await service.talk()
        for path, expected in (("/v1/version", 503), ("/v1/stream", 503), ("/healthz", healthy)):
            talk.get(path)
            assert await talk.status() == expected, path
        talk.post("/v1/recommend", b'{"user": "ann"}')
        assert await talk.status() == 503
        talk.get("/readyz")
        status, _, body = await talk.hear()
        problem = json.loads(body)
        assert (status, problem["code"]) == (503, "not-ready")
        assert phase in problem["detail"]
        assert "30 of 100" in problem["detail"]
        talk.get("/metrics")
        status, _, body = await talk.hear()
        assert status == 200
        assert b"\nalbatross_ready 0.0\n" in body

    run(tmp_path, play)


SLOW_COMPILER = """
import threading
import albatross.service.engine.aside as aside, albatross.service.http.process as process
said, warm, log = threading.Event(), aside.warm, process.log
class Listening:
    def info(self, event, **fields):
        log.info(event, **fields)
        if event == "compiling":
            said.set()
    def __getattr__(self, name):
        return getattr(log, name)
process.log, process.PROGRESS_SECONDS = Listening(), 0.01
aside.warm = lambda *arguments: (said.wait(), warm(*arguments))[1]
"""
"""A compiler that is not done before the log has said that it is at work."""


def test_while_it_compiles_it_says_so_and_not_that_it_replays(tmp_path: Path) -> None:
    with Live(tmp_path / "shop", before=SLOW_COMPILER) as live:
        line = live.wait_for("compiling")
        assert not {"done", "total"} & set(line)
        events = [line["event"] for line in live.log]
        assert "replaying" not in events[: events.index("compiling")]


def test_what_is_wrong_with_a_snapshot_is_logged(tmp_path: Path) -> None:
    with Live(tmp_path / "shop") as live:
        for number in range(20):
            assert live.post("/v1/feedback", event(number)).status == 200
        assert live.post("/v1/snapshot", {}).status == 200
        live.kill()
    for path in (tmp_path / "shop" / "snapshots").glob("*.npz"):
        path.write_bytes(b"not a snapshot")
    with Live(tmp_path / "shop", scale=None) as live:
        assert "snapshot" in live.wait_for("complaint")["detail"]
        assert live.get("/v1/version").json["ratings"] == 20


WITHOUT_UVLOOP = "import sys; sys.modules['uvloop'] = None"


def test_it_serves_without_uvloop(tmp_path: Path) -> None:
    with Live(tmp_path / "shop", before=WITHOUT_UVLOOP) as live:
        assert live.post("/v1/feedback", event(1)).status == 200
        assert live.post("/v1/recommend", {"user": "u1"}).status == 200
        assert live.kill(signal.SIGTERM) == 0


FEW_DESCRIPTORS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
"""


def test_it_takes_all_descriptors_it_may_have_and_leaves_some(tmp_path: Path) -> None:
    """With 200 descriptors, 300 connections that never ask are opened, and one that asks is answered."""

    async def crowd_in(port: int) -> int:
        halves = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        for _, writer in halves:
            writer.write(b"GET /healthz HTTP/1.1\r\n")
        connection = await Connection.open(port)
        status, _ = await connection.post("/v1/feedback", json.dumps(event(1)).encode())
        connection.close()
        for _, writer in halves:
            writer.close()
        return status

    with Live(tmp_path / "shop", before=FEW_DESCRIPTORS.format(hard=200)) as live:
        assert asyncio.run(crowd_in(live.port)) == 200
        assert "Max open files            200 " in Path(f"/proc/{live.process.pid}/limits").read_text()
        assert not [line for line in live.log if line["event"] in ("unforeseen error", "a library complains")]
