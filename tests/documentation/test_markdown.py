"""Markdown can be read in a terminal and on a phone, and its links lead somewhere in a clone, too."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from documentation.blocks import FENCED, PAGES, ROOT

LONGEST = 120
"""Characters in a line. Rows of tables, pictures and code that cannot be broken may be longer."""

MARKDOWN = sorted({*PAGES, *ROOT.glob("*.md"), *(ROOT / "benchmarks").rglob("*.md")})
GENERATED = ROOT / "docs" / "results" / "reproduction"
"""As `albatross reproduce` wrote them."""

LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in MARKDOWN if GENERATED not in page.parents], ids=name_of)
def test_lines_are_short(page: Path) -> None:
    prose = FENCED.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(prose.splitlines(), 1):
        if not line.startswith(("|", "![")):
            assert len(line) <= LONGEST, f"{name_of(page)}, line {number}: {len(line)} characters"


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_links_lead_somewhere_in_a_clone(page: Path) -> None:
    for address in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        path = unquote(address.partition("#")[0])
        if "://" in address or not path or path.startswith("mailto:"):
            continue
        target = page.parent / path
        assert target.exists(), f"{name_of(page)} leads to {address}"
