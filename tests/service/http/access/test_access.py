"""Who may come in: scopes and names, over the network."""

import contextlib
import http.client
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live import Live, Reply

from albatross.cli import main
from albatross.service.api.route import STREAM, Route
from albatross.service.api.routes import ROUTES
from albatross.service.http.access.keys import SCOPES, Keys
from albatross.service.http.process import ListenAddress

pytestmark = pytest.mark.xdist_group("service-http")

GUARDED = [route for route in ROUTES if route.scope is not None]
BODIES: dict[str, Any] = {
    "/v1/recommend": {"user": "ann", "candidates": ["tea"]},
    "/v1/feedback": {"event_id": "e", "user": "ann", "item": "tea", "rating": 3},
    "/v1/feedback/batch": {"event_id": "e", "user": "ann", "item": "tea", "rating": 3},
}


def ask(live: Live, route: Route, headers: dict[str, str]) -> Reply:
    """A question that is right, but for who asks."""
    if route.path == STREAM:
        return first_line(live, headers)
    body = None if route.reads is None else BODIES.get(route.path) or route.examples[0][1]
    return live.ask(route.method, route.path, body, headers)


def first_line(live: Live, headers: dict[str, str]) -> Reply:
    """The head of a stream, and no more of it."""
    connection = http.client.HTTPConnection("127.0.0.1", live.port)
    connection.request("GET", STREAM, headers=headers)
    response = connection.getresponse()
    body = b"" if response.status == 200 else response.read()
    response.close()
    connection.close()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


class Locked:
    """A server, and a key for each scope."""

    def __init__(self, live: Live, folder: Path, keys: dict[str, str]) -> None:
        self.live, self.folder, self.keys = live, folder, keys


def secret_of(key: str) -> str:
    """The part that must never be seen; it may have underscores itself."""
    return key.split("_", 2)[2]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    folder = tmp_path_factory.mktemp("security") / "shop"
    folder.mkdir()
    keys = {scope: Keys(folder).create([scope]) for scope in SCOPES}
    with Live(folder, "--allow-origin", "https://shop.example", "--allow-host", "api.example") as live:
        yield Locked(live, folder, keys)
        live.kill()
        log = "".join(live.lines)
        assert "listening" in log
        for key in keys.values():
            assert key not in log
            assert secret_of(key) not in log


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.path)
def test_each_key_opens_its_scope_and_no_other(locked: Locked, route: Route) -> None:
    for scope in SCOPES:
        reply = ask(locked.live, route, bearer(locked.keys[scope]))
        if scope == route.scope:
            assert reply.status in (200, 404), reply
        else:
            assert (reply.status, reply.json["code"]) == (403, "forbidden"), scope


def test_what_needs_no_key_is_known() -> None:
    assert {route.path for route in ROUTES if route.scope is None} == {"/", "/healthz", "/readyz", "/schema", "/v1/access"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YTpi"},
        *map(bearer, ("x", "alb__", "alb_00000000_x")),
    ],
    ids=str,
)
def test_without_a_valid_key_nothing_but_health_is_told(locked: Locked, headers: dict[str, str]) -> None:
    for route in GUARDED:
        reply = ask(locked.live, route, headers)
        assert (reply.status, reply.json["code"]) == (401, "no-valid-key"), route.path
        assert reply.headers["www-authenticate"] == "Bearer"
    for path in ("/healthz", "/readyz", "/schema"):
        assert locked.live.get(path, headers).status == 200


def test_the_right_name_with_another_secret_is_not_a_key(locked: Locked) -> None:
    good = locked.keys["recommend"]
    for wrong in (good[:-1] + ("A" if good[-1] != "A" else "B"), good + "A", good[:-1], good.upper(), good.rpartition("_")[0] + "_"):
        reply = locked.live.post("/v1/recommend", {"user": "ann", "candidates": ["tea"]}, bearer(wrong))
        assert reply.status == 401
        assert secret_of(good).encode() not in reply.body


def test_a_new_key_opens_and_a_revoked_key_ends_at_once(locked: Locked) -> None:
    keys = Keys(locked.folder)
    fresh = keys.create(["read"], note="for a moment")
    assert locked.live.get("/v1/series", bearer(fresh)).status == 200
    keys.revoke(fresh.split("_")[1])
    assert locked.live.get("/v1/series", bearer(fresh)).status == 401
    assert locked.live.get("/v1/series", bearer(locked.keys["read"])).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "api.example.evil"])
def test_a_foreign_host_is_refused(locked: Locked, host: str) -> None:
    reply = locked.live.post("/v1/recommend", {"user": "a", "candidates": ["t"]}, {**bearer(locked.keys["recommend"]), "Host": host})
    assert (reply.status, reply.json["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "api.example", "api.example:443"]
)
def test_its_own_names_are_accepted(locked: Locked, host: str) -> None:
    assert locked.live.get("/healthz", {"Host": host}).status == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://localhost.evil.example", 403),
        ("https://shop.example.evil", 403),
        ("https://shop.example", 200),
        ("http://localhost", 200),
    ],
)
def test_pages_from_elsewhere_are_refused(locked: Locked, origin: str, status: int) -> None:
    headers = {**bearer(locked.keys["recommend"]), "Host": "localhost", "Origin": origin}
    assert locked.live.post("/v1/recommend", {"user": "a", "candidates": ["t"]}, headers).status == status


def test_a_browser_lets_pages_of_allowed_origins_read_the_answers_and_no_others(locked: Locked) -> None:
    asking = {"Host": "localhost", "Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    before = locked.live.ask("OPTIONS", "/v1/recommend", None, asking)
    assert before.status == 204
    assert before.headers["access-control-allow-origin"] == "https://shop.example"
    assert "authorization" in before.headers["access-control-allow-headers"]
    for headers in (bearer(locked.keys["recommend"]), {}):
        reply = locked.live.post("/v1/recommend", {"user": "a", "candidates": ["t"]}, {**headers, "Origin": "https://shop.example"})
        assert reply.headers["access-control-allow-origin"] == "https://shop.example"
        assert reply.headers["access-control-expose-headers"] == "retry-after"
    assert "access-control-allow-origin" not in locked.live.get("/healthz", {"Origin": "https://evil.example"}).headers
    assert locked.live.ask("OPTIONS", "/v1/recommend", None, {**asking, "Origin": "https://evil.example"}).status == 403
    assert "access-control-allow-origin" not in locked.live.get("/healthz").headers


def test_the_options_method_needs_no_key_and_tells_nothing(locked: Locked) -> None:
    reply = locked.live.ask("OPTIONS", "/v1/version")
    assert (reply.status, reply.headers["allow"]) == (405, "GET")
    assert not [line for line in locked.live.log if line["event"] in ("request failed", "unforeseen error")]


def test_once_there_was_a_key_one_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with Live(folder) as live:
        assert live.get("/v1/series").status == 200
        key = Keys(folder).create(["read"])
        assert live.get("/v1/series").status == 401
        assert live.get("/v1/series", bearer(key)).status == 200
        Keys(folder).revoke(key.split("_")[1])
        assert live.get("/v1/series").status == 401
        assert live.get("/v1/series", bearer(key)).status == 401
        assert live.get("/schema").json["paths"]["/v1/series"]["get"]["security"] == [{"key": []}]
        live.kill(signal.SIGTERM)
    with Live(folder, scale=None) as live:
        assert live.get("/v1/series").status == 401


@pytest.mark.parametrize("harm", ["remove", "break", "empty", "folder"])
def test_a_file_of_keys_that_is_harmed_opens_nothing_and_ends_nothing(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    key = Keys(folder).create(["read"])
    file, kept = folder / "keys.json", (folder / "keys.json").read_bytes()
    with Live(folder) as live:
        assert live.get("/v1/series", bearer(key)).status == 200
        file.unlink()
        if harm == "break":
            file.write_text('{"keys": [{"name": "a secret word"}]}')
        elif harm == "empty":
            file.write_bytes(b"")
        elif harm == "folder":
            file.mkdir()
        for headers in ({}, bearer(key)):
            for route in GUARDED:
                reply = ask(live, route, headers)
                assert (reply.status, reply.json["code"]) == (503, "not-ready"), route.path
        for path in ("/healthz", "/readyz", "/schema"):
            assert live.get(path).status == 200
        if harm == "folder":
            file.rmdir()
        file.write_bytes(kept)
        assert live.get("/v1/series", bearer(key)).status == 200
        assert not [line for line in live.log if line["event"] in ("request failed", "unforeseen error")]
        assert "a secret word" not in "".join(live.lines)


def test_another_name_is_allowed_only_with_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "new"), "--scale", "1..5", "--port", "0", "--allow-host", "shop.example"]) == 2
    complaint = capsys.readouterr().err
    assert "--allow-host shop.example" in complaint
    assert "albatross keys create" in complaint
    assert not (tmp_path / "new").exists()


def test_beyond_this_machine_only_with_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "shop.example"):
        assert main(["serve", str(tmp_path / "new"), "--scale", "1..5", "--port", "0", "--host", host]) == 2
        assert "albatross keys create" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its private key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(private), "-out", str(certificate)]
    try:
        subprocess.run([*command, *subject], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl to make a certificate with")
    return certificate, private


FEW_DESCRIPTORS = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))"


@pytest.mark.parametrize("before", ["", "import sys; sys.modules['uvloop'] = None"], ids=["uvloop", "asyncio"])
def test_tls_is_served_and_handshakes_that_never_come_lock_nobody_out(tmp_path: Path, pair: tuple[Path, Path], before: str) -> None:
    certificate, private = pair
    options = ["--certificate", str(certificate), "--private-key", str(private)]
    trust = ssl.create_default_context(cafile=str(certificate))
    with Live(tmp_path / "shop", *options, before=f"{before}\n{FEW_DESCRIPTORS}") as live, contextlib.ExitStack() as held:
        assert live.wait_for("listening")["url"].startswith("https://")
        silent = [held.enter_context(socket.create_connection(("127.0.0.1", live.port))) for _ in range(300)]
        silent[-1].sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        for number in range(10):
            connection = http.client.HTTPSConnection("localhost", live.port, context=trust)
            for body in (f'{{"event_id": "{number}", "user": "u", "item": "i", "rating": 3}}', " " * 2_000_000):
                connection.request("POST", "/v1/feedback", body)
                response = connection.getresponse()
                assert (response.status, bool(response.read())) == (200 if body.strip() else 413, True)
            connection.close()
        assert live.kill(signal.SIGTERM) == 0
        assert not [line for line in live.log if line["event"] in ("unforeseen error", "a library complains")]


def test_tls_needs_two_files_that_belong_together(tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    certificate, private = pair
    serve = ["serve", str(tmp_path / "new"), "--scale", "1..5", "--port", "0"]
    assert main([*serve, "--certificate", str(certificate)]) == 2
    assert "--private-key" in capsys.readouterr().err
    assert main([*serve, "--certificate", str(private), "--private-key", str(certificate)]) == 2
    assert "accepted: a certificate chain and its key" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("--allow-host", given) for given in ("https://shop.example", "shop.example/", "shop.example:443", "::1", "", "a b")),
        *(
            ("--allow-origin", given)
            for given in ("*", "shop.example", "https://shop.example/path", "https://", "https://*", "null", "https://a:b")
        ),
    ],
)
def test_names_that_no_browser_sends_are_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, given: str
) -> None:
    Keys(tmp_path).create(["read"])
    assert main(["serve", str(tmp_path), "--scale", "1..5", "--port", "0", f"{option}={given}"]) == 2
    complaint = " ".join(capsys.readouterr().err.split())
    assert f"{option} is {given!r}" in complaint
    assert "accepted: " in complaint


def test_names_that_browsers_send_are_accepted(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    keys.create(["read"])
    origins = ("https://shop.example", "http://localhost:5173", "http://[::1]:80", "capacitor://localhost", "https://shop.example/")
    ListenAddress(allow_hosts=("shop.example", "10.0.0.1", "[::1]", "*"), allow_origins=origins).check(keys)


PATIENT = """
import asyncio.constants, sys
sys.modules["uvloop"] = None
asyncio.constants.SSL_SHUTDOWN_TIMEOUT = 3600
from albatross.service.http import process
from albatross.service.http.wire import connection, tls
connection.READ_SECONDS = process.DRAIN_SECONDS = tls.LINGER_SECONDS = 3600
"""
"""A process with the longest time limits for connections."""


def test_an_idle_tls_connection_does_not_hold_up_the_end(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    certificate, private = pair
    trust = ssl.create_default_context(cafile=str(certificate))
    with Live(tmp_path / "shop", "--certificate", str(certificate), "--private-key", str(private), before=PATIENT) as live:
        connection = http.client.HTTPSConnection("localhost", live.port, context=trust)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(60) == 0  # a hang is a failure, not a long wait
        connection.close()
