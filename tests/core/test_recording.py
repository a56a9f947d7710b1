"""A recording as a table."""

import sys

import duckdb
import numpy as np
import pytest

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Uniform
from albatross.metrics.ndcg import NDCG
from albatross.policies.random import Random

pytestmark = pytest.mark.xdist_group("random")

WORLD = Uniform(n_users=4, n_items=5, rank=2)
NAMES = ["step", "user", "item", "reward", "expected", "best", "regret", "pseudo_regret"]


def test_a_row_is_a_step() -> None:
    lived = simulate(Random(), WORLD, 30, seed=0)
    frame = lived.to_frame()
    assert list(frame.columns) == NAMES
    assert frame["step"].tolist() == list(range(1, 31))
    for name, values in (("user", lived.users), ("item", lived.items), ("pseudo_regret", lived.pseudo_regret)):
        np.testing.assert_array_equal(frame[name].to_numpy(), values)


def test_rankings_are_there_where_they_were_measured() -> None:
    lived = simulate(Random(), WORLD, 30, seed=0, ndcg=NDCG())
    assert list(lived.columns()) == [*NAMES, "ndcg", "trivial"]
    np.testing.assert_array_equal(lived.to_frame()["ndcg"].to_numpy(), lived.ndcg)


def test_duckdb_takes_the_columns() -> None:
    lived = simulate(Random(), WORLD, 30, seed=0)
    steps = lived.columns()
    assert len(steps) == 8
    relation = duckdb.sql("SELECT sum(pseudo_regret) FROM steps")
    assert relation is not None
    [(total,)] = relation.fetchall()
    assert total == pytest.approx(lived.pseudo_regret.sum())


def test_without_pandas_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match=r"to_frame needs pandas, which is not installed; accepted: pip install pandas, or columns\(\)"):
        simulate(Random(), WORLD, 5).to_frame()
