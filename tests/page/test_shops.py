"""The pages of several shops in one process: an index, and each shop's own page, which asks that shop and keeps its key apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live import Live

from albatross import Recommender
from albatross.service.http.access.keys import Keys
from page.tab import Tab

pytestmark = pytest.mark.xdist_group("page")


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, str]]:
    root = tmp_path_factory.mktemp("page") / "shops"
    for name, scale in (("mate", (0, 10)), ("tea", (1, 5))):
        with Recommender(root / name, scale=scale, policy="alb") as shop:
            for number in range(30):
                shop.rate(shop.recommend(f"user {number % 5}", candidates=[f"{name} 1", f"{name} 2"]), 1 + number % 5)
    key = Keys(root / "mate").create(["read"])
    (root / "broken").mkdir()
    with Live(f"--root={root}", scale=None) as live:
        live.wait_for("all settled")
        yield live, key


def test_from_the_index_to_the_page_of_a_shop(browser: Any, street: tuple[Live, str], tmp_path: Path) -> None:
    live, key = street
    tab = Tab(browser, live.port)
    page = tab.page
    page.goto(tab.base)
    assert page.locator("main p").all_inner_texts() == ["broken failed", "mate ready", "tea ready"]
    page.screenshot(path=tmp_path / "index.png")
    page.get_by_role("link", name="tea").click()
    page.locator("[data-testid=live-reward]").wait_for()
    assert "30" in page.inner_text("body")
    page.goto(f"{tab.base}shops/mate/")
    page.get_by_label("Key").fill(key)
    page.keyboard.press("Enter")
    page.locator("[data-testid=live-reward]").wait_for()
    kept = page.evaluate("Object.fromEntries(Object.entries(sessionStorage))")
    assert kept == {"albatross key/shops/mate": key}
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.headers.get("authorization", "")))
    page.goto(f"{tab.base}shops/tea/")
    page.locator("[data-testid=live-reward]").wait_for()
    assert asked
    assert not any(asked)  # the key of one shop is not shown to another
    tab.close()
