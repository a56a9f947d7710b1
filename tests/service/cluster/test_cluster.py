"""A cluster of one shard and two fronts, on Ray and PostgreSQL: processes are killed, and no request fails."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from faults.cluster import running_cluster
from places import Place

from albatross import Client, Recommender
from albatross.cli import main
from albatross.service.storage.home import home_of
from albatross.service.tools.private_postgres import PrivatePostgres


def post(port: int, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """One request on its own connection; if a front dies under it, or none listens yet, another one is asked."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()


def check_page(port: int) -> None:
    """A front has the page, and answers what the page asks."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("GET", "/")
        response = connection.getresponse()
        assert (response.status, response.read()[:15].lower()) == (200, b"<!doctype html>")
    for verb in ("users/list", "items/list", "events/list"):
        code, answer = post(port, f"/v1/{verb}", {})
        assert code == 200, answer


def status(address: str, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert main(["cluster", "status", address, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.xdist_group("ray")
def test_killed_processes_are_replaced_and_no_request_fails(
    databases: Place, postgres: PrivatePostgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = databases.address("shop")
    assert main(["cluster", "start", address]) == 2  # there is none yet
    assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean"]) == 0
    assert main(["cluster", "init", address, "--scale", "1..5"]) == 2
    assert [shard["state"] for shard in status(address, capsys)["shards"]] == ["stopped"]
    answers: list[tuple[int, Any]] = []
    with running_cluster(address, tmp_path / "snapshots") as cluster:

        def rate(count: int) -> None:
            for _ in range(count):
                name = f"e{len(answers)}"
                answers.append(post(cluster.port, "/v1/feedback", {"event_id": name, "user": "ann", "item": "tea", "rating": 3}))

        rate(10)
        check_page(cluster.port)
        found = status(address, capsys)
        (shard,) = found["shards"]
        assert (shard["shard"], shard["epoch"], shard["state"], shard["seq"]) == (0, 1, "serving", 12)
        assert found["item_version"] == 0
        assert {front["url"] for front in found["fronts"]} == {f"http://127.0.0.1:{cluster.port}"}
        assert len({front["pid"] for front in found["fronts"]}) >= 1  # the other may still be on its way
        os.kill(shard["pid"], signal.SIGKILL)
        rate(10)
        os.kill(found["fronts"][0]["pid"], signal.SIGKILL)
        rate(10)
        postgres.stop("immediate")
        postgres.start()
        rate(10)
        assert not [answer for answer in answers if answer[0] != 200]
        assert len(answers) == 40
        assert status(address, capsys)["shards"][0]["epoch"] >= 3
        assert main(["cluster", "verify", address, "--snapshots", str(tmp_path / "snapshots")]) == 0
        assert main(["cluster", "stop", address]) == 0
        assert cluster.wait() == 0
    assert status(address, capsys)["fronts"] == []
    assert list((tmp_path / "snapshots" / "0" / "snapshots").glob("*.npz"))
    with Recommender(home_of(address, tmp_path / "snapshots" / "0")) as shop:
        assert shop.version().ratings == 40
        assert [answer["seq"] for _, answer in answers] == list(range(3, 43))


@pytest.mark.xdist_group("ray")
def test_a_rolling_restart_fails_no_request(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two shards and two fronts are replaced one after the other, under recommendations and ratings all the time."""
    address = databases.address("shop")
    assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean", "--shards", "2"]) == 0
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(address, tmp_path))
        client = stack.enter_context(contextlib.closing(Client(f"http://127.0.0.1:{cluster.port}", patience=120)))
        for user in ("ann", "bob"):  # one on each shard
            client.rate(client.recommend(user, candidates=["tea", "coffee"]), 4)
        before = status(address, capsys)
        ended, count = threading.Event(), 0

        def restart() -> None:
            assert main(["cluster", "restart", address]) == 0
            ended.set()

        restarting = threading.Thread(target=restart)
        restarting.start()
        while not ended.is_set():
            client.rate(client.recommend(("ann", "bob")[count % 2], candidates=["tea", "coffee"]), 4)
            count += 1
        restarting.join()
        after = status(address, capsys)
        assert count > 0
        assert client.version().ratings == count + 2
        assert [shard["epoch"] for shard in after["shards"]] == [2, 2]
        for kind in ("shards", "fronts"):
            assert {one["pid"] for one in before[kind]}.isdisjoint({one["pid"] for one in after[kind]})
        assert after["item_version"] > 0
        check_page(cluster.port)
        assert main(["cluster", "stop", address]) == 0
        assert cluster.wait() == 0, cluster.lines
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path)]) == 0
    assert main(["cluster", "restart", address]) == 2


@pytest.mark.xdist_group("ray")
def test_what_cannot_be_served_is_said(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged log, and a port that is taken: the cluster ends with a sentence, and leaves nothing running."""
    address = databases.address("shop")
    assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean"]) == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert _start(address, tmp_path, taken.getsockname()[1]) == (2, "a front cannot serve")
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        outside.execute("UPDATE albatross.log SET body = set_byte(body, 20, 1)")
    assert _start(address, tmp_path, 0) == (2, "is damaged at event 1")
    assert status(address, capsys)["fronts"] == []


def _start(address: str, tmp_path: Path, port: int) -> tuple[int, str]:
    """The exit code, and which of the expected sentences was said."""
    program = "import sys, albatross.cli; sys.exit(albatross.cli.main())"
    words = ["cluster", "start", address, "--fronts", "1", "--port", str(port), "--snapshots", str(tmp_path / "snapshots")]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    said = next((words for words in ("is damaged at event 1", "a front cannot serve") if words in done.stderr), done.stderr)
    return done.returncode, said
