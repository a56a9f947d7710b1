"""A policy in plain Python meets the public that compiled policies meet, and bad ones are told what is wrong."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent, plain, simulate
from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import as_policy, recipe
from albatross.core.parameters import parameter
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Bernoulli, Gaussian, Uniform
from albatross.metrics.ndcg import NDCG
from albatross.policies.random import Random
from albatross.simulation.public import CHUNK

pytestmark = pytest.mark.xdist_group("random")

Items = NDArray[np.int64]

FIELDS = ("users", "items", "rewards", "expected", "best", "ndcg", "trivial")
OFFERS = {
    "all": {},
    "subset": {"candidates": 5},
    "fresh": {"candidates": 5, "fresh": True},
    "once": {"repeats": False},
    "subset once": {"candidates": 5, "repeats": False},
}
SMALL = Uniform(n_users=6, n_items=8, rank=2)


class Anything:
    """What the policy `random` does, in plain Python."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def select(self, user: int, candidates: Items) -> int:
        self.drawn = self.random.random(len(candidates))
        return int(candidates[self.drawn.argmax()])

    def scores(self, user: int, candidates: Items) -> NDArray[np.float64]:
        return self.drawn

    def update(self, user: int, item: int, reward: float) -> None:
        pass


class First:
    """Shows the first candidate but so many, and remembers what it was told."""

    def __init__(self, skip: int = 0) -> None:
        self.skip = skip
        self.seen: list[tuple[int, int, float]] = []

    def select(self, user: int, candidates: Items) -> int:
        return int(candidates[self.skip % len(candidates)])

    def update(self, user: int, item: int, reward: float) -> None:
        assert (type(user), type(item), type(reward)) == (int, int, float)
        self.seen.append((user, item, reward))


def assert_same_life(first: Any, second: Any) -> None:
    for name in FIELDS:
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name


@pytest.mark.parametrize("offers", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize("kind", [Gaussian, Uniform, Bernoulli])
def test_the_same_choices_give_the_same_life_bit_for_bit(kind: type, offers: dict[str, Any]) -> None:
    world = kind(n_users=12, n_items=15, rank=3, **offers)
    ndcg = None if math.isnan(world.shift) else NDCG()
    assert_same_life(*(simulate(policy, world, 60, seed=3, ndcg=ndcg) for policy in (Anything, Random())))


def test_the_public_goes_on_after_the_first_chunk() -> None:
    world = Gaussian(n_users=5, n_items=4, rank=2, candidates=3, fresh=True)
    assert_same_life(*(simulate(policy, world, CHUNK + 50, seed=1) for policy in (Anything, Random())))


@pytest.mark.parametrize("repeats", [True, False])
def test_logged_ratings_are_the_same_public(example: Ratings, repeats: bool) -> None:
    example.repeats = repeats
    first, second = (simulate(policy, example, 6, seed=0, ndcg=NDCG()) for policy in (Anything, Random()))
    assert_same_life(first, second)


@pytest.fixture
def example(tmp_path: Any) -> Ratings:
    from albatross.environments import from_file

    file = tmp_path / "ratings.csv"
    file.write_text("reader,book,stars\nann,emma,5\nann,ulysses,2\nbob,emma,3\nbob,dune,4\nbob,ulysses,1\ncleo,dune,2\n")
    return from_file(file, user_column="reader", item_column="book", rating_column="stars")


def test_it_learns_what_is_recorded() -> None:
    made = []

    def remembered() -> First:
        made.append(First())
        return made[-1]

    lived = simulate(remembered, SMALL, 50, seed=2)
    (player,) = made
    assert player.seen == list(zip(lived.users.tolist(), lived.items.tolist(), lived.rewards.tolist(), strict=True))
    assert not lived.items.any()
    assert lived.policy.policy_name().endswith("remembered")
    assert lived.counters == {}
    assert lived.seconds > 0


def test_a_maker_is_given_what_it_asks_for() -> None:
    given: dict[str, Any] = {}

    def watched(n_users: int, random: np.random.Generator, n_items: int, skip: int = 1) -> First:
        given.update(n_users=n_users, n_items=n_items, draw=random.random(), skip=skip)
        return First(skip)

    lives = [simulate(plain(watched, skip=2), SMALL, 5, seed=seed) for seed in (0, 1)]
    assert (given["n_users"], given["n_items"], given["skip"]) == (6, 8, 2)
    first = given["draw"]
    simulate(plain(watched, skip=2), SMALL, 5, seed=0)
    assert given["draw"] != first, "each seed has its own stream"
    assert lives[0].state_id != lives[1].state_id
    assert lives[0].policy == plain(watched, skip=2) != plain(watched)


def test_a_policy_may_do_what_it_likes_with_its_candidates() -> None:
    class Vandal(First):
        def select(self, user: int, candidates: Items) -> int:
            chosen = int(candidates[0])
            candidates[:] = -1
            return chosen

    world = Uniform(n_users=6, n_items=8, rank=2, candidates=3)
    assert_same_life(simulate(Vandal, world, 40, seed=0), simulate(First, world, 40, seed=0))


def test_progress_adds_up() -> None:
    told: list[int] = []
    simulate(First, SMALL, 150, seed=0, progress=told.append)
    assert sum(told) == 150
    assert len(told) > 2


def test_it_can_be_interrupted() -> None:
    class Interrupted(First):
        def select(self, user: int, candidates: Items) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(Interrupted, SMALL, 10)


@pytest.mark.parametrize("chosen", [8, -1, 2.0, None, "3"])
def test_what_is_no_candidate_is_refused(chosen: Any) -> None:
    class Wrong(First):
        def select(self, user: int, candidates: Items) -> int:
            return chosen  # type: ignore[no-any-return]

    with pytest.raises(InvalidInput, match=r"Wrong: select chose .* at step 0; accepted: a whole number, one of the 8 candidates"):
        simulate(Wrong, SMALL, 10)


@pytest.mark.parametrize(("scores", "given"), [([1.0], "of shape"), ([math.nan] * 8, "not a number")])
def test_scores_that_rank_nothing_are_refused(scores: list[float], given: str) -> None:
    class Unranked(First):
        def scores(self, user: int, candidates: Items) -> list[float]:
            return scores

    with pytest.raises(InvalidInput, match=given):
        simulate(Unranked, SMALL, 10, ndcg=NDCG())


def test_ndcg_needs_scores() -> None:
    with pytest.raises(InvalidInput, match="First, which has no method scores"):
        simulate(First, SMALL, 10, ndcg=NDCG())


def test_parameters_are_checked_and_read_from_text() -> None:
    @dataclasses.dataclass
    class Bounded:
        random: np.random.Generator
        epsilon: float = parameter(0.1, "how often anything is shown", at_least=0, at_most=1)
        name: str | None = None

        select, update = First.select, First.update

    assert plain(Bounded, epsilon=1).parameters() == {"epsilon": 1.0, "name": None}
    assert recipe(Bounded).from_text({"epsilon": "0.5", "name": "x"}) == plain(Bounded, epsilon=0.5, name="x")
    with pytest.raises(InvalidInput, match=r"epsilon is 2\.0; accepted: a number, at least 0, at most 1"):
        plain(Bounded, epsilon=2)
    with pytest.raises(InvalidInput, match="epsilon is 'much'"):
        recipe(Bounded).from_text({"epsilon": "much"})
    with pytest.raises(InvalidInput, match="unknown parameter of Bounded 'epsilom'"):
        recipe(Bounded).from_text({"epsilom": "1"})


def with_table(table: list[int], skip: int = 0) -> First:
    return First(skip)


def with_settings(settings: int = 0) -> First:
    return First(settings)


def without_type(skip) -> First:  # type: ignore[no-untyped-def]
    return First(skip)


@pytest.mark.parametrize("maker", [with_table, with_settings, without_type])
def test_parameters_that_no_study_could_name_are_refused(maker: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInput, match=f"{maker.__name__}: parameter .* accepted"):
        simulate(maker, SMALL, 10)


@pytest.mark.parametrize("given", [3, "First", First(), None, dict])
def test_what_is_no_policy_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"policy is .*; accepted: a class with select and update, or a function"):
        as_policy(given)


def test_a_function_must_make_a_policy() -> None:
    def nothing() -> dict[str, int]:
        return {}

    with pytest.raises(InvalidInput, match="nothing made dict, which has no select or no update"):
        simulate(nothing, SMALL, 10)  # type: ignore[arg-type]


def test_a_class_of_a_compiled_policy_stands_for_its_defaults() -> None:
    assert as_policy(Random) == Random()


def test_an_agent_needs_a_compiled_policy() -> None:
    with pytest.raises(InvalidInput, match=r"First' is plain Python.*; accepted here: a compiled policy"):
        Agent(plain(First), n_users=2, n_items=2)
