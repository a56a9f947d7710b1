"""Policies and estimates as text, in the same form in every table, report and verdict."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.studies.statistics import FEWEST, Estimate, mean_over_seeds

NOTHING = "–"
"""Shown where there is no number."""


def label(policy: Policy, shards: int = 1, exchange: int | None = None) -> str:
    """The name of a policy and the parameters that are not the default: `alb ridge=0.01`, or `alb ridge=0.01, 4 shards, exchange=50`."""
    values = policy.parameters()
    unusual = [field.name for field in fields(policy) if field.default is MISSING or values[field.name] != field.default]
    words = " ".join([policy.policy_name(), *(f"{name}={show_value(values[name])}" for name in unusual)])
    interval = "" if exchange is None else f", exchange={exchange}"
    return words if shards == 1 else f"{words}, {shards} shards{interval}"


def show_needs(policy: Policy) -> str:
    """What a policy is given beforehand.

    >>> from albatross.policies.oracle import Oracle
    >>> show_needs(Oracle())
    'the truth'
    """
    return " and ".join(policy.needs) or "nothing"


def show_value(value: Any) -> str:
    """A parameter as typed on a command line."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def show_number(number: Any, digits: int | None = None) -> str:
    """A number with so many decimals; by default one below a thousand and none above. Zero has no sign.

    >>> show_number(-0.3, 0), show_number(999.04), show_number(1234.5678)
    ('0', '999.0', '1,235')
    """
    if digits is None:
        digits = 0 if abs(number) >= 1000 else 1
    return f"{number:z,.{digits}f}"


def show_estimate(estimate: Estimate, digits: int | None = 0) -> str:
    """A mean and its interval together.

    >>> show_estimate(Estimate(*np.array([12.3, 10.2, 14.9])), 1)
    '12.3 [10.2, 14.9]'
    """
    return f"{show_number(estimate.mean, digits)} [{_ends(estimate, ', ', digits)}]"


def show_interval(estimate: Estimate, digits: int | None = None) -> str:
    """An interval for a column of its own.

    >>> show_interval(Estimate(*np.array([12.3, 10.2, 14.9])))
    '10.2 – 14.9'
    """
    return _ends(estimate, " – ", digits)


def interval_heading(n_seeds: int) -> str:
    """The heading of a column of intervals: with few seeds they are t-intervals.

    >>> interval_heading(10), interval_heading(3)
    ('95 % interval', '95 % t-interval')
    """
    return f"95 % {'t-' if n_seeds < FEWEST else ''}interval"


def interval_note(n_seeds: int) -> str:
    """A note about intervals of few seeds; empty if there are enough."""
    return "" if n_seeds >= FEWEST else f"fewer than {FEWEST} seeds: Student's t-intervals, too few for a verdict"


def show_mean(values: ArrayLike, digits: int | None = 0) -> str:
    """The mean over seeds and its interval."""
    return show_estimate(mean_over_seeds(values, stream(0, "bootstrap")), digits)


def _ends(estimate: Estimate, between: str, digits: int | None) -> str:
    """A dash for a single seed, which has no interval."""
    return NOTHING if np.isnan(estimate.low) else between.join(show_number(end, digits) for end in (estimate.low, estimate.high))
