"""A report opened from disk: charts to choose from, nothing from the network, and pictures where there is no script."""

import json
from pathlib import Path
from typing import Any

import pytest

from albatross.cli import main
from page.tab import HOSTILE

pytestmark = pytest.mark.xdist_group("page")

STUDY = """
title = "</script><script>document.title='broken'</script>"
horizon = 120
seeds = 6
ndcg = true
datasets = [
    { name = "uniform", n_users = 5, n_items = 6, label = "<img src=x onerror=alert(1)>" },
    { name = "bernoulli", n_users = 5, n_items = 6 },
]

[[policies]]
name = "random"

[[policies]]
name = "item-mean"
shrunk = [true, false]
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    beside = tmp_path_factory.mktemp("report")
    file, target = beside / "study.toml", beside / "report.html"
    file.write_text(STUDY)
    folder = ["--folder", str(beside / "out")]
    assert main(["study", "run", str(file), *folder, "--jobs", "1"]) == 0
    assert main(["study", "report", str(file), str(target), *folder]) == 0
    return target


def test_a_report_from_disk_lets_one_choose_what_is_drawn(browser: Any, report: Path) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(20_000)
    errors: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    first = page.get_by_test_id("race-0-0")
    first.wait_for()
    assert page.get_by_test_id("race-0-1").count() == 1
    assert page.title() == HOSTILE[1]
    assert page.locator(".static").is_hidden()
    assert not page.locator("img[src=x]").count()

    chart, readout = first.locator(".chart"), first.locator(".readout")
    assert chart.get_attribute("aria-label") == "regret over steps of random, item-mean shrunk=true, item-mean"
    first.get_by_role("checkbox", name="random").uncheck()
    first.get_by_role("radio", name="NDCG").check()
    assert chart.get_attribute("aria-label") == "NDCG over steps of item-mean shrunk=true, item-mean"
    mean = readout.inner_text()
    first.get_by_label("Seeds").select_option("3")
    assert readout.inner_text() != mean
    assert mean.startswith("after 120 steps")
    first.locator(".u-over").hover(position={"x": 30, "y": 30})
    assert not readout.inner_text().startswith("after 120 steps")
    with page.expect_download() as download:
        first.get_by_role("button", name="JSON").click()
    rows = json.loads(download.value.path().read_text())
    assert [row["step"] for row in rows][-1] == 120
    assert 0 < rows[-1]["item-mean"] <= 1
    assert len(rows) == 50, "a curve is thinned"

    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed").Axe()
    for theme, width in (("light", 1200), ("dark", 420)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        assert [(one["id"], one["nodes"][0]["html"]) for one in axe.run(page).response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(media="print")
    assert page.locator(".static").is_visible()
    assert first.is_hidden()
    context.close()
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_without_a_script_the_pictures_stand_there(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".static img").is_visible()
    assert page.locator("table").count() == 2
    context.close()


def test_a_report_has_a_name_that_opens_in_a_browser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "report", "study.toml", str(tmp_path / "report.pdf")]) == 2
    assert "accepted: a name ending in .html" in capsys.readouterr().err
