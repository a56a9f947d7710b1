"""What the default policy shows to an unknown user, once it has learned from others."""

import os
from pathlib import Path

import numpy as np
import pytest

from albatross.datasets import archive
from albatross.datasets.movielens_100k import MovieLens100K
from albatross.service.api.requests import Recommend
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.tools.importing import import_rows

pytestmark = pytest.mark.xdist_group("mean-field")

ENOUGH = 50
"""So many ratings make the mean of an item worth comparing."""


def test_a_stranger_is_shown_what_people_like(tmp_path: Path) -> None:
    if not os.environ.get("ALBATROSS_DATA") or archive.find(MovieLens100K.archives[0]) is None:
        pytest.skip("MovieLens 100K is not in ALBATROSS_DATA")
    table = MovieLens100K().load()
    counts = np.bincount(table.items, minlength=len(table.item_names))
    means = np.bincount(table.items, table.ratings, len(table.item_names)) / np.maximum(counts, 1)
    liked = np.quantile(means[counts >= ENOUGH], 0.9)
    rows = [[f"u{user}", f"i{item}", f"{rating:g}"] for user, item, rating in zip(table.users, table.items, table.ratings, strict=True)]
    with Engine(tmp_path / "films", Options(scale=(1, 5), floor=0.0, snapshot_every=0)) as engine:
        engine.wait_ready()
        assert engine.genesis.policy == "mean-field"
        imported = import_rows(engine, [(line, list(row)) for line, row in enumerate(rows)], "films")
        assert imported.applied == len(rows)
        shown = [engine.ask(Recommend(f"stranger {number}")).item for number in range(10)]
    for name in shown:
        item = int(name[1:])
        assert means[item] >= liked, f"{name} has {counts[item]} ratings, with mean {means[item]:.2f}; the best tenth begins at {liked:.2f}"
