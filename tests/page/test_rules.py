"""What the page says of a shop: rules of decisions in words, fallbacks without predictions, named events, attributes and stock."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from live import Live

from albatross import Recommender
from albatross.service.api.rules import Fresh
from page.tab import HOSTILE, Tab

pytestmark = pytest.mark.xdist_group("page")

NOT = {"none": [{"attribute": "kind", "is": ["tea", HOSTILE[0]]}, {"attribute": "x", "is": "y"}]}
WHERE = {"all": [{"attribute": "price", "to": 4.5}, NOT]}


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, dict[str, str]]]:
    """A shop with events and descriptions, and its decisions by name."""
    folder = tmp_path_factory.mktemp("page") / "shop"
    decisions: dict[str, str] = {}
    with Recommender(folder, events={"impression": 0, "click": 1, "purchase": 5}, policy="alb", floor=0.0) as shop:
        shop.upsert_item("cup", attributes={"kind": "gifts", "price": 4.0, "tags": ["hot", HOSTILE[1]], "x": "z"}, in_stock=False)
        for number in range(6):
            shop.upsert_item(f"item {number}", attributes={"kind": "drinks", "price": number})
        shop.upsert_item("late", available_until=2_000_000_000)
        for number in range(40):
            shop.report_item(f"user {number % 5}", f"item {number % 6}", "purchase" if number % 3 else "impression")
        given: dict[str, dict[str, Any]] = {
            "plain": {},
            "ruled": {"where": WHERE, "quotas": {"kind": 2, "brnad": 1}, "fresh": Fresh(0.25, 30)},
            "popular": {"by": "popular"},
            "new": {"by": "new", "exclude_seen": "rated"},
        }
        for name, rules in given.items():
            decision = shop.recommend("user 1", 2, **rules)
            shop.report(decision, "click", decision.items[0].item)
            decisions[name] = decision.decision_id
    with Live(folder, "--strangers", "popular", scale=None) as live:
        yield live, decisions
        assert not [line for line in live.log if line["event"] in ("request failed", "unforeseen error")]


@pytest.fixture
def tab(browser: Any, ruled: tuple[Live, dict[str, str]]) -> Iterator[Tab]:
    opened = Tab(browser, ruled[0].port)
    yield opened
    opened.close()


def read(tab: Tab, decision: str) -> Any:
    page = tab.go(f"why?{urlencode({'id': decision})}")
    page.get_by_test_id("why-item").first.wait_for()
    return page


def test_rules_are_told_in_words(tab: Tab, ruled: tuple[Live, dict[str, str]]) -> None:
    page = read(tab, ruled[1]["ruled"])
    assert page.get_by_test_id("why-rules").locator("li").all_inner_texts() == [
        f"Only items for which price is at most 4.5 and not (kind is tea or {HOSTILE[0]} or x is y).",
        "At most 2 with the same label of kind.",
        "At most 1 with the same label of brnad.",
        "At least 25 % of the places for items that were shown fewer than 30 times, drawn at random, if there are any.",
        "No item has the attribute brnad now.",
    ]
    assert "the whole catalogue" not in page.locator("main").inner_text()
    assert "of those that the rules leave" in page.get_by_test_id("why-items").inner_text()
    page = read(tab, ruled[1]["plain"])
    assert page.get_by_test_id("why-rules").count() == 0
    assert "the whole catalogue" in page.locator("main").inner_text()


def test_a_fallback_is_no_prediction(tab: Tab, ruled: tuple[Live, dict[str, str]]) -> None:
    for by, title in (("popular", "Ranked by popularity"), ("new", "Ranked by age, newest first")):
        page = read(tab, ruled[1][by])
        said = page.locator("main").inner_text()
        assert title in said
        assert "The policy predicted nothing." in said
        for false in ("Predicted", "best score", "mean", "bonus"):
            assert false not in page.get_by_test_id("why-items").inner_text()
        assert page.get_by_test_id("why-because").inner_text().endswith("No reasons: the policy did not rank these items.")
        assert page.locator(".bar").count() == 0


def test_who_tries_as_a_stranger_sees_no_predictions(tab: Tab) -> None:
    page = tab.go("try?user=nobody&n=2")
    page.get_by_test_id("try-item").first.wait_for()
    said = page.get_by_test_id("try-item").first.inner_text()
    assert "A fallback for users without ratings: the policy predicted nothing." in said
    assert "mean" not in said
    assert page.locator(".bar").count() == 0


def test_events_are_named_beside_their_rewards(tab: Tab, ruled: tuple[Live, dict[str, str]]) -> None:
    came = read(tab, ruled[1]["popular"]).get_by_test_id("why-came")
    assert came.first.inner_text().startswith("click counted as 1.00, event ")
    assert came.last.inner_text() == "No rating yet."
    came = read(tab, ruled[1]["plain"]).get_by_test_id("why-came").first.inner_text()
    assert came.startswith("Predicted ")
    assert ", click counted as 1.00 (" in came
    page = tab.go("log")
    page.get_by_role("cell", name="feedback: click").first.wait_for()
    page = tab.go("user?user=user+1")
    page.get_by_role("cell", name="purchase").first.wait_for()


def test_items_have_attributes_and_stock(tab: Tab) -> None:
    page = tab.go("items")
    page.get_by_test_id("items-map").wait_for()
    cells = {row[0]: row[1:] for row in (line.locator("td").all_inner_texts() for line in page.locator("section tbody tr").all())}
    assert cells["cup"][-2] == "not in stock"
    for said in ("kind gifts", "price 4", f"tags hot, {HOSTILE[1]}"):
        assert said in cells["cup"][-1]
    assert cells["item 3"][-2] == ""
    assert cells["late"][-2].startswith("until 2033-05-18")
    assert "price" not in cells["late"][-1]


def test_a_shop_without_descriptions_has_no_columns_for_them(browser: Any, learned: Live) -> None:
    tab = Tab(browser, learned.port)
    page = tab.go("items")
    page.get_by_test_id("items-map").wait_for()
    assert page.locator("section thead th").all_inner_texts()[-1] == "retired"
    tab.close()


@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_stands_in_the_way(browser: Any, ruled: tuple[Live, dict[str, str]], width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed").Axe()
    tab = Tab(browser, ruled[0].port, viewport={"width": width, "height": 900}, reduced_motion="reduce")
    for view in (f"why?{urlencode({'id': ruled[1]['ruled']})}", f"why?{urlencode({'id': ruled[1]['popular']})}", "items", "log"):
        page = tab.go(view)
        page.locator("figure").first.wait_for()
        assert axe.run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()
