"""A simulation on the page while it runs, and its result at the end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from albatross.cli import main
from page.tab import HOSTILE, Tab

pytestmark = pytest.mark.xdist_group("page")

POLICIES = ["--policy", "item-mean", "--policy", "random"]
STEPS = 2_000


COUNT_CHANGES = """() => {
    window.changes = 0;
    const look = new MutationObserver(() => (window.changes += 1));
    look.observe(document.querySelector('[data-testid=arena-done]'), { subtree: true, characterData: true, childList: true });
}"""
"""How often the number of steps on the page changes."""

WATCH = """
import signal, sys
from albatross.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores the key, and all that it starts
sys.exit(main())
"""


class Watched:
    """`albatross watch` in its own process, waiting for its first step."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WATCH, "watch", "--no-browser", "--speed", "0", *POLICIES, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.said: list[str] = []
        self.port = int(self.wait_for(r"http://127\.0\.0\.1:(\d+)/#/arena")[1])

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line of standard error that has it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"it ended without {pattern}: {''.join(self.said)}")

    def ask(self, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", None if body is None else body.encode(), headers)
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def watch() -> Iterator[Callable[..., Watched]]:
    """Begins a watch, and ends it whatever happens."""
    begun: list[Watched] = []

    def begin(*arguments: str) -> Watched:
        begun.append(Watched(*arguments))
        return begun[-1]

    yield begin
    for watched in begun:
        watched.process.kill()
        watched.process.communicate()


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """Ratings by users of items whose names would break a page that made markup of them."""
    lines = [f'"{user}","{item}",{1 + (a + b) % 5}' for a, user in enumerate(quoted(HOSTILE)) for b, item in enumerate(quoted(HOSTILE))]
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def quoted(names: list[str]) -> Iterator[str]:
    return (name.replace('"', '""') for name in names)


def test_the_arena_from_the_first_step_to_the_ordinary_json(
    browser: Any, watch: Callable[..., Watched], names: Path, tmp_path: Path
) -> None:
    arguments = ["--dataset", str(names), "--horizon", str(STEPS), "--seeds", "6"]
    watched = watch(*arguments, "--json", str(tmp_path / "watched.json"), "--figure", str(tmp_path / "watched.svg"))
    tab = Tab(browser, watched.port, reduced_motion="reduce")
    page = tab.go("arena")
    page.get_by_test_id("arena-curves").wait_for()
    assert page.get_by_test_id("arena-phase").inner_text().strip() == "paused"
    assert page.get_by_test_id("arena-done").inner_text().split() == ["0", "of", "2,000"]

    began = time.monotonic()
    page.evaluate(COUNT_CHANGES)
    # By keyboard alone: from the pause button to the slowest speed and on to the next.
    page.get_by_label("100", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_test_id("arena-phase").get_by_text("running").wait_for()
    page.get_by_test_id("arena-ticker").locator("tbody tr").first.wait_for()
    page.get_by_test_id("arena-pause").focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("arena-phase").get_by_text("paused").wait_for()
    status, picture = watched.ask("/v1/arena")
    assert status == 200
    assert 0 < picture["done"] < STEPS

    rows = page.get_by_test_id("arena-ticker").locator("tbody tr")
    assert set(rows.locator(".name").all_text_contents()) <= set(HOSTILE)
    assert page.evaluate("document.querySelectorAll('main img, main script, main svg[onload], main iframe').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_label("fastest").check()
    page.get_by_test_id("arena-phase").get_by_text("done").wait_for()
    assert page.get_by_test_id("arena-done").inner_text().split()[0] == "2,000"
    changes = page.evaluate("window.changes")
    assert changes <= 2 + (time.monotonic() - began) / 2, "who asks for less motion sees a new picture every two seconds, and the last"
    watched.wait_for("All steps are done")
    told = json.loads((tmp_path / "watched.json").read_text())
    standings = page.get_by_test_id("arena-standings").inner_text()
    for policy in told["policies"]:
        mean = sum(run["regret"][-1] for run in policy["runs"]) / 6
        assert f"{mean:,.0f}" in standings

    curves = page.get_by_test_id("arena-curves")
    curves.get_by_role("checkbox", name="random").uncheck()
    assert "random" not in curves.locator(".chart").get_attribute("aria-label")
    curves.get_by_role("radio", name="pseudo-regret").check()
    assert curves.locator(".chart").get_attribute("aria-label").startswith("pseudo-regret over steps of item-mean")
    curves.locator("summary").click()
    curves.locator("tbody tr").nth(100).wait_for()
    assert curves.locator("tbody tr").count() == 101, "nothing at step 0, and a hundred checkpoints"
    with page.expect_download() as download:
        curves.get_by_role("button", name="JSON").click()
    assert json.loads(download.value.path().read_text())[-1]["step"] == STEPS
    for theme, width in (("light", 1200), ("dark", 420)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed").Axe()
        assert [(one["id"], one["nodes"][0]["html"]) for one in axe.run(page).response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()
    assert watched.end() == 0
    assert (tmp_path / "watched.svg").read_text().startswith("<?xml")

    assert main(["run", *POLICIES, *arguments, "--jobs", "1", "--json", str(tmp_path / "run.json")]) == 0
    ordinary = json.loads((tmp_path / "run.json").read_text())
    assert without_times(told) == without_times(ordinary)


def without_times(content: Any) -> Any:
    for policy in content["policies"]:
        for run in policy["runs"]:
            del run["seconds"]
    return content


def test_what_no_page_of_ours_would_ask_is_refused(watch: Callable[..., Watched]) -> None:
    watched = watch("--dataset", "gaussian", "--horizon", "50", "--seeds", "1", "--no-stay")
    assert watched.ask("/v1/arena", Host="shop.example")[0] == 403
    assert watched.ask("/v1/arena/speed", '{"speed": 5}', Origin="http://shop.example")[0] == 403
    assert watched.ask("/v1/version")[0] == 404
    assert watched.ask("/v1/arena/speed")[0] == 405
    for body in ("", "5", '{"speed": -1}', '{"speed": "fast"}', '{"speed": NaN}', '{"pace": 1}', '{"speed": 1e13}'):
        status, problem = watched.ask("/v1/arena/speed", body)
        assert status in (400, 422), body
        assert problem["detail"]
    assert watched.ask("/v1/arena")[1]["done"] == 0, "it still waits"
    assert watched.ask("/v1/arena/speed", '{"speed": null}') == (200, {"speed": None})
    output, _ = watched.process.communicate(timeout=60)
    assert watched.process.returncode == 0
    assert "item-mean" in output


def test_the_interrupt_key_ends_a_watch_that_is_not_done(watch: Callable[..., Watched], tmp_path: Path) -> None:
    watched = watch("--dataset", "gaussian", "--horizon", "50", "--seeds", "1", "--json", str(tmp_path / "out.json"))
    assert watched.end() == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "-1"], "--speed is -1; accepted: steps a second"),
        (["--port", "70000"], "--port is 70000"),
        (["--policy", "item-mean", "--policy", "item-mean"], "given twice"),
        (["--figure", "x.jpg"], "--figure is x.jpg"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_served(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "--dataset", "gaussian", "--no-browser", *arguments]) == 2
    assert message in capsys.readouterr().err
