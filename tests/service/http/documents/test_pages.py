"""The files of the page: what is served, how it may be cached, and that nothing else can be had."""

import re

import pytest
from live import Live

from albatross.service.http.documents.pages import page_files

pytestmark = pytest.mark.xdist_group("service-http")


def assets(shop: Live) -> list[str]:
    return re.findall(r'(?:href|src)="(/page/[^"]+)"', shop.get("/").body.decode())


def test_the_page_may_load_from_here_only_and_runs_no_inline_script(shop: Live) -> None:
    reply = shop.get("/")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'self'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["cache-control"] == "no-cache"
    assert b"<script>" not in reply.body
    assert b"//" not in reply.body.replace(b"<!--", b"")


def test_files_are_named_by_their_digest_and_never_change(shop: Live) -> None:
    kinds = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
    found = assets(shop)
    assert len(found) >= 3
    for path in found:
        reply = shop.get(path)
        assert (reply.status, reply.headers["content-type"]) == (200, kinds[path.rpartition(".")[2]])
        assert "immutable" in reply.headers["cache-control"]
        assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_head_has_the_length_and_no_body(shop: Live) -> None:
    for path in ("/", *assets(shop)):
        whole, head = shop.get(path), shop.ask("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == str(len(whole.body))
        assert shop.post(path, {}).status == 405


def test_no_other_file_can_be_had(shop: Live) -> None:
    folder = assets(shop)[0].rsplit("/", 1)[0]
    for path in (
        f"{folder}/../../../etc/passwd",
        f"{folder}/..%2f..%2fservice/api/routes.py",
        f"{folder}/%2e%2e/index.html",
        f"{folder}//app.js",
        f"{folder}/index.html",
        f"{folder}/app.js/",
        f"{folder}/app.js%00",
        f"{folder}/",
        folder,
        "/page/0000000000000000/app.js",
        "/page/app.js",
        "/../page/app.js",
        "/style.css",
    ):
        assert shop.get(path).status == 404, path


def test_every_file_of_the_page_is_loaded_from_the_page_itself() -> None:
    """Offline means offline: no script names another origin, but for licences and the XML namespaces of drawings."""
    for path, file in page_files().items():
        if path.endswith((b".js", b".css", b".html")) and b"/vendor/" not in path:
            assert not re.findall(rb"https?://", file.content), path
