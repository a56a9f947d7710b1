"""Who may come in: keys, scopes, names, and what the log must never say."""

import ssl
import stat
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live import Live

from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.service.keys import Keys

pytestmark = pytest.mark.xdist_group("service-http")

QUESTIONS: dict[str, list[tuple[str, str, dict[str, Any] | None]]] = {
    "recommend": [("POST", "/v1/recommend", {"user": "ann", "candidates": ["tea"]})],
    "feedback": [
        ("POST", "/v1/feedback", {"event_id": "e", "user": "ann", "item": "tea", "rating": 3}),
        ("POST", "/v1/feedback/batch", {"event_id": "e", "user": "ann", "item": "tea", "rating": 3}),
    ],
    "read": [
        ("POST", "/v1/users/get", {"user": "ann"}),
        ("GET", "/v1/version", None),
        ("GET", "/v1/series", None),
        ("GET", "/metrics", None),
    ],
    "admin": [
        ("POST", "/v1/items/upsert", {"item": "tea"}),
        ("POST", "/v1/items/retire", {"item": "tea"}),
        ("POST", "/v1/items/restore", {"item": "tea"}),
        ("POST", "/v1/snapshot", {}),
        ("POST", "/v1/users/forget", {"user": "ann"}),
    ],
}
"""What each scope allows, in an order in which all of it succeeds."""


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
    keys = {scope: Keys(folder).create([scope]) for scope in QUESTIONS}
    with Live(folder, "--allow-origin", "https://shop.example", "--allow-host", "api.example") as live:
        yield Locked(live, folder, keys)
        live.kill()
        log = "".join(live.lines)
        assert "listening" in log
        for key in keys.values():
            assert key not in log
            assert secret_of(key) not in log


def test_each_key_opens_its_scope_and_no_other(locked: Locked) -> None:
    for scope, questions in QUESTIONS.items():
        for method, path, body in questions:
            assert locked.live.ask(method, path, body, bearer(locked.keys[scope])).status == 200, path
            for other in set(QUESTIONS) - {scope}:
                for spelling in (path, f"{path}/"):
                    reply = locked.live.ask(method, spelling, body, bearer(locked.keys[other]))
                    assert (reply.status, reply.json["code"]) == (403, "forbidden"), (path, other)


def test_the_table_above_leaves_out_no_endpoint(locked: Locked) -> None:
    """Every path in OpenAPI needs a key, but for the two that say whether the process lives."""
    listed = {path for questions in QUESTIONS.values() for _, path, _ in questions}
    assert set(locked.live.get("/schema").json["paths"]) - listed == {"/healthz", "/readyz", "/v1/stream"}


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
    for questions in QUESTIONS.values():
        for method, path, body in questions:
            reply = locked.live.ask(method, path, body, headers)
            assert (reply.status, reply.json["code"]) == (401, "no-valid-key")
            assert reply.headers["www-authenticate"] == "Bearer"
    assert locked.live.get("/v1/stream", headers).status == 401
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


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "api.example", "api.example:443"])
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
    assert "access-control-allow-origin" not in locked.live.get("/healthz", {"Origin": "https://evil.example"}).headers
    assert locked.live.ask("OPTIONS", "/v1/recommend", None, {**asking, "Origin": "https://evil.example"}).status == 403
    assert "access-control-allow-origin" not in locked.live.get("/healthz").headers


def test_keys_are_kept_hashed_and_for_the_owner_only(locked: Locked) -> None:
    file = locked.folder / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for path in locked.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret_of(key).encode() in content for key in locked.keys.values()), path


def test_beyond_this_machine_only_with_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "shop.example"):
        assert main(["serve", str(tmp_path / "new"), "--scale", "1..5", "--port", "0", "--host", host]) == 2
        assert "albatross keys create" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_key_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "shop")
    assert main(["keys", "create", folder, "--scope", "recommend", "--scope", "read", "--note", "the web site"]) == 0
    key = capsys.readouterr().out.strip()
    _, name, secret = key.split("_", 2)
    assert len(secret) == 43  # 256 bits
    assert main(["keys", "list", folder]) == 0
    listing = capsys.readouterr().out
    assert all(word in listing for word in (name, "recommend read", "the web site"))
    assert secret not in listing
    found = Keys(folder).verify(key)
    assert found is not None
    assert found.scopes == ("recommend", "read")
    assert main(["keys", "revoke", folder, name]) == 0
    assert Keys(folder).verify(key) is None
    for wrong in (["revoke", folder, name], ["create", folder, "--scope", "everything"], ["list", str(tmp_path / "nowhere")]):
        assert main(["keys", *wrong]) == 2
        assert "accepted" in (complaint := capsys.readouterr().err) or "There is" in complaint


def test_every_key_is_another(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    made = [keys.create(["read"]) for _ in range(3)]
    assert len({key.split("_", 2)[2] for key in made}) == 3
    assert len({key.digest for key in keys}) == len({key.salt for key in keys}) == 3


def test_a_verified_key_is_known_and_no_other(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key = keys.create(["read"])
    assert keys.known(key) is None
    assert keys.verify(key) is not None
    assert keys.known(key) is not None
    assert keys.known(key[:-1]) is None
    assert keys.known(f"{key}x") is None


def test_a_file_of_keys_that_vanishes_or_is_broken_opens_nothing(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    keys.create(["read"])
    (tmp_path / "keys.json").write_text("{}")
    with pytest.raises(InvalidInput, match="not a file of keys"):
        bool(keys)
    (tmp_path / "keys.json").unlink()
    with pytest.raises(InvalidInput, match="removed"):
        bool(keys)


def test_tls_by_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, private = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(private), "-out", str(certificate)]
    try:
        subprocess.run([*command, *subject], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl to make a certificate with")
    with Live(tmp_path / "shop", "--certificate", str(certificate), "--private-key", str(private)) as live:
        assert live.wait_for("listening")["url"].startswith("https://")
        trust = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(f"https://localhost:{live.port}/healthz", context=trust) as response:
            assert response.status == 200
    assert main(["serve", str(tmp_path / "other"), "--scale", "1..5", "--port", "0", "--certificate", str(certificate)]) == 2
    assert "--private-key" in capsys.readouterr().err
