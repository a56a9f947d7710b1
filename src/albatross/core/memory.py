"""Memory of a policy, estimated before it is allocated."""

import functools
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albatross.core.environment import OtherRatings, Truth
from albatross.core.errors import InvalidInput
from albatross.core.policy import Need, Policy
from albatross.core.state import check_parts, flatten
from albatross.core.streams import stream
from albatross.kernels.pairs import Pairs

RATED_PAIR = 3 * 20
"""Bytes per rated pair: 20, a quarter more for reserved places, and room for the copy while a table grows by two fifths."""

SLATE = 2 * 8
"""Bytes for the score and the mean of an item."""

LARGEST_SIZE = 2**31 - 1
"""Users, items and pairs are numbered with 32 bits."""

TYPICAL_RANK = 16
"""For an estimate: length of the true item vectors, if a policy needs the truth."""

CONTROL_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def footprint(policy: Policy, n_users: int, n_items: int, n_ratings: int = 0) -> int:
    """The maximal bytes of an agent after so many ratings.

    A state consists of arrays whose lengths are products of these numbers, so a few small states determine the size of a large one.

    >>> from albatross.policies.alb import ALB
    >>> footprint(ALB(rank=5), n_users=1_000_000, n_items=100_000, n_ratings=10_000_000) // 10**6
    671
    """
    rates = _rates(policy)
    n_pairs = n_users * n_items
    fixed = rates.constant + rates.per_user * n_users + rates.per_item * n_items + rates.per_pair * n_pairs
    fixed += rates.per_two_users * n_users**2
    return fixed + rates.per_rated * min(n_ratings, n_pairs)


def require_memory(n_bytes: int, subject: str) -> None:
    """Refuse what does not fit."""
    limit = memory_limit()
    if n_bytes > limit:
        raise InvalidInput(
            f"{subject}: would take about {show_bytes(n_bytes)} of memory; accepted: at most {show_bytes(limit)}, all there is"
        )


def check_sizes(policy: Policy, n_users: int, n_items: int, n_ratings: int = 0) -> None:
    """Refuse an agent that does not fit."""
    for name, number in (("n_users", n_users), ("n_items", n_items)):
        if number > LARGEST_SIZE:
            raise InvalidInput(f"{name} is {number}; accepted: at most {LARGEST_SIZE}")
    subject = f"policy {policy.policy_name()!r} for {n_users:,} users and {n_items:,} items"
    require_memory(footprint(policy, n_users, n_items, n_ratings), subject)


@functools.cache
def memory_limit() -> int:
    """The memory of this machine, or the limit of the container."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):  # Windows has no such call: nothing is refused there
        return sys.maxsize
    try:
        return min(total, int(CONTROL_GROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return total


def show_bytes(n_bytes: int) -> str:
    """A size with its unit.

    >>> show_bytes(3_200_000_000), show_bytes(950)
    ('3.2 GB', '950 bytes')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:,} bytes"


class _Rates(NamedTuple):
    """Bytes of a policy: fixed, per user, per item, per user and item, per two users, and per rated pair."""

    constant: int
    per_user: int
    per_item: int
    per_pair: int
    per_two_users: int
    per_rated: int


@functools.cache
def _rates(policy: Policy) -> _Rates:
    try:
        blanks = [_blank(policy, n_users, n_items) for n_users, n_items in ((2, 2), (3, 2), (2, 3), (3, 3), (4, 2))]
    except InvalidInput:  # plain Python, whose size is unknown; or features from a file, for that number of items only
        return _Rates(0, 0, 0, 0, 0, 0)
    told = blanks[0]
    check_parts(policy.policy_name(), "state", told.state if isinstance(told, Told) else told)
    check_parts(policy.policy_name(), "settings", policy.settings(), numbers=True)
    check_parts(policy.policy_name(), "scratch", policy.scratch(2, 2), numbers=True)
    neither, user, item, both, users = map(_bytes_in, blanks)
    per_pair = both - user - item + neither
    per_two_users = (users - 2 * user + neither) // 2
    per_user, per_item = user - neither - 2 * per_pair - 5 * per_two_users, item - neither - 2 * per_pair
    constant = neither - 2 * per_user - 2 * per_item - 4 * per_pair - 4 * per_two_users
    # Space for searching exists only for large catalogues, so scratch is measured at large sizes.
    small, more_items, more_users = (_bytes_in(policy.scratch(*sizes)) for sizes in ((2, 2**16), (2, 2**17), (3, 2**16)))
    room_per_user, room_per_item = more_users - small, -(-(more_items - small) // 2**16)
    constant += max(small - 2 * room_per_user - 2**16 * room_per_item, 0)
    per_rated = RATED_PAIR * _tables_of_pairs(blanks[0])
    return _Rates(constant, per_user + room_per_user, per_item + room_per_item + SLATE, per_pair, per_two_users, per_rated)


def _blank(policy: Policy, n_users: int, n_items: int) -> tuple[Any, ...]:
    """A small state, and the truth if the policy needs it. Ratings of others take little space compared to a state."""
    if not policy.asks():
        return policy.init(n_users, n_items, partial(stream, 0), None)
    everything = np.indices((n_users, n_items), np.int32).reshape(2, -1)
    others = OtherRatings(everything[0], everything[1], everything.sum(axis=0) % 2.0)
    truth = Truth(np.zeros((n_users, n_items)), np.zeros((n_items, TYPICAL_RANK)), others)
    state = policy.init(n_users, n_items, partial(stream, 0), truth)
    return Told(state, truth._replace(ratings=None)) if Need.TRUTH in policy.needs else state


class Told(NamedTuple):
    state: tuple[Any, ...]
    truth: Truth


def _bytes_in(arrays: tuple[Any, ...]) -> int:
    return sum(array.nbytes for _, array in flatten(arrays) if isinstance(array, np.ndarray))


def _tables_of_pairs(state: tuple[Any, ...]) -> int:
    return 1 if isinstance(state, Pairs) else sum(_tables_of_pairs(part) for part in state if isinstance(part, tuple))
