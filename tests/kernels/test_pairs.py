"""The table of rated pairs, against a dictionary."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from albatross.core.state import flatten, reserve
from albatross.kernels.compiling import program
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, places, remember

N_USERS = 4
exact = st.integers(-8, 8).map(lambda eighths: eighths / 8)
ratings = st.lists(st.tuples(st.integers(0, N_USERS - 1), st.integers(0, 6), exact), max_size=80)


def chain(pairs: Pairs, user: int) -> dict[int, tuple[int, float]]:
    """The items of a user in their order, with plays and totals."""
    found: dict[int, tuple[int, float]] = {}
    entry = pairs.first[user]
    while entry != NOTHING:
        assert pairs.items[entry] not in found, "one entry per pair"
        found[int(pairs.items[entry])] = (int(pairs.plays[entry]), float(pairs.totals[entry]))
        entry = pairs.following[entry]
    return found


@settings(deadline=None, derandomize=True, max_examples=100)
@given(ratings)
def test_every_pair_is_remembered_once(past: list[tuple[int, int, float]]) -> None:
    pairs = no_pairs(N_USERS)
    expected: list[dict[int, tuple[int, float]]] = [{} for _ in range(N_USERS)]
    for user, item, reward in past:
        pairs = reserve(pairs, 1)
        entry = remember(pairs, user, item, reward)
        plays, total = expected[user].get(item, (0, 0.0))
        expected[user][item] = (plays + 1, total + reward)
        assert pairs.items[entry] == item
        assert pairs.plays[entry] == plays + 1
    chains = [chain(pairs, user) for user in range(N_USERS)]
    assert chains == expected
    assert [list(each) for each in chains] == [list(each) for each in expected], "items stand in the order of their first rating"
    assert pairs.used[0] == sum(map(len, expected)), "a repeated rating takes no room"
    assert pairs.used[1] <= places(int(pairs.used[0])) <= pairs.items.size


def test_entries_of_a_user_are_neighbours() -> None:
    """Users who come by turns: a hundred entries of one of them stand in a few runs, and hardly more places are taken than used."""
    pairs = reserve(no_pairs(50), 5000)
    for item in range(100):
        for user in range(50):
            remember(pairs, user, item, 1.0)
    for user in range(50):
        entries = [int(pairs.first[user])]
        while pairs.following[entries[-1]] != NOTHING:
            entries.append(int(pairs.following[entries[-1]]))
        assert len(entries) == 100
        assert entries == sorted(entries)
        assert (np.diff(entries) > 1).sum() < 20
    assert pairs.used.tolist()[0] == 5000
    assert pairs.used[1] <= 1.25 * 5000
    assert (pairs.plays != 0).sum() == 5000, "places kept free hold nothing"


def test_room_suffices_if_everybody_has_places_kept() -> None:
    """In exactly as many places as are said to be enough; all chains take a new run at about the same time."""
    pairs = no_pairs(30)
    for item in range(40):
        for user in range(30):
            needed = places(int(pairs.used[0]) + 1)
            if needed > pairs.items.size:
                following, items, plays, totals = (np.append(array, np.zeros(needed - array.size, array.dtype)) for array in pairs[1:5])
                pairs = pairs._replace(following=following, items=items, plays=plays, totals=totals)
            remember(pairs, user, item, 1.0)
    assert [len(chain(pairs, user)) for user in range(30)] == [40] * 30


def remember_all(pairs: Pairs, users: NDArray[np.int64], items: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
    for step in range(users.size):
        remember(pairs, users[step], items[step], rewards[step])


def test_interpreted_and_compiled_agree_bit_for_bit() -> None:
    random = np.random.default_rng(0)
    users, items, rewards = random.integers(5, size=200), random.integers(9, size=200), random.standard_normal(200)
    results = []
    for function in (remember_all, program(remember_all)):
        pairs = reserve(no_pairs(5), 200)
        function(pairs, users, items, rewards)
        results.append({name: array.tobytes() for name, array in flatten(pairs)})
    assert results[0] == results[1]
