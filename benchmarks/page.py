"""The page in a real browser: `python -m benchmarks page-map page-million`. Needs chromium and playwright.

A frame takes time in our script, and it appears when the browser is done with it. Both are measured on the clock of the browser: where
other processes want the machine, they say little.
"""

import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Line, Quantity

FRAME = Quantity("a frame of 30/s", 1 / 30)
N_FRAMES = 120
MOST_SECONDS = Quantity("a person's patience", 10.0)

VIEWS = {
    "Live": ("live", "[data-testid=live-reward] canvas", False),
    "User": ("user?user=u7", "[data-testid=user-ellipse]", False),
    "Items": ("items", "[data-testid=items-map] canvas", False),
    "What if": ("whatif?user=u7&item=i7&rating=5", "[data-testid=whatif-after]", False),
    "Log at 500,000": ("log?seq=500000&user=u7", "[data-testid=log-past][data-seq='500000']", True),
    "Log at 500,100, from there": ("log?seq=500100&user=u7", "[data-testid=log-past][data-seq='500100']", False),
}
"""Where each view is, what is there once it is drawn, and whether half of the log is learned anew for it."""

TIMED = """
window.frames = [];
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => ask((at) => {
  const began = performance.now();
  draw(at);
  window.frames.push([at, performance.now() - began]);
});
"""
"""Counts how long whatever draws in a frame takes, and when frames come."""

DRAGGED = """async (count) => {
  const canvas = document.querySelector("[data-testid=items-map] canvas");
  const frame = canvas.getBoundingClientRect();
  const send = (kind, x, y) => canvas.dispatchEvent(
    new PointerEvent(kind, { clientX: frame.left + x, clientY: frame.top + y, pointerId: 1, bubbles: true }),
  );
  canvas.setPointerCapture = () => {};
  send("pointerdown", 200, 200);
  window.frames.length = 0;
  for (let at = 0; at < count; at += 1) {
    send("pointermove", 200 + 60 * Math.sin(at / 9), 200 + 60 * Math.cos(at / 9));
    await new Promise((next) => requestAnimationFrame(next));
  }
  send("pointerup", 200, 200);
  return window.frames;
}"""
"""Drags the map in a circle, once per frame."""


def page_map() -> Iterator[Line]:
    """10,000 items on the map, dragged around."""
    with tempfile.TemporaryDirectory() as folder:
        shop = _imported(Path(folder), n_users=1_000, n_items=10_000, n_ratings=60_000)
        with _served(shop) as (base, browser):
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.add_init_script(TIMED)
            page.goto(f"{base}#/items")
            page.get_by_test_id("items-map").wait_for(timeout=120_000)
            drawn = page.evaluate(DRAGGED, N_FRAMES)
    moments = sorted({at for at, _ in drawn})
    between = [1e-3 * (after - before) for before, after in itertools.pairwise(moments)]
    work = [1e-3 * sum(cost for when, cost in drawn if when == at) for at in moments]
    yield Line.at_most("map of 10,000 items: drawing", Quantity("script", statistics.median(work)), FRAME, 0.5)
    yield Line.at_most("map of 10,000 items: between frames", Quantity("median", statistics.median(between)), FRAME, 1.0)
    yield Line.at_most("map of 10,000 items: between frames", Quantity("95 %", sorted(between)[int(0.95 * len(between))]), FRAME, 1.0)


def page_million() -> Iterator[Line]:
    """A log of 1,000,000 events: how long until each view is there."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        shop = _imported(Path(folder), n_users=20_000, n_items=2_000, n_ratings=1_000_000)
        print(f"importing 1,000,000 ratings took {time.monotonic() - began:.0f} s", file=sys.stderr)
        began = time.monotonic()
        with _served(shop) as (base, browser):
            print(f"the service was ready after {time.monotonic() - began:.1f} s", file=sys.stderr)
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            for name, (address, there, replays) in VIEWS.items():
                page.goto("about:blank")
                began = time.monotonic()
                page.goto(f"{base}#/{address}")
                page.locator(there).first.wait_for(timeout=600_000)
                what, took = f"1,000,000 events: {name}", Quantity("there after", time.monotonic() - began)
                yield Line(what, took, MOST_SECONDS) if replays else Line.at_most(what, took, MOST_SECONDS, 1.0)


def _imported(folder: Path, n_users: int, n_items: int, n_ratings: int) -> Path:
    """A folder of the service that has learned from random ratings, each pair once."""
    random = np.random.default_rng(0)
    tastes, kinds = random.normal(size=(n_users, 3)), random.normal(size=(n_items, 3))
    pairs = random.choice(n_users * n_items, size=n_ratings, replace=False) if n_ratings < n_users * n_items else np.arange(n_ratings)
    users, items = pairs // n_items, pairs % n_items
    users[:n_items], items[:n_items] = np.arange(n_items) % n_users, np.arange(n_items)  # each item at least once
    known = np.unique(np.stack([users, items]), axis=1)
    users, items = random.permutation(known.T).T
    ratings = np.clip(np.round(3 + np.sum(tastes[users] * kinds[items], axis=1) + 0.3 * random.normal(size=users.size)), 1, 5)
    file, shop = folder / "ratings.csv", folder / "shop"
    rows = np.char.add(np.char.add(np.char.add("u", users.astype(str)), np.char.add(",i", items.astype(str))), ",")
    file.write_text("user,item,rating\n" + "\n".join(np.char.add(rows, ratings.astype(int).astype(str))) + "\n")
    subprocess.run([*COMMAND, "import", str(shop), str(file), "--scale", "1..5"], check=True, stdout=subprocess.DEVNULL)
    return shop


COMMAND = (sys.executable, "-c", "import sys; from albatross.cli import main; sys.exit(main())")


@contextmanager
def _served(shop: Path) -> Iterator[tuple[str, Any]]:
    """A server on a folder and a browser, with the address of its page."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("there is no chromium on this machine")
    server = subprocess.Popen(
        [*COMMAND, "serve", str(shop), "--port", "0"], stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert server.stderr is not None
    base = ""
    try:
        for line in server.stderr:
            if found := re.search(r"url=(http://\S+)", line):
                base = f"{found[1]}/"
            if "ready" in line:
                break
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
            )
            yield base, browser
            browser.close()
    finally:
        server.terminate()
        server.communicate()
