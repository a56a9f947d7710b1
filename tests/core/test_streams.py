"""Random streams named by a seed and a purpose."""

from typing import Any

import numpy as np

from albatross.core.streams import stream


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
