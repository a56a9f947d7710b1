"""Asking memory ahead changes no result."""

import numpy as np
import pytest

from albatross import Agent
from albatross.kernels.alternating.steps import CACHED_SUMS
from albatross.kernels.asking import ask_for
from albatross.kernels.compiling import program
from albatross.policies.alb import ALB

RANK, N_RATED = 32, 100


@pytest.mark.xdist_group("alb")
def test_sums_too_large_for_a_cache_get_the_same_terms() -> None:
    """The same ratings of the same items, in a small catalogue and in a large one."""
    few, many = (Agent(ALB(rank=RANK), n_users=5, n_items=n_items) for n_items in (N_RATED, 2_500))
    assert few.state.item_grams.size <= CACHED_SUMS < many.state.item_grams.size
    random = np.random.default_rng(0)
    users, items = random.integers(5, size=300), random.integers(N_RATED, size=300)
    rewards = random.standard_normal(300)
    for agent in (few, many):
        agent.replay(users, items, rewards)
    for name in ("item_grams", "item_moments", "item_factors"):
        assert np.array_equal(getattr(few.state, name), getattr(many.state, name)[:N_RATED]), name
    assert np.array_equal(few.state.user_factors, many.state.user_factors)


def ask(table: np.ndarray, row: int, column: int) -> None:
    ask_for(table, row, column)


def test_asking_changes_nothing() -> None:
    table = np.random.default_rng(0).normal(size=(10, 20))
    before = table.copy()
    for run in (ask, program(ask)):
        run(table, 9, 19)
    assert np.array_equal(table, before)
