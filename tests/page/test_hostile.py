"""Ids and ratings from clients are data, never markup; and what happens when a key or the service goes away."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from live import Live

from albatross.service.http.access.keys import Keys
from page.tab import HOSTILE, Tab

pytestmark = pytest.mark.xdist_group("page")


def test_hostile_ids_are_text_in_every_view(browser: Any, hostile: Live) -> None:
    tab = Tab(browser, hostile.port)
    events = hostile.post("/v1/events/list", {"n": 100}).json["events"]
    decisions = {event["user"]: event["decision_id"] for event in events if event["kind"] == "decision"}
    for user in HOSTILE:
        page = tab.go(f"user?{urlencode({'user': user})}")
        page.get_by_test_id("user-best").wait_for()
        assert page.locator(".decided .name").first.evaluate("element => element.textContent") == user
        page = tab.go(f"why?{urlencode({'id': decisions[user]})}")
        page.get_by_test_id("why-item").first.wait_for()
        shown = page.get_by_test_id("why-items").locator("h3 .name").all_text_contents()
        assert set(shown) <= set(HOSTILE)
        assert len(shown) == 3
    for view, drawn in (("live", "live-reward"), ("items", "items-map"), ("log", "log-past")):
        page = tab.go(view)
        page.get_by_test_id(drawn).wait_for()
    for item in HOSTILE:
        page = tab.go(f"whatif?{urlencode({'user': HOSTILE[0], 'item': item, 'rating': 5})}")
        page.get_by_test_id("whatif-after").get_by_text("If ", exact=False).first.wait_for()
    page = tab.go(f"try?{urlencode({'user': HOSTILE[1], 'n': 3})}")
    page.get_by_test_id("try-item").first.wait_for()
    assert page.evaluate("document.querySelectorAll('main img, main script, main svg[onload], main iframe').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "a name of 256 letters does not widen the page"
    tab.close()


def test_an_open_page_survives_a_restart_of_the_service(browser: Any, folder: Path) -> None:
    with Live(folder) as live:
        port = live.port
        live.post("/v1/feedback", {"event_id": "1", "user": "ann", "item": "tea", "rating": 4})
        tab = Tab(browser, port)
        page = tab.go("live")
        page.get_by_test_id("live-ratings").get_by_text("1", exact=True).wait_for()
        live.kill()
    page.get_by_text("the service is away").first.wait_for()
    with Live(folder, port=port) as again:
        again.post("/v1/feedback", {"event_id": "2", "user": "ann", "item": "mate", "rating": 2})
        page.get_by_test_id("live-ratings").get_by_text("2", exact=True).wait_for()
        assert page.get_by_test_id("live-phase").inner_text().strip() == "live"
        assert page.get_by_test_id("away").count() == 0
        tab.close()


def test_a_page_that_is_hidden_listens_to_nothing(browser: Any, learned: Live) -> None:
    tab = Tab(browser, learned.port)
    page = tab.go("live")
    page.get_by_test_id("live-phase").get_by_text("live", exact=True).wait_for()
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_text("paused while hidden").wait_for()
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_test_id("live-phase").get_by_text("live", exact=True).wait_for()
    tab.close()


def test_a_key_is_asked_for_kept_for_the_tab_and_dropped_when_it_ends(browser: Any, folder: Path) -> None:
    folder.mkdir()
    keys = Keys(folder)
    given = keys.create(["read"])
    with Live(folder) as live:
        tab = Tab(browser, live.port)
        page = tab.go("live")
        page.get_by_test_id("key").fill("alb_00000000_wrong")
        page.get_by_test_id("key-use").click()
        page.get_by_text("the key is not one of this service").wait_for()
        page.get_by_test_id("key").fill(given)
        page.get_by_test_id("key-use").click()
        page.get_by_test_id("live-phase").get_by_text("live", exact=True).wait_for()
        chips = page.get_by_test_id("scopes").locator(".chip")
        assert [one.get_attribute("class") for one in chips.all()] == ["chip off", "chip off", "chip", "chip off"]
        page.reload()
        page.get_by_test_id("live-phase").get_by_text("live", exact=True).wait_for()
        assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 1, ""]
        page.get_by_role("link", name="Try it").click()
        page.get_by_text("This needs a key with the scope recommend and feedback").wait_for()
        page.get_by_role("link", name="Live", exact=True).click()
        page.get_by_test_id("live-phase").get_by_text("live", exact=True).wait_for()
        keys.revoke(given.split("_")[1])
        page.get_by_role("heading", name="This service needs a key").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        tab.close()
