"""Several shops in one process: each by itself, and none takes another with it."""

import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import pytest
from live import Live

from albatross import Client, Recommender
from albatross.cli import main
from albatross.service.api.errors import Overloaded, Unauthorized
from albatross.service.http import shops as shops_module
from albatross.service.http.access.keys import Keys
from albatross.service.http.application import Application
from albatross.service.http.hosting import MOST_SHOPS, found_in
from albatross.service.http.shops import Shop, Shops
from albatross.service.http.wire.crowd import Crowd

pytestmark = pytest.mark.xdist_group("service-http")

CONFIGURATION = 'scale = {scale}\npolicy = "item-mean"\n'


def made(root: Path, name: str, scale: str = "[1, 5]") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "albatross.toml").write_text(CONFIGURATION.format(scale=scale))
    return folder


class Street(NamedTuple):
    live: Live
    root: Path
    key: str
    """Of the shop `mate`, with every scope."""
    whole: str
    """Of the process."""

    def client(self, name: str, key: str | None = None, patience: float = 10.0) -> Client:
        return Client(f"http://localhost:{self.live.port}/shops/{name}", key, patience=patience)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    """Two shops that are well, one of them with a key; one with a damaged log, one in use, one with a wrong file; and what is no shop."""
    root = tmp_path_factory.mktemp("street") / "shops"
    made(root, "tea")
    made(root, "mate", "[0, 10]")
    (made(root, "wrong") / "albatross.toml").write_text("port = 1\n")
    with Recommender(made(root, "damaged")) as shop:
        shop.rate_item("ann", "tea", 3.0)
        shop.rate_item("ann", "mate", 3.0)
    shutil.rmtree(root / "damaged" / "snapshots")
    with closing(sqlite3.connect(root / "damaged" / "log.sqlite")) as log:
        log.execute("UPDATE log SET body = zeroblob(length(body)) WHERE seq = 2")
        log.commit()
    (root / "li nk").mkdir()
    (root / "linked").symlink_to(root / "tea")
    (root / ".hidden").mkdir()
    (root / "file").touch()
    key = Keys(root / "mate").create(["recommend", "feedback", "read", "admin"])
    whole = Keys(root).create(["read"])
    with Recommender(made(root, "busy")), Live(f"--root={root}", scale=None) as live:
        live.wait_for("all settled")
        live.wait_for("shop closed", shop="damaged")
        yield Street(live, root, key, whole)
        assert not [line for line in live.log if line["event"] in ("request failed", "unforeseen error")]


def test_each_shop_has_its_own_scale_and_ratings(street: Street) -> None:
    with street.client("tea") as tea, street.client("mate", street.key) as mate:
        before = mate.version().ratings
        tea.rate(tea.recommend("ann", candidates=["green"]), 4)
        mate.rate_item("ann", "green", 9)
        assert (tea.version().scale, mate.version().scale) == ((1.0, 5.0), (0.0, 10.0))
        assert mate.version().ratings == before + 1


def test_requests_of_one_connection_go_each_to_its_shop(street: Street) -> None:
    """Also where the same head comes again, which the connection knows by then."""
    bearer = {"Authorization": f"Bearer {street.key}"}
    for _ in range(3):
        for name in ("tea", "mate"):
            body = {"event_id": "the same", "user": "eve", "item": f"of {name}", "rating": 3}
            assert street.live.post(f"/shops/{name}/v1/feedback", body, bearer).status == 200
    for name in ("tea", "mate"):
        listed = street.live.post(f"/shops/{name}/v1/items/list", {"search": "of "}, bearer).json["items"]
        assert [item["item"] for item in listed] == [f"of {name}"]


def test_a_key_opens_its_own_shop_and_no_other(street: Street) -> None:
    with street.client("mate") as nobody, pytest.raises(Unauthorized):
        nobody.version()
    with street.client("mate", street.whole) as wrong, pytest.raises(Unauthorized):
        wrong.version()
    other = Keys(made(street.root.parent / "elsewhere", "x")).create(["read"])
    with street.client("mate", other) as wrong, pytest.raises(Unauthorized):
        wrong.version()
    with street.client("mate", street.key) as mate:
        assert mate.version().ratings >= 0
    bearer = {"Authorization": f"Bearer {street.key}"}
    assert street.live.get("/metrics", bearer).status == 401
    assert street.live.get("/metrics").status == 401


@pytest.mark.parametrize("name", ["damaged", "busy", "wrong"])
def test_a_shop_that_cannot_start_says_503_and_the_others_go_on(street: Street, name: str) -> None:
    reply = street.live.post(f"/shops/{name}/v1/recommend", {"user": "ann"})
    assert (reply.status, reply.json["code"]) == (503, "not-ready")
    assert reply.headers["content-type"] == "application/problem+json"
    assert str(street.root) not in reply.json["detail"]
    ready = street.live.get("/readyz")
    assert ready.status == 200
    assert ready.json["shops"] == {"busy": "failed", "damaged": "failed", "mate": "ready", "tea": "ready", "wrong": "failed"}
    reason = street.live.wait_for("shop failed", shop=name)["reason"]
    assert {"damaged": "damaged", "busy": "in use by", "wrong": "port belongs in the file of the whole process"}[name] in reason


@pytest.mark.parametrize(
    "path",
    [
        "/shops/linked/v1/version",
        "/shops/li nk/v1/version".replace(" ", "%20"),
        "/shops/.hidden/v1/version",
        "/shops/file/v1/version",
        "/shops/nothing/v1/version",
        "/shops/../tea/v1/version",
        "/shops/tea/../mate/v1/version",
        "/shops/%74ea/v1/version",
        "/shops/tea%2fv1/version",
        "/shops//tea/v1/version",
        "/shops/",
        "/shops/tea/v1/version/",
        "/v1/version",
        "/schema",
    ],
)
def test_what_is_no_shop_is_not_found(street: Street, path: str) -> None:
    assert street.live.get(path).status == 404
    assert street.live.get("/healthz").json == {"alive": True}


def test_the_whole_process_is_measured_by_shop(street: Street) -> None:
    street.live.get("/shops/tea/healthz")
    text = street.live.get("/metrics", {"Authorization": f"Bearer {street.whole}"}).body.decode()
    samples = dict(re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE))
    assert samples['albatross_ready{shop="tea"}'] == samples['albatross_ready{shop="mate"}'] == "1.0"
    assert samples['albatross_ready{shop="damaged"}'] == "0.0"
    assert int(samples['albatross_requests_total{shop="tea",path="/healthz",status="200"}']) >= 1
    families = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(families) == len(set(families))
    assert {label for labels in re.findall(r"\{(.*)\}", text) for label in re.findall(r"(\w+)=", labels)} <= {
        "shop",
        "path",
        "status",
        "le",
    }


def test_schema_page_and_client_are_those_of_the_shop(street: Street) -> None:
    schema = street.live.get("/shops/mate/schema").json
    assert schema["servers"] == [{"url": "/shops/mate"}]
    assert schema["components"]["schemas"]["Feedback"]["properties"]["rating"]["maximum"] == 10.0
    page = street.live.get("/shops/tea/").body.decode()
    for path in re.findall(r'(?:href|src)="([^"]+)"', page):
        assert path.startswith("/shops/tea/page/")
        assert street.live.get(path).status == 200
    assert street.live.get("/shops/tea/albatross.js").status == 200
    index = street.live.get("/")
    assert index.status == 200
    assert re.findall(r'href="(/shops/\w+/)"', index.body.decode()) == ["/shops/mate/", "/shops/tea/"]
    assert re.findall(r"(\w+) <span class=\"about\">failed", index.body.decode()) == ["busy", "damaged", "wrong"]


def test_another_host_and_another_method_are_refused(street: Street) -> None:
    for path in ("/", "/readyz", "/shops/tea/healthz", "/shops/nothing/"):
        assert street.live.get(path, {"Host": "evil.example"}).status == 403
        assert street.live.get(path, {"Origin": "https://evil.example"}).status == 403
    reply = street.live.post("/readyz", {})
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


def test_under_another_name_every_shop_needs_a_key_of_its_own(tmp_path: Path) -> None:
    """A proxy on this machine makes every request of others look like one of this machine."""
    made(tmp_path, "tea")
    (made(tmp_path, "mate") / "keys.json").write_text("no keys")
    bearer = {"Authorization": f"Bearer {Keys(tmp_path).create(['read'])}"}
    with Live(f"--root={tmp_path}", "--allow-host=shop.example", scale=None) as live:
        live.wait_for("all settled")
        for host in ("shop.example", "localhost"):
            for given in ({}, bearer):
                assert live.get("/shops/tea/v1/version", {"Host": host, **given}).status == 401
        bearer_of_tea = {"Authorization": f"Bearer {Keys(tmp_path / 'tea').create(['read'])}"}
        assert live.get("/shops/tea/v1/version", {"Host": "shop.example", **bearer_of_tea}).status == 200
        # A shop with a broken file of keys opens nothing, and does not hide the metrics of the others.
        assert live.get("/shops/mate/v1/version", bearer).status == 503
        assert live.get("/metrics").status == 401
        assert live.get("/metrics", bearer).status == 200


def test_a_folder_that_appears_is_served_after_a_signal_and_the_end_ends_all(tmp_path: Path) -> None:
    root = tmp_path / "shops"
    made(root, "tea")
    busy = Recommender(made(root, "busy"))
    with Live(f"--root={root}", scale=None) as live:
        live.wait_for("all settled")
        made(root, "new")
        assert live.get("/shops/new/healthz").status == 404
        assert live.get("/shops/busy/healthz").status == 503
        busy.close()
        os.kill(live.process.pid, signal.SIGHUP)
        for name in ("new", "busy"):
            live.wait_for("ready", shop=name)
            with Client(f"http://localhost:{live.port}/shops/{name}") as client:
                client.rate_item("ann", "tea", 4)
        assert live.kill(signal.SIGTERM) == 0
    for name in ("tea", "new", "busy"):
        with Recommender(root / name) as shop:
            assert shop.version().ratings == (name != "tea")


def test_there_are_bounds_for_all_shops_together(tmp_path: Path) -> None:
    for number in range(MOST_SHOPS + 1):
        (tmp_path / "many" / f"s{number:03d}").mkdir(parents=True)
    names, refused = found_in(tmp_path / "many")
    assert len(names) == MOST_SHOPS
    assert list(refused) == [f"s{MOST_SHOPS:03d}"]
    made(tmp_path / "shops", "tea")
    full = "from albatross.service.http import shops; shops.MOST_IN_FLIGHT = 0"
    with Live(f"--root={tmp_path / 'shops'}", scale=None, before=full) as live:
        reply = live.post("/shops/tea/v1/recommend", {"user": "ann", "candidates": ["green"]})
        assert (reply.status, reply.headers["retry-after"]) == (429, "1")
        assert live.get("/shops/tea/readyz").status == 200


def test_who_waits_for_the_compiler_of_a_shop_takes_no_place_of_all_shops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shops_module, "MOST_IN_FLIGHT", 4)

    def shop(name: str, in_flight: int, withheld: int) -> Shop:
        found = Shop(name)
        engine, admission = SimpleNamespace(withheld=withheld), SimpleNamespace(in_flight=in_flight)
        found.application = cast(Application, SimpleNamespace(engine=engine, admission=admission))
        return found

    shops = Shops(Keys(tmp_path), ["localhost"], False, Crowd())
    shops.by_name = {b"north": shop("north", 4, 2), b"south": shop("south", 1, 0), b"left": shop("left", 0, 2)}  # whose clients are gone
    shops._check_load()
    shops.by_name[b"west"] = shop("west", 1, 0)
    with pytest.raises(Overloaded):
        shops._check_load()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--root", "nowhere"], "nowhere is not a folder"),
        (["shop", "--root", "."], "a folder, an address postgresql://…, or --root FOLDER"),
        ([], "exactly one of these is needed: a folder"),
        (["--root", ".", "--floor", "2"], "--floor is 2.0; accepted: a number from 0 to 1"),
        (["--root", ".", "--host", "0.0.0.0"], "there is no key"),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--port", "0", *arguments]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_the_file_of_the_process_says_nothing_of_shops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "albatross.toml").write_text("scale = [1, 5]\n")
    assert main(["serve", "--root", str(tmp_path), "--port", "0"]) == 2
    assert "scale belongs in the file in the folder of each service" in " ".join(capsys.readouterr().err.split())
