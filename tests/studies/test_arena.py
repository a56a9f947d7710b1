"""Policies that are watched: the same numbers as those that are not, and pictures that say what they are."""

import time
from typing import Any

import numpy as np
import pytest

from albatross.core.environment import Named
from albatross.core.errors import InvalidInput
from albatross.core.ratings import RatingTable
from albatross.core.streams import stream
from albatross.core.vocabulary import Vocabulary
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Uniform
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.studies.arena import Arena, Picture, run_before_eyes
from albatross.studies.comparison import compare
from albatross.studies.report.comparison import as_json
from albatross.studies.report.series import series_of
from albatross.studies.statistics import paired_difference

WORLD = Uniform(n_users=6, n_items=8, rank=2)
POLICIES = [Random(), ItemMean()]


def arena(horizon: int = 250, n_seeds: int = 5, world: Any = WORLD) -> Arena:
    return Arena(POLICIES, "uniform", world, horizon, range(n_seeds))


def fast() -> float:
    return 1e12


def test_what_is_watched_comes_to_what_is_not() -> None:
    watched = arena()
    pictures: list[Picture] = []
    run_before_eyes(watched, fast, pictures.append)
    ordinary = compare(POLICIES, "uniform", WORLD, 250, range(5), jobs=1)
    told, expected = as_json(watched.comparison()), as_json(ordinary)
    for content in (told, expected):
        for policy in content["policies"]:
            for run in policy["runs"]:
                del run["seconds"]
    assert told == expected
    assert (pictures[0]["done"], pictures[-1]["done"]) == (0, 250)

    last = pictures[-1]
    results = list(ordinary.results.values())
    best = int(np.argmin([np.mean([result.regret[-1] for result in of_policy]) for of_policy in results]))
    assert last["best"] == best
    for policy, of_policy, others in zip(last["policies"], results, reversed(results), strict=True):
        assert last["steps"][1:] == of_policy[0].checkpoints.tolist()
        for quantity in ("regret", "pseudo_regret"):
            series = series_of("", of_policy, quantity)
            for name in ("mean", "low", "high"):
                np.testing.assert_allclose(policy["curves"][quantity][name][1:], getattr(series, name), rtol=1e-5, atol=1e-9)
        if of_policy is not results[best]:
            ours, theirs = ([result.regret for result in each] for each in (of_policy, others))
            difference = paired_difference(ours, theirs, stream(0, "bootstrap"))
            np.testing.assert_allclose(policy["difference"]["low"][1:], difference.low, rtol=1e-5, atol=1e-9)


def test_a_picture_between_two_checkpoints_ends_now() -> None:
    watched = arena(horizon=1_000)
    watched.advance(25)
    assert watched.picture()["steps"] == [0, 10, 20, 25]
    watched.advance(5)
    assert watched.picture()["steps"] == [0, 10, 20, 30]


def test_one_seed_has_no_band() -> None:
    watched = arena(n_seeds=1)
    watched.advance(5)
    assert watched.picture()["policies"][0]["curves"]["regret"]["low"] == [None] * 3


def test_the_ticker_says_who_was_shown_what() -> None:
    people, films = Vocabulary(["ann", "bob"]), Vocabulary(["heat", "alien"])
    table = RatingTable(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([5.0, 2.0, 3.0, 3.0]), people, films, "films.csv")
    watched = arena(horizon=40, n_seeds=2, world=Ratings(table))
    watched.advance(30)
    ticker = watched.picture()["ticker"]
    assert [one["step"] for one in ticker] == list(range(30, 20, -1))
    record = [course.lives[0].public.record for course in watched.courses]
    for one in ticker:
        assert one["user"] in ("ann", "bob")
        for shown, lived in zip(one["shown"], record, strict=True):
            assert shown["item"] == films.name(int(lived.items[one["step"] - 1]))
            assert shown["rating"] == {"ann": {"heat": 5.0, "alien": 2.0}, "bob": {"heat": 3.0, "alien": 3.0}}[one["user"]][shown["item"]]
            assert shown["missed"] == (3.0 if (one["user"], shown["item"]) == ("ann", "alien") else 0.0)


def test_names_survive_a_split_and_stay_where_they_are() -> None:
    people, films = Vocabulary([f"user {number}" for number in range(6)]), Vocabulary(["heat", "alien"])
    users = np.repeat(np.arange(6, dtype=np.int32), 2)
    whole = RatingTable(users, np.tile([0, 1], 6), np.arange(12.0), people, films, "films.csv")
    half = Ratings(whole, split="users")
    assert isinstance(half, Named)
    for user in range(half.n_users):
        first = half.world(0).ratings[2 * user]
        assert half.user_name(user) == f"user {int(first) // 2}"
    assert "user 0" not in str(half.__getstate__())


def test_no_faster_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated clock: a second passes only by sleeping that long."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    run_before_eyes(arena(horizon=100, n_seeds=1), lambda: 10.0, lambda _: None)
    assert now[0] == pytest.approx(10.0, rel=0.1)


def test_a_policy_given_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="given twice"):
        Arena([Random(), Random()], "uniform", WORLD, 10, range(2))
