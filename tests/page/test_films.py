"""Every view on real ratings, where they are present."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from live import Live

from albatross.datasets import archive
from albatross.datasets.movielens_100k import MovieLens100K
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.tools.importing import import_rows
from page.tab import VIEWS, Tab

pytestmark = pytest.mark.xdist_group("page")

N_RATINGS = 20_000


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A shop that has learned from the first ratings of MovieLens 100K."""
    if not os.environ.get("ALBATROSS_DATA") or archive.find(MovieLens100K.archives[0]) is None:
        pytest.skip("MovieLens 100K is not in ALBATROSS_DATA")
    table = MovieLens100K().load()
    rated = itertools.islice(zip(table.users, table.items, table.ratings, strict=True), N_RATINGS)
    rows = [(line, [f"user {user}", f"item {item}", f"{rating:g}"]) for line, (user, item, rating) in enumerate(rated)]
    folder = tmp_path_factory.mktemp("page") / "films"
    with Engine(folder, Options(scale=(1, 5))) as engine:
        engine.wait_ready()
        assert import_rows(engine, [(line, list(row)) for line, row in rows], "films").applied == len(rows)
    with Live(folder, scale=None) as live:
        yield live


def test_every_view_of_real_ratings(browser: Any, films: Live) -> None:
    asked = films.post("/v1/recommend", {"user": "user 1", "explain": True}).json["decision_id"]
    tab = Tab(browser, films.port)
    for view, drawn in VIEWS.items():
        page = tab.go(view.format(decision=asked))
        page.get_by_test_id(drawn).first.wait_for()
        assert page.get_by_role("alert").count() == 0
    tab.close()
