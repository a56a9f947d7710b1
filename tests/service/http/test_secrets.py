"""Nothing that a client sends is ever logged: no key, no id, no body, however things go wrong."""

import asyncio
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
import structlog
from faults.hostile import POSTS
from live import Live

from albatross.service.http.access.keys import SCOPES, Keys
from albatross.service.http.logs import configure_log, everything_logged, log

pytestmark = pytest.mark.xdist_group("service-secrets")

WORDS = ("secretuser", "secretitem", "secretevent", "secretheader", "secretpath", "secretbody", "secretquery")

BROKEN_ENGINE = """
from albatross.service.engine.group import Group
run = Group.run
def fail(self, tickets, *rest):
    for ticket in tickets:
        user = getattr(ticket.request, "user", None)
        if user == "secretuser-breaks-it":
            raise KeyError(f"no room for {user}")
    return run(self, tickets, *rest)
Group.run = fail
"""
BROKEN_ROOM = """
from albatross.service.http import application
from albatross.service.http.wire import receiver
read, head = application.read_as, receiver.Receiver.on_header
def fail(body, kind):
    if b"secretuser-breaks-it" in body:
        raise RuntimeError(f"cannot read {body!r}")
    return read(body, kind)
application.read_as = fail
def stumble(self, name, value):
    if value == b"secretheader-breaks-it":
        raise RuntimeError(f"cannot read {value!r}")
    head(self, name, value)
receiver.Receiver.on_header = stumble
"""


def hostile_run(live: Live, folder: Path, key: str) -> None:
    """A bit of everything that has ever gone wrong, each time with something that must not be in the log."""
    headers = {"Authorization": f"Bearer {key}", "X-Custom": "secretheader"}
    shown = f"Host: localhost\r\nAuthorization: Bearer {key}\r\n"
    for path in (*POSTS, "/v1/secretpath", "/v1/version?secretquery"):
        for body in (
            b'{"user": "secretuser", "item": "secretitem", "event_id": "secretevent", "rating": 9}',
            b'"secretbody',
            b"\xffsecretbody",
        ):
            live.post(path, body, headers)
    live.post("/v1/feedback", {"event_id": "secretevent", "user": "secretuser", "item": "secretitem", "rating": 3}, headers)
    live.post("/v1/recommend", {"user": "secretuser", "candidates": ["secretitem"]}, headers)
    assert live.post("/v1/recommend", {"user": "secretuser-breaks-it"}, headers).status >= 500
    for odd in ({"Origin": "http://[secretheader"}, {"Host": "secretheader"}, {"Authorization": "Bearer secretheader"}):
        live.ask("OPTIONS", "/v1/version", None, {**headers, **odd})
        live.get("/v1/version", {**headers, **odd})
    for raw in (
        "secretbody\r\n\r\n",
        f"POST /v1/secretpath HTTP/1.1\r\n{shown}Content-Length: x\r\n\r\n",
        f"GET /secretpath HTTP/1.1\r\n{shown}X: {'secretheader' * 7000}\r\n\r\n",
        f"GET /healthz HTTP/1.1\r\n{shown}X: secretheader-breaks-it\r\n\r\n",
        f"GET /v1/series HTTP/1.1\r\n{shown}Upgrade: secretheader\r\nConnection: upgrade\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", live.port)) as raw_connection:
            raw_connection.sendall(raw.encode())
            raw_connection.recv(100)
    kept = (folder / "keys.json").read_bytes()
    (folder / "keys.json").unlink()
    assert live.get("/v1/version", headers).status == 503
    (folder / "keys.json").write_bytes(kept)
    assert live.get("/healthz").status == 200


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("broken", [BROKEN_ROOM, BROKEN_ENGINE], ids=["room", "engine"])
def test_the_log_of_a_hostile_run_has_no_secret(tmp_path: Path, form: str, broken: str) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    key = Keys(folder).create(SCOPES)
    with Live(folder, before=broken, form=form) as live:
        try:
            hostile_run(live, folder, key)
        except (ConnectionError, AssertionError):
            if broken is not BROKEN_ENGINE:  # an engine that cannot go on ends the process
                raise
        with socket.socket() as slow:  # a body that is still on its way when the service is told to end
            slow.settimeout(30)
            try:
                slow.connect(("127.0.0.1", live.port))
                shown = f"Host: localhost\r\nAuthorization: Bearer {key}\r\n"
                slow.sendall(f"POST /v1/feedback HTTP/1.1\r\n{shown}Content-Length: 900\r\n\r\n".encode())
                slow.sendall(b'{"user": "secretuser')
                live.process.send_signal(signal.SIGTERM)
                slow.recv(1000)
            except ConnectionError:
                pass
        live.wait()
    log = "".join(live.lines)
    assert "listening" in log
    assert ("RuntimeError" if broken is BROKEN_ROOM else "KeyError") in log
    for word in (*WORDS, key, key.split("_", 2)[2], "Bearer"):
        assert word not in log
    assert "Traceback" not in log
    assert len(log) < 20_000


@pytest.mark.parametrize("form", ["json", "text"])
def test_whoever_logs_an_error_gets_its_type_and_frames_only(form: str, request: pytest.FixtureRequest) -> None:
    """From this package, asyncio, a thread, a destructor, or an uncaught error."""
    stream = StringIO()
    configure_log(form, stream)
    request.addfinalizer(structlog.reset_defaults)

    def fail(secret: str) -> None:
        raise ValueError(f"{secret} is wrong")

    class Dying:
        def __del__(self) -> None:
            fail("secretuser")

    async def use() -> None:
        loop = asyncio.get_running_loop()
        with everything_logged(loop):
            try:
                fail("secretuser")
            except ValueError as error:
                log.exception("mine")
                log.error("mine too", exc_info=error)
                log.error("and mine", exc_info=True, stack_info=True)
                logging.getLogger("asyncio").error("a message with secretuser: %s", error, exc_info=True)
                sys.excepthook(ValueError, error, error.__traceback__)
            thread = threading.Thread(target=fail, args=("secretuser",))
            thread.start()
            thread.join()
            loop.call_soon(fail, "secretuser")
            task = loop.create_task(asyncio.to_thread(fail, "secretuser"))
            await asyncio.wait([task])
            del task
            Dying()
            await asyncio.sleep(0)

    asyncio.run(use())
    printed = stream.getvalue()
    assert "secretuser" not in printed
    assert printed.count("ValueError") >= 8
    assert "in fail" in printed
    assert sys.excepthook is sys.__excepthook__ or "logs" not in sys.excepthook.__module__


def test_an_error_that_ends_the_process_is_logged_the_same_way(tmp_path: Path) -> None:
    before = """
from albatross.service.http import process
def fail(*arguments):
    secret = "secretuser"
    raise RuntimeError(f"{secret} cannot be counted")
process.most_connections = fail
"""
    command = f"{before}\nimport sys, albatross.cli; sys.exit(albatross.cli.main())"
    arguments = ["serve", str(tmp_path / "shop"), "--scale=1..5", "--port=0", "--log=json"]
    done = subprocess.run([sys.executable, "-c", command, *arguments], capture_output=True, text=True)
    assert done.returncode not in (0, 2)
    assert "secretuser" not in done.stderr
    assert [json.loads(line)["error"] for line in done.stderr.splitlines()] == ["RuntimeError"]
