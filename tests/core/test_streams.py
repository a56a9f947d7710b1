"""Random streams named by a seed and a purpose."""

from typing import Any

import numpy as np
import pytest

from albatross.core import streams
from albatross.core.streams import Turner, stream


def test_the_same_name_gives_the_same_draws() -> None:
    assert (stream(3, "arrivals").random(100) == stream(3, "arrivals").random(100)).all()


def test_a_stream_does_not_depend_on_others_being_used() -> None:
    expected = stream(0, "reactions").random(10)
    other = stream(0, "arrivals")
    other.random(1000)
    reactions = stream(0, "reactions")
    other.random(1000)
    assert (reactions.random(10) == expected).all()


def test_seeds_and_purposes_share_no_draws() -> None:
    purposes = ("arrivals", "reactions", "exploring", "learning", "true factors", "item factors", "user factors", "candidates")
    draws = [stream(seed, purpose).random(1000) for seed in range(5) for purpose in purposes]
    assert np.unique(np.concatenate(draws)).size == len(draws) * 1000
    correlations = np.corrcoef(draws)
    assert np.abs(correlations - np.eye(len(draws))).max() < 0.2


def test_a_recording_of_today_can_be_repeated_tomorrow() -> None:
    """NumPy promises the raw bits of a seeded generator for good, so these numbers never change."""
    bits: Any = stream(0, "arrivals").bit_generator
    assert bits.random_raw(2).tolist() == [2351458019443784630, 489214282505872417]


@pytest.mark.parametrize("reachable", [True, False], ids=["in memory", "by the property"])
def test_a_turned_generator_draws_what_numpy_draws_from_there(reachable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not reachable:
        monkeypatch.setattr(streams, "_position_of", lambda _: None)
    turner = Turner()
    names = np.random.default_rng(0).integers(256, size=(20, 32), dtype=np.uint8)
    for name in [*names, np.zeros(32, np.uint8), np.full(32, 255, np.uint8)]:
        there = np.random.PCG64()
        numbers: Any = {"state": int.from_bytes(name[:16].tobytes(), "little"), "inc": int.from_bytes(name[16:].tobytes(), "little") | 1}
        there.state = {"bit_generator": "PCG64", "state": numbers, "has_uint32": 0, "uinteger": 0}
        expected, turned = np.random.Generator(there), turner.turn(name.tobytes())
        turned_and_expected = [(one.random(), one.integers(7, dtype=np.uint32), one.integers(1_700)) for one in (turned, expected)]
        assert turned_and_expected[0] == turned_and_expected[1]
    turner.random.integers(7, dtype=np.uint32)  # half of what was drawn waits for the next draw, and is not of the next stream
    assert turner.turn(bytes(32)).bit_generator.state["has_uint32"] == 0


@pytest.mark.parametrize("reachable", [True, False], ids=["in memory", "by the property"])
def test_a_stream_is_turned_back_to_where_it_stood(reachable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not reachable:
        monkeypatch.setattr(streams, "_position_of", lambda _: None)
    turner = Turner()
    random = turner.turn(bytes(range(32)))
    random.integers(7, dtype=np.uint32)  # half of a draw is left
    then = turner.position()
    drawn = [random.integers(7, dtype=np.uint32), random.random()]
    assert [turner.turn_back(then).integers(7, dtype=np.uint32), random.random()] == drawn
