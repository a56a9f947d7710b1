"""Every code block of README and of the site runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from documentation.blocks import LANGUAGES, PAGES, ROOT, blocks, commands, reader
from documentation.instead import INSTEAD

pytestmark = pytest.mark.xdist_group("documentation")

RUN = [page for page in PAGES if any(block.language in ("python", "sh", "toml", "json", "javascript") for block in blocks(page))]
PLAIN = ROOT / "docs" / "guides" / "plain-python.md"
README = ROOT / "README.md"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{name_of(page)}, line {block.line}: a block of {block.language or 'nothing'}"


@pytest.mark.parametrize("page", [page for page in RUN if page not in (PLAIN, README)], ids=name_of)
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    with reader(tmp_path) as somebody:
        somebody.read(page)


def test_every_block_of_the_readme_runs(tmp_path: Path) -> None:
    """And the first ten minutes of the service say what they should."""
    with reader(tmp_path) as somebody:
        somebody.read(README)
    printed = somebody.printed.partition('"ready"')
    ready, decision, first, second, ready_again, explained, user = documents('{"ready"' + printed[2])
    assert ready["ready"]
    assert ready_again["ready"]
    assert decision["items"][0]["item"] in ("tea", "coffee", "mate")
    assert first["applied"]
    assert second["seq"] == first["seq"] + 1
    assert explained["user_ratings"] == user["ratings"] == 2
    (reason,) = explained["explanation"]["items"]
    assert reason["score"] == reason["mean"] + reason["bonus"]
    assert reason["width_after"] < reason["width"]
    assert "state id" in somebody.printed


def test_no_exception_is_idle() -> None:
    lines = [line for page in RUN for block in blocks(page) if block.language == "sh" for line in commands(block.text)]
    for beginning, _, reason in INSTEAD:
        assert any(line.startswith(beginning) for line in lines), f"no page has {beginning!r} ({reason})"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_study_that_is_named_exists(page: Path) -> None:
    """Their lines are not typed, so a wrong name would not be noticed otherwise."""
    for name in re.findall(r"studies/[\w-]+\.toml", page.read_text(encoding="utf-8")):
        assert (ROOT / name).is_file(), f"{name_of(page)} names {name}"


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON objects in a text, whatever stands between them."""
    found = []
    position = text.find('{"')
    while position >= 0:
        document, end = json.JSONDecoder().raw_decode(text, position)
        found.append(document)
        position = text.find('{"', end)
    return found
