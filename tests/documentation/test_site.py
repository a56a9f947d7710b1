"""The site: built strictly, its links lead somewhere, and it asks nothing of other hosts."""

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from albatross import policies

from documentation.blocks import ROOT

pytestmark = pytest.mark.xdist_group("documentation-site")

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src", "object": "data"}
"""What a browser asks for by itself, and by which attribute."""


class Page(HTMLParser):
    """What a page loads, where it leads, and what in it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names.update(given[name] for name in ("id", "name") if name in given)
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])


@cache
def parsed(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def pages(site: Path) -> list[Path]:
    return sorted(file for file in site.rglob("*.html") if file.name != "404.html")


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in pages(site):
        for address in parsed(file).loads:
            assert not urlsplit(address).netloc, f"{file.relative_to(site)} loads {address}"
    for file in site.rglob("*.css"):
        for address in re.findall(r"url\(['\"]?([^)'\"]+)", file.read_text(encoding="utf-8")):
            assert not urlsplit(address).netloc, f"{file.relative_to(site)} loads {address}"


def test_every_link_leads_somewhere(site: Path) -> None:
    for file in pages(site):
        for address in [*parsed(file).loads, *parsed(file).leads]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{file.relative_to(site)} leads to {address}"
            if parts.fragment and target.suffix == ".html":
                assert unquote(parts.fragment) in parsed(target).names, f"{file.relative_to(site)} leads to {address}"


def test_every_page_can_be_reached(site: Path) -> None:
    """From the first page on; a page that the navigation does not name is put behind its neighbours."""
    found, waiting = set(), [site / "index.html"]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        paths = [urlsplit(address) for address in parsed(file).leads]
        waiting += [(file.parent / unquote(parts.path)).resolve() for parts in paths if parts.path.endswith(".html") and not parts.netloc]
    assert not set(pages(site)) - found


def test_every_command_and_every_policy_is_in_the_reference(site: Path) -> None:
    from albatross.cli import app

    commands = parsed(site / "reference" / "cli.html").names
    for name in app:
        if not name.startswith("-"):
            assert f"albatross-{name}" in commands
    classes = parsed(site / "reference" / "api" / "policies.html").names
    for name in policies.names():
        found = policies.find(name)
        assert f"{found.__module__}.{found.__name__}" in classes, f"reference/api/policies.md leaves {name} out"
