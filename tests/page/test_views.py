"""Each view in a real browser, on a shop that has learned something."""

import csv
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from live import Live

from page.tab import VIEWS, Tab

pytestmark = pytest.mark.xdist_group("page")


def latest_decision(live: Live) -> str:
    events = live.post("/v1/events/list", {"n": 50}).json["events"]
    return str(next(event["decision_id"] for event in events if event["kind"] == "decision"))


def texts(page: Any, testid: str) -> list[str]:
    return [str(text).strip() for text in page.get_by_test_id(testid).all_inner_texts()]


def test_rating_by_a_click_teaches_the_model_and_the_bar_moves(tab: Any) -> None:
    page = tab.go("try")
    page.get_by_test_id("try-user").fill("a new user")
    page.get_by_test_id("try-ask").click()
    first = page.get_by_test_id("try-item").first
    before = first.get_by_test_id("try-sum").inner_text()
    knew = int(page.get_by_test_id("try-model-seq").inner_text())
    first.get_by_test_id("try-rate-5").click()
    change = first.get_by_test_id("try-change")
    change.wait_for()
    assert int(page.get_by_test_id("try-model-seq").inner_text()) > knew
    assert first.get_by_test_id("try-sum").inner_text() != before
    assert "−" in change.inner_text().split("bonus")[1], "one more rating makes it surer"
    page.get_by_test_id("try-decision").click()
    page.get_by_test_id("why-came").first.wait_for()
    assert "rated 5.00" in texts(page, "why-came")[0]


def test_a_few_latest_ratings_join_the_group_before_them(tab: Any) -> None:
    """A mean of two ratings, as a point of its own, would set the scale of the chart."""
    counts = [4] * 100 + [2]
    halves = [number % 2 for number in range(len(counts))]
    series = {"ratings": counts, "reward": halves, "reward_error": [0.0] * 101, "calibration": halves, "optimism": halves}
    merge = "async (series) => (await import(new URL('views/live.js', document.querySelector('script[src]').src))).merged(series)"
    told = tab.go("live").evaluate(merge, series)
    assert told["ratings"] == [8] * 49 + [10]
    assert told["reward"] == pytest.approx([0.5] * 49 + [0.4])


def test_why_a_decision_was_made(tab: Any, learned: Live) -> None:
    decision = latest_decision(learned)
    page = tab.go(f"why?{urlencode({'id': decision})}")
    page.get_by_test_id("why-item").first.wait_for()
    told = learned.post("/v1/decisions/get", {"decision_id": decision}).json
    assert told["items"][0]["item"] in page.get_by_test_id("why-item").first.inner_text()
    assert len(told["close"]) == 5
    assert all(one["item"] in page.get_by_test_id("why-close").inner_text() for one in told["close"])
    reasons = told["items"][0]["because"]
    total = reasons["base"] + sum(one["part"] for one in reasons["ratings"]) + reasons["others"]
    assert total == pytest.approx(reasons["mean"])
    assert f"= mean {reasons['mean']:.2f}" in page.get_by_test_id("why-because").first.inner_text()


def test_an_overloaded_service_is_asked_again(tab: Any) -> None:
    refused = {"type": "about:blank", "status": 429, "code": "overloaded", "detail": "the service is overloaded"}
    left = [True, True]

    def answer(route: Any) -> None:
        if left:
            left.pop()
            route.fulfill(status=429, headers={"retry-after": "0"}, json=refused)
        else:
            route.continue_()

    tab.page.route("**/v1/items/list", answer)
    page = tab.go("items")
    page.get_by_test_id("items-map").wait_for()
    assert not left
    assert page.get_by_role("alert").count() == 0


def test_a_decision_that_is_none_is_refused_in_words(tab: Any) -> None:
    page = tab.go("why?id=41-00000000")
    page.get_by_role("alert").wait_for()
    assert "decision_id is unknown" in page.get_by_role("alert").inner_text()


def test_a_user_as_an_ellipse_on_axes_of_choice(tab: Any) -> None:
    page = tab.go("user?user=user+1")
    ellipse = page.get_by_test_id("user-ellipse").locator("ellipse")
    ellipse.wait_for()
    before = ellipse.get_attribute("transform")
    page.get_by_label("Across").select_option("3")
    page.wait_for_function(
        f"document.querySelector('[data-testid=user-ellipse] ellipse').getAttribute('transform') !== {json.dumps(before)}"
    )


def test_items_are_found(tab: Any) -> None:
    page = tab.go("items")
    page.get_by_test_id("items-map").wait_for()
    page.get_by_test_id("items-search").fill("ITEM 2")
    page.get_by_test_id("items-search").press("Enter")
    page.get_by_text("5 of 24 items.").wait_for()  # 2 and 20 to 23


def test_a_rating_that_is_only_supposed_leaves_the_state(tab: Any, learned: Live) -> None:
    before = learned.get("/v1/version").json
    page = tab.go("whatif?user=user+1&item=item+3&rating=1")
    page.get_by_test_id("whatif-after").wait_for()
    assert page.get_by_test_id("whatif-before").inner_text() != page.get_by_test_id("whatif-after").inner_text()
    assert page.get_by_test_id("whatif-state").inner_text() == before["state_id"]
    assert learned.get("/v1/version").json == before


def test_the_log_can_be_walked_and_verified(tab: Any, learned: Live) -> None:
    page = tab.go("log?seq=100&user=user+1")
    page.locator("[data-testid=log-past][data-seq='100']").wait_for()
    page.get_by_test_id("log-scrub").focus()
    page.keyboard.press("ArrowRight")
    page.locator("[data-testid=log-past][data-seq='101']").wait_for()
    page.get_by_test_id("log-verify").click()
    page.get_by_test_id("log-verdict").wait_for()
    assert page.get_by_test_id("log-verdict").inner_text().startswith("Passed")
    past = learned.post("/v1/events/past", {"seq": 100, "user": "user 1"}).json
    assert past["ratings"] < 100 == past["seq"]


def test_of_several_shards_the_log_of_one_is_shown(tab: Any, learned: Live) -> None:
    """The service has one shard, whose number is 0, and the page is told that there are two."""
    told = {**learned.get("/v1/version").json, "shards": 2}
    tab.page.route("**/v1/version", lambda route: route.fulfill(json=told))
    page = tab.go("log?seq=100&shard=0")
    page.locator("[data-testid=log-past][data-seq='100']").wait_for()
    assert page.get_by_test_id("log-shard").input_value() == "0"
    with page.expect_request(lambda request: "/v1/events/past" in request.url) as asked:
        page.get_by_test_id("log-scrub").focus()
        page.keyboard.press("ArrowRight")
    assert asked.value.post_data_json == {"seq": 101, "n": 5, "shard": 0}
    page.locator("[data-testid=log-past][data-seq='101']").wait_for()
    page.get_by_test_id("log-shard").select_option("1")
    page.get_by_text("shard is 1; accepted: none, or 0, which is the only one here").wait_for()


def test_every_figure_has_its_data_as_csv_and_json(tab: Any) -> None:
    page = tab.go("user?user=user+1")
    best = page.get_by_test_id("user-best")
    with page.expect_download() as as_csv:
        best.get_by_role("button", name="CSV").click()
    with page.expect_download() as as_json:
        best.get_by_role("button", name="JSON").click()
    rows = list(csv.DictReader(as_csv.value.path().read_text().splitlines()))
    records = json.loads(as_json.value.path().read_text())
    assert len(rows) == len(records) == 10
    assert [row["item"] for row in rows] == [record["item"] for record in records]
    assert float(rows[0]["score"]) == records[0]["score"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_anybody(browser: Any, learned: Live, theme: str) -> None:
    """axe-core finds no violation in any view, in both themes, on a phone and on a desk."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed").Axe()
    width = 420 if theme == "dark" else 1200
    tab = Tab(browser, learned.port, color_scheme=theme, viewport={"width": width, "height": 900}, reduced_motion="reduce")
    decision = latest_decision(learned)
    for view, drawn in VIEWS.items():
        page = tab.go(view.format(decision=decision))
        page.get_by_test_id(drawn).first.wait_for()
        found = axe.run(page).response["violations"]
        assert [(view, one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{view} is wider than the screen"
    tab.close()
