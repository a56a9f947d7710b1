"""Logged ratings as a world, and data sets by name."""

import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from albatross import environments, simulate
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.ratings import RatingTable
from albatross.core.vocabulary import Vocabulary
from albatross.environments.ratings import Ratings
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random

ROWS = [("ann", "heat", 2.0), ("bob", "alien", 3.0), ("ann", "alien", 5.0), ("ann", "diva", 1.0), ("bob", "heat", 4.0)]


def table_of(rows: list[tuple[str, str, float]]) -> RatingTable:
    users, items = Vocabulary(row[0] for row in rows), Vocabulary(row[1] for row in rows)
    return RatingTable(
        np.array([users.number(row[0]) for row in rows], np.int32),
        np.array([items.number(row[1]) for row in rows], np.int32),
        np.array([row[2] for row in rows]),
        users,
        items,
        "films",
    )


def test_users_are_shown_what_they_rated_and_say_what_they_said() -> None:
    table = table_of(ROWS)
    logged = {(user, item): rating for user, item, rating in zip(table.users, table.items, table.ratings, strict=True)}
    recording = simulate(Random(), Ratings(table), horizon=400, seed=0)
    shown = list(zip(recording.users, recording.items, strict=True))
    assert recording.rewards.tolist() == [logged[pair] for pair in shown]
    assert set(shown) == set(logged)
    best = {0: 5.0, 1: 4.0}
    assert recording.regret.tolist() == [best[user] - logged[user, item] for user, item in shown]
    assert np.array_equal(recording.regret, recording.pseudo_regret)


def test_candidates_are_in_the_order_of_their_numbers() -> None:
    world = Ratings(table_of(list(reversed(ROWS)))).world(seed=0)
    for start, length in zip(world.offsets, world.lengths, strict=True):
        assert np.all(np.diff(world.items[start : start + length]) > 0)


def test_the_oracle_regrets_nothing() -> None:
    assert simulate(Oracle(), Ratings(table_of(ROWS)), horizon=50, seed=1).regret.tolist() == [0.0] * 50


def test_without_repeats_every_rating_is_seen_once_and_belongs_to_its_item() -> None:
    table = table_of(ROWS)
    logged = {(user, item): rating for user, item, rating in zip(table.users, table.items, table.ratings, strict=True)}
    for seed in range(5):
        recording = simulate(Random(), Ratings(table, repeats=False), horizon=len(ROWS), seed=seed)
        shown = list(zip(recording.users, recording.items, strict=True))
        assert dict(zip(shown, recording.rewards, strict=True)) == logged
    with pytest.raises(InvalidInput, match="at most 5"):
        simulate(Random(), Ratings(table_of(ROWS), repeats=False), horizon=len(ROWS) + 1, seed=0)


def test_a_life_leaves_the_ratings_as_they_were() -> None:
    environment = Ratings(table_of(ROWS), repeats=False)
    before = deepcopy(environment.world(0))
    for horizon in (1, 3, 5):
        simulate(Random(), environment, horizon, seed=2)
        np.testing.assert_equal(tuple(environment.world(0)), tuple(before))


def test_sent_to_another_process_it_is_the_same_world() -> None:
    environment = Ratings(table_of(ROWS))
    twin = pickle.loads(pickle.dumps(environment))
    assert twin == environment
    assert hash(twin) == hash(environment)
    np.testing.assert_equal(tuple(twin.world(0)), tuple(environment.world(0)))


def test_worlds_differ_where_ratings_or_protocol_do() -> None:
    changed = [*ROWS[:-1], ("bob", "heat", 4.5)]
    worlds = [Ratings(table_of(ROWS)), Ratings(table_of(changed)), Ratings(table_of(ROWS), repeats=False)]
    assert len({repr(sorted(world.parameters().items())) for world in worlds}) == 3
    assert worlds[0] != worlds[1]
    assert worlds[0] != worlds[2]


def test_relevances_are_not_negative() -> None:
    assert Ratings(table_of(ROWS)).shift == Ratings(table_of(ROWS)._replace(scale=(1.0, 5.0))).shift == 0.0
    below = table_of([("ann", "heat", -3.0), ("ann", "alien", 2.0)])
    assert Ratings(below).shift == 3.0
    assert Ratings(below._replace(scale=(-10.0, 10.0))).shift == 10.0


def test_a_user_without_ratings_is_refused() -> None:
    table = table_of(ROWS)
    table.user_names.add("eve")
    with pytest.raises(InvalidInput, match="films: user 'eve' has no rating"):
        Ratings(table)


def file_of(folder: Path) -> str:
    path = folder / "films.csv"
    path.write_text("who,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in ROWS), encoding="utf-8")
    return str(path)


def test_a_file_by_values_and_by_words(tmp_path: Path) -> None:
    by_values = environments.create(file_of(tmp_path), {"user_column": "who", "repeats": False})
    by_words = environments.from_text(file_of(tmp_path), {"user_column": "who", "repeats": "false"})
    assert isinstance(by_values, Ratings)
    assert by_values == by_words
    assert not by_values.repeats
    assert by_values.parameters()["n_ratings"] == len(ROWS)


def test_a_world_by_values_and_by_words() -> None:
    by_words: Environment = environments.from_text("gaussian", {"n_users": "7"})
    assert environments.create("gaussian", {"n_users": 7}) == by_words
    assert by_words.n_users == 7


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("gausian", {}, r"unknown data set 'gausian'\. Did you mean 'gaussian'\?.*bernoulli.*or a file ending in \.csv"),
        ("gaussian", {"n_user": 7}, r"unknown parameter of Gaussian 'n_user'\. Did you mean 'n_users'\?"),
        ("nowhere.csv", {}, r"nowhere\.csv is missing"),
        ("some/where", {}, r"some/where is not a kind of file"),
    ],
)
def test_what_does_not_exist_is_refused(name: str, parameters: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        environments.create(name, parameters)


def test_every_data_set_says_what_it_accepts() -> None:
    assert {"gaussian", "uniform", "bernoulli", environments.FILE} <= set(environments.recipes())
