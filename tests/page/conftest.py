"""A real browser on real servers. Where there is no chromium, these tests are skipped and say so."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live import Live

from albatross.service.recommender import Recommender
from page.tab import HOSTILE, Tab

FLAGS = [
    "--no-sandbox",  # which root has no use for, and containers forbid
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For one module: while it is open its thread runs an event loop, and no other test could start one."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A shop that has learned from a few hundred ratings."""
    folder = tmp_path_factory.mktemp("page") / "shop"
    with Recommender(folder, scale=(1, 5), policy="alb") as shop:
        for number in range(24):
            shop.upsert_item(f"item {number}")
        for number in range(300):
            decision = shop.recommend(f"user {number % 12}", n=1, explain=number % 2 == 0)
            liked = (int(decision.item.split()[1]) + number % 12) % 3
            shop.rate(decision, 1.0 + 2 * liked)
    with Live(folder, scale=None) as live:
        yield live
        assert not [line for line in live.log if line["event"] in ("request failed", "unforeseen error")]


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A shop with names of users and items that could break a page."""
    folder = tmp_path_factory.mktemp("page") / "hostile"
    with Recommender(folder, scale=(1, 5), policy="mean-field") as shop:
        for item in HOSTILE:
            shop.upsert_item(item, attributes={item: [item, HOSTILE[0]]})
        for user in HOSTILE:
            for rating, item in enumerate(HOSTILE[:5], start=1):
                shop.rate_item(user, item, rating)
            shop.recommend(user, n=3, explain=True, where={"none": [{"attribute": user, "is": [user + "!"]}]} if len(user) < 256 else None)
    with Live(folder, scale=None) as live:
        yield live
        assert not [line for line in live.log if line["event"] in ("request failed", "unforeseen error")]


@pytest.fixture
def tab(browser: Any, learned: Live) -> Iterator[Tab]:
    opened = Tab(browser, learned.port)
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shop"
