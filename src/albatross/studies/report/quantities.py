"""The columns of a reproduction's tables: regret at some steps, rankings, time."""

from collections.abc import Sequence

import numpy as np

from albatross.studies.showing import NOTHING, show_mean, show_number
from albatross.studies.trials import Result

MOMENTS = (0.2, 0.4, 1.0)
"""Shares of the horizon at which regret is tabulated: 5k, 10k and 25k of 25,000."""


def moments(quantity: str, horizon: int) -> list[str]:
    """A heading per moment.

    >>> moments("regret", 25_000)
    ['regret at 5,000', 'regret at 10,000', 'regret at 25,000']
    """
    return [f"{quantity} at {round(share * horizon):,}" for share in MOMENTS]


def regret_at(results: Sequence[Result], step: float) -> list[float]:
    """Regret per seed."""
    return [result.regret_at(step) for result in results]


def show_regret(results: Sequence[Result], horizon: int) -> list[str]:
    """Regret at each moment."""
    return [show_mean(regret_at(results, share * horizon)) for share in MOMENTS]


def show_ndcg(results: Sequence[Result]) -> str:
    return show_mean([result.ndcg[-1] for result in results], 4) if results[0].ndcg.size else NOTHING


def show_seconds(results: Sequence[Result]) -> str:
    return show_number(np.mean([result.seconds for result in results]), 2)
