"""The search of a large catalogue finds what looking at every item finds, whatever has changed meanwhile."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.policy import Policy
from albatross.kernels.compiling import program
from albatross.kernels.operations import ALL_ITEMS, Slate
from albatross.kernels.search import catalogue as catalogues
from albatross.kernels.search.arranging import BLOCK, Catalogue
from albatross.kernels.search.catalogue import best_item, is_large, largest_stretch, moved
from albatross.kernels.search.scoring import best_position, optimistic_scores, scoring_block
from albatross.policies.alb import ALB
from albatross.policies.alb_rs import ALBRS

Array = NDArray[np.float64]


@pytest.fixture(autouse=True, scope="module")
def _search_small_catalogues() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogues, "SEARCHED_FROM", 2)
        yield


class User(NamedTuple):
    center: Array
    whitener: Array
    radius: float


def some_user(random: np.random.Generator, rank: int) -> User:
    """Ellipsoids of every shape: round, needles, and a point."""
    shape = np.exp(random.uniform(-6, 6, rank)) if random.random() < 0.5 else np.ones(rank)
    whitener = np.tril(random.standard_normal((rank, rank))) * shape[:, None]
    return User(random.standard_normal(rank) * random.choice([0.0, 1.0, 100.0]), whitener, float(random.choice([0.0, 0.5, 10.0])))


def some_items(random: np.random.Generator, n_items: int, rank: int, kind: str) -> Array:
    items = random.standard_normal((n_items, rank))
    if kind == "one direction":
        items = 0.2 * items + 1.0
    if kind == "many equal":
        items = np.round(items)
    if kind == "all zero":
        items[:] = 0.0
    if kind == "many scales":
        items *= np.exp(random.uniform(-300, 100, (n_items, 1)))
    return np.asfortranarray(items)


def new_catalogue(n_items: int, rank: int) -> Catalogue:
    catalogue = catalogues.new_catalogue(n_items, rank)
    assert isinstance(catalogue, Catalogue)
    return catalogue


def full_scan(items: Array, user: User) -> tuple[int, float, float]:
    scores, means = np.empty(len(items)), np.empty(len(items))
    program(optimistic_scores)(items, ALL_ITEMS, user.center, user.whitener, user.radius, scoring_block(items.shape[1]), scores, means)
    position = program(best_position)(scores, len(items))
    return position, scores[position], means[position]


def found(catalogue: Catalogue, items: Array, updates: int, user: User, search: Any = best_item) -> tuple[int, float, float]:
    """What a search of the whole catalogue comes to."""
    slate = Slate(np.zeros(len(items)), np.zeros(len(items)), whole=False)
    position = search(catalogue, items, updates, *user, ALL_ITEMS, slate)
    return position, slate.scores[position], slate.means[position]


KINDS = ["Gaussian", "one direction", "many equal", "all zero", "many scales"]


@given(
    seed=st.integers(0, 2**32),
    n_items=st.sampled_from([2, BLOCK - 1, BLOCK, BLOCK + 1, 1000, 5 * BLOCK * 16, 9000]),
    rank=st.sampled_from([2, 5, 16]),
    kind=st.sampled_from(KINDS),
)
@example(seed=0, n_items=9000, rank=5, kind="many equal")
@example(seed=1, n_items=9000, rank=2, kind="many scales")
@settings(max_examples=150, deadline=None)
def test_the_choice_is_that_of_the_full_scan(seed: int, n_items: int, rank: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    items = some_items(random, n_items, rank, kind)
    catalogue = new_catalogue(n_items, rank)
    for updates in range(40):
        user = some_user(random, rank)
        assert found(catalogue, items, updates, user, program(best_item)) == full_scan(items, user)
        item = int(random.integers(min(n_items, 30))) if random.random() < 0.7 else int(random.integers(n_items))
        items[item] = some_items(random, 1, rank, kind)[0] * random.choice([0.0, 1.0, 3.0])
        program(moved)(catalogue, items, updates + 1, item)


def test_interpreted_and_compiled_agree() -> None:
    random = np.random.default_rng(3)
    items = some_items(random, 700, 3, "Gaussian")
    catalogue = new_catalogue(700, 3)
    for updates in range(5):
        user = some_user(random, 3)
        assert found(catalogue, items, updates, user) == full_scan(items, user)
        items[updates] = 2.0
        moved(catalogue, items, updates + 1, updates)


def test_most_of_a_catalogue_is_not_looked_at() -> None:
    """Items that are left out may hold anything: the search does not notice."""
    random = np.random.default_rng(0)
    items = some_items(random, 50_000, 5, "Gaussian")
    user = User(random.standard_normal(5), 0.1 * np.eye(5), 1.0)
    catalogue = new_catalogue(50_000, 5)
    best = found(catalogue, items, 0, user, program(best_item))
    ordinary = np.argsort(np.linalg.norm(items, axis=1))[:25_000]
    for place in catalogue.places[ordinary]:
        catalogue.vectors[place // 16, :, place % 16] = 1e6
    assert found(catalogue, items, 0, user, program(best_item)) == best


def test_full_loose_blocks_and_unknown_changes_arrange_everything_anew() -> None:
    random = np.random.default_rng(1)
    n_items = 3 * BLOCK
    items = some_items(random, n_items, 4, "Gaussian")
    catalogue = new_catalogue(n_items, 4)
    room = catalogue.items.size - n_items
    user = some_user(random, 4)
    found(catalogue, items, 0, user, program(best_item))
    for item in range(n_items):
        items[item] = random.standard_normal(4)
        program(moved)(catalogue, items, item + 1, item)
        assert loose(catalogue) <= room
    assert found(catalogue, items, n_items, user, program(best_item)) == full_scan(items, user)
    items[:] = random.standard_normal(items.shape)
    assert found(catalogue, items, n_items + 7, user, program(best_item)) == full_scan(items, user)
    assert loose(catalogue) == 0


def loose(catalogue: Catalogue) -> int:
    return int(catalogue.current[1])


@pytest.mark.parametrize("rank", [1, 2, 5, 32])
def test_the_stretch_is_an_upper_bound_and_a_close_one(rank: int) -> None:
    random = np.random.default_rng(rank)
    for _ in range(20):
        whitener = some_user(random, rank).whitener
        exact = np.linalg.norm(whitener, 2)
        assert exact <= largest_stretch(whitener, np.zeros((2, rank, rank))) <= 1.1 * exact


@pytest.mark.parametrize("policy", [ALB(rank=3, ridge=0.1), ALBRS(rank=3, ridge=0.1, patience=0.5)], ids=["alb", "alb-rs"])
def test_an_agent_lives_the_same_life_with_and_without_the_search(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    lives = []
    for least in (2, 10**9):
        monkeypatch.setattr(catalogues, "SEARCHED_FROM", least)
        agent = Agent(policy, n_users=5, n_items=1500, seed=1)
        assert is_large(agent.scratch.catalogue) == (least == 2)
        random = np.random.default_rng(2)
        choices = []
        for step in range(120):
            candidates = None if step % 3 else random.permutation(agent.n_items)[: int(random.integers(200, 1500))]
            choice = agent.select(int(random.integers(5)), candidates)
            choices.append(choice)
            user, reward = int(random.integers(5)), float(random.integers(1, 6))
            agent.update(user, choice.item, reward)
            if step % 4 == 0:  # with and without a search in between
                agent.select(user)
            if step % 2 == 0:
                agent.replace(user, choice.item, reward, float(random.integers(1, 6)))
            if step % 5 == 0:
                choices += [best._replace(propensity=1.0) for best in agent.recommend(user, 1 + step, candidates)]
            if step == 60:
                agent.grow(7, 1600)
        lives.append((choices, agent.state_id))
    assert lives[0] == lives[1]
