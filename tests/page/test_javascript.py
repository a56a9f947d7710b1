"""The JavaScript client in a real browser: on the service's own origin, on another that is allowed, and on one that is not."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from live import Live
from losing import Losing

from albatross import Client

pytestmark = pytest.mark.xdist_group("page")

LIFE = (Path(__file__).parents[1] / "service" / "javascript" / "life.mjs").read_text(encoding="utf-8").replace("export ", "")
"""Two functions, `life` and `visit`."""
CALL = """async ([base, url, patience]) => {
  %s
  const albatross = await import(`${base}/albatross.js`);
  return await (%s)(albatross, url, patience);
}"""
ONCE = """async ({ Client }, url, patience) => {
  try { return (await new Client(url, { patience }).recommend("far", { candidates: ["f1"] })).items[0].item; }
  catch (error) { return error.name; }
}"""


def call(page: Any, function: str, base: str, url: str, patience: float = 10) -> Any:
    return page.evaluate(CALL % (LIFE, function), [base, url, patience])


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def site() -> Iterator[str]:
    """Another site: an empty page."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    with site() as origin:
        yield origin


@pytest.fixture(scope="module")
def allowing(foreign: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live(tmp_path_factory.mktemp("javascript") / "shop", "--allow-origin", foreign) as live:
        yield live


def test_every_verb_works_in_a_browser(page: Any, allowing: Live) -> None:
    base = f"http://127.0.0.1:{allowing.port}"
    page.goto(f"{base}/healthz")
    told = call(page, "life", base, base)
    assert told["version"][1] == 3  # ratings: two of ann's, one of eve's; bob's are forgotten
    assert "accepted" not in told["refusals"]
    assert {name for name, _, _ in told["refusals"]} >= {"BadValue", "UnknownDecision", "EventReused", "AlreadyRated", "UnknownUser"}


def test_what_a_browser_got_no_answer_to_counts_once(page: Any, allowing: Live) -> None:
    with Client(f"http://127.0.0.1:{allowing.port}") as watcher, Losing(allowing.port, b"/v1/recommend", b"/v1/feedback") as losing:
        base = f"http://127.0.0.1:{losing.port}"
        page.goto(f"{base}/healthz")
        before = watcher.version()
        told = call(page, "visit", base, base)
        after = watcher.version()
        page.goto("about:blank")
    assert told["duplicate"]
    assert losing.asked.count(b"/v1/feedback") == 2
    assert (after.decisions - before.decisions, after.ratings - before.ratings) == (1, 1)


def test_a_page_of_another_origin_may_ask_where_the_owner_says_so(page: Any, allowing: Live, foreign: str) -> None:
    base = f"http://127.0.0.1:{allowing.port}"
    page.goto(foreign)
    assert call(page, ONCE, base, base) == "f1"
    with site() as stranger:
        page.goto(stranger)
        with pytest.raises(Exception, match="Failed to fetch dynamically imported module"):
            call(page, ONCE, base, base)
        copy = "const albatross = await import(`data:text/javascript,${encodeURIComponent(text)}`);"
        text = allowing.get("/albatross.js").body.decode()
        asked = f"async ([text, url]) => {{ {copy} return await ({ONCE})(albatross, url, 0); }}"
        assert page.evaluate(asked, [text, base]) == "Unreachable"
        page.goto("about:blank")
