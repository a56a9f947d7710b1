"""Policies side by side: each with every seed."""

import pytest

from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Uniform
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.studies import observer
from albatross.studies.comparison import compare
from albatross.studies.observer import Observer
from albatross.studies.trials import Trial, run

WORLD = Uniform(n_users=5, n_items=6)


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_stand_in_the_order_of_the_seeds(jobs: int) -> None:
    comparison = compare([ItemMean(), Random()], "small", WORLD, 60, [4, 2, 3], jobs)
    assert list(comparison.results) == [ItemMean(), Random()]
    for policy, results in comparison.results.items():
        alone = [run(Trial(policy, WORLD, 60, seed)) for seed in (4, 2, 3)]
        assert [result.regret.tolist() for result in results] == [result.regret.tolist() for result in alone]
    assert comparison.protocol == "with repeats"


def test_a_policy_cannot_be_compared_with_itself() -> None:
    with pytest.raises(InvalidInput, match="'item-mean shrunk=true' is given twice"):
        compare([ItemMean(shrunk=True), Random(), ItemMean(shrunk=True)], "small", WORLD, 60, [0])


def test_much_memory_is_said_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(observer, "MUCH_MEMORY", 1)
    compare([ItemMean(shrunk=True)], "small", WORLD, 60, [0, 1], jobs=1, observer=Observer(warn=warnings.append))
    (warning,) = warnings
    assert warning.startswith("item-mean shrunk=true takes up to ")
    assert warning.endswith("of memory (5 users, 6 items, 60 steps)")
