"""What is done to any state: naming, widening, copying, restoring."""

import io
import operator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.state import copied_into, flatten, identity, reserve, restored
from albatross.kernels.pairs import NOTHING, Pairs, no_pairs, remember


class State(NamedTuple):
    user_factors: NDArray[np.float64]
    item_factors: NDArray[np.float64]
    pairs: Pairs
    updates: NDArray[np.int64]


def blank(n_users: int = 3, n_items: int = 4) -> State:
    users = np.random.default_rng(0).standard_normal((n_users, 2))
    items = np.asfortranarray(np.random.default_rng(1).standard_normal((n_items, 2)))
    return State(users, items, no_pairs(n_users), np.zeros(1, np.int64))


def experienced() -> State:
    state = reserve(blank(), 5)
    for user, item, reward in ((0, 1, 2.0), (2, 3, 1.0), (0, 1, 4.0), (0, 2, 1.0)):
        remember(state.pairs, user, item, reward)
        state.updates[0] += 1
    return state


def test_arrays_have_dotted_names_and_no_unused_ends() -> None:
    arrays = dict(flatten(experienced()))
    assert list(arrays)[:3] == ["user_factors", "item_factors", "pairs.first"]
    assert arrays["pairs.first"].tolist() == [0, -1, 2]
    assert arrays["pairs.following"].tolist() == [1, -1, -1]
    assert arrays["pairs.items"].tolist() == [1, 2, 3]
    assert arrays["pairs.plays"].tolist() == [2, 1, 1]
    assert arrays["pairs.totals"].tolist() == [6.0, 1.0, 1.0]
    assert arrays["pairs.used"].tolist() == [3, 3]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(0, 1000))
def test_where_entries_stand_is_not_learned(seed: int) -> None:
    """Each user's ratings in their order, users by turns, one after the other, and half of them after a restart."""
    random = np.random.default_rng(seed)
    users, items = random.integers(3, size=150), random.integers(40, size=150)
    by_turns, one_by_one, restarted = (reserve(no_pairs(3), 150) for _ in range(3))
    for step in range(150):
        remember(by_turns, users[step], items[step], float(step))
        if step == 75:
            restarted = reserve(restored(no_pairs(3), dict(flatten(restarted))), 75)
        remember(restarted, users[step], items[step], float(step))
    for step in np.argsort(users, kind="stable"):
        remember(one_by_one, users[step], items[step], float(step))
    assert by_turns.items.tolist() != one_by_one.items.tolist()
    assert identity(by_turns) == identity(one_by_one) == identity(restarted)
    assert identity(restored(no_pairs(3), dict(flatten(by_turns)))) == identity(by_turns)
    remember(one_by_one, 0, 50, 1.0)
    assert identity(one_by_one) != identity(by_turns)


def test_room_is_not_learned() -> None:
    state = experienced()
    wider = reserve(state, 1000)
    assert wider.pairs.items.size >= 1253
    assert identity(wider) == identity(state)
    assert reserve(wider, 10) is wider or reserve(wider, 10).pairs is wider.pairs, "where there is room, nothing is copied"


def test_room_grows_so_that_copying_stays_cheap() -> None:
    state, copies = blank(), 0
    for item in range(500):
        before = state.pairs.items
        state = reserve(state, 1)
        copies += state.pairs.items is not before
        remember(state.pairs, 0, item, 1.0)
    assert copies < 12


@pytest.mark.parametrize("name", ["user_factors", "item_factors", "updates", "pairs.items", "pairs.plays", "pairs.totals"])
def test_the_smallest_change_has_another_name(name: str) -> None:
    state = experienced()
    before = identity(state)
    array = operator.attrgetter(name)(state)
    place = (0,) * array.ndim
    array[place] = np.nextafter(array[place], np.inf) if array.dtype.kind == "f" else array[place] + 1
    assert identity(state) != before


@pytest.mark.parametrize("name", ["first", "following"])
def test_a_chain_cut_short_has_another_name(name: str) -> None:
    state = experienced()
    before = identity(state)
    getattr(state.pairs, name)[0] = NOTHING
    assert identity(state) != before


def test_the_name_tells_shapes_and_types_apart() -> None:
    class One(NamedTuple):
        values: NDArray[Any]

    shapes: list[NDArray[Any]] = [np.zeros(4), np.zeros((2, 2)), np.zeros(4, np.int64), np.zeros(8, np.float32), -np.zeros(4)]
    assert len({identity(One(values)) for values in shapes}) == len(shapes)
    assert identity(One(np.arange(6.0).reshape(2, 3))) == identity(One(np.asfortranarray(np.arange(6.0).reshape(2, 3))))


def test_copying_into_a_larger_state_keeps_everything() -> None:
    small = experienced()
    large = copied_into(blank(5, 6), small)
    assert (large.user_factors[:3] == small.user_factors).all()
    assert (large.user_factors[3:] == blank(5, 6).user_factors[3:]).all()
    assert (large.item_factors[:4] == small.item_factors).all()
    assert large.item_factors.flags.f_contiguous
    assert large.updates == small.updates
    assert large.pairs.first.tolist() == [*small.pairs.first.tolist(), -1, -1]
    before, after = dict(flatten(small.pairs)), dict(flatten(large.pairs))
    for name in ("following", "items", "plays", "totals", "used"):
        assert (before[name] == after[name]).all()


def test_restoring_what_was_flattened() -> None:
    state = experienced()
    twin = restored(blank(), dict(flatten(state)))
    assert identity(twin) == identity(state)
    assert twin.item_factors.flags.f_contiguous
    twin.user_factors[:] = 0.0
    assert state.user_factors.any(), "a restored state shares no memory"


def test_fields_of_a_record_are_named_and_come_back_with_their_names() -> None:
    class Told(NamedTuple):
        figures: NDArray[np.record]

    state, other = (Told(np.zeros(1, np.dtype((np.record, [(name, np.float64)])))) for name in ("noise", "share"))
    assert identity(state) != identity(other)
    state.figures[0].noise = 0.5
    with io.BytesIO() as file:
        np.savez(file, allow_pickle=False, **dict(flatten(state)))
        file.seek(0)
        twin = restored(state, dict(np.load(file)))
    assert twin.figures[0].noise == 0.5
    assert identity(twin) == identity(state)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("user_factors", None, r"array 'user_factors' is missing; expected float64\[3, 2\]"),
        ("pairs.items", None, r"array 'pairs.items' is missing"),
        ("item_factors", np.zeros((4, 3)), r"'item_factors' is float64\[4, 3\]; expected float64\[4, 2\]"),
        ("item_factors", np.zeros((4, 2), np.float32), r"'item_factors' is float32\[4, 2\]"),
        ("pairs.first", np.zeros(7, np.int32), r"'pairs.first' is int32\[7\]; expected int32\[3\]"),
        ("pairs.plays", np.zeros(3), r"'pairs.plays' is float64\[3\]"),
    ],
)
def test_a_wrong_array_is_refused_by_name(name: str, value: NDArray[np.float64] | None, message: str) -> None:
    arrays = dict(flatten(experienced()))
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value
    with pytest.raises(InvalidInput, match=message):
        restored(blank(), arrays)
