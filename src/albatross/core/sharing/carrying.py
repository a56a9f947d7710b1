"""A user moves from one shard to another: their own rows go as bytes, and sums over users change on both shards.

`leave` subtracts the user's part on one shard, `arrive` adds it on the other. After the next exchange, all sums are what they were.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.errors import InvalidInput
from albatross.core.policy import Division
from albatross.core.sharing.arrays import read_arrays, write_arrays
from albatross.core.sharing.exchange import part
from albatross.kernels.building.keeping import parts_of
from albatross.kernels.carrying import append_pairs
from albatross.kernels.compiling import program
from albatross.kernels.operations import carry, offers
from albatross.kernels.pairs import NOTHING, Pairs, places


def move(mind: Any, drawing: Any, user: int, arriving: bool, room: NDArray[np.int32]) -> None:
    state, settings, scratch, _ = parts_of(mind)
    carry(state, settings, scratch, user, arriving, room, parts_of(drawing).random)


def check_carries(agent: Agent) -> None:
    """Refuse a policy whose users cannot move."""
    if not offers(agent.state, carry):
        raise InvalidInput(
            f"policy {agent.policy.policy_name()!r} cannot move a user to another shard; "
            "accepted: one with the operation `carry`, such as alb"
        )


def rows_of(agent: Agent, user: int) -> bytes:
    """The own rows of a user, and their pairs. Changes nothing."""
    arrays: list[NDArray[Any]] = []
    for value in _own(agent):
        if isinstance(value, Pairs):
            entries = _chain(value, user)
            arrays += [value.items[entries], value.plays[entries], value.totals[entries]]
        else:
            arrays.append(np.ascontiguousarray(value[user : user + 1]))
    return write_arrays(arrays)


def leave(agent: Agent, user: int) -> None:
    """The user moves away: from here on, this shard has no ratings of theirs."""
    check_carries(agent)
    agent.run(move, agent.learning, user, False, np.empty((2, agent.n_items), np.int32))
    left = 0
    for value in _own(agent):
        if isinstance(value, Pairs):
            count = _chain(value, user).size
            value.used[0] -= count
            value.first[user] = NOTHING
            left = max(left, places(count))
    agent.leave_places(left)


def arrive(agent: Agent, user: int, content: bytes) -> None:
    """The user, who has no ratings here, gets the rows that `rows_of` gave on another shard. Raises `InvalidInput` if they do not fit."""
    check_carries(agent)
    arrays = read_arrays(content)
    own = _own(agent)
    expected = sum(3 if isinstance(value, Pairs) else 1 for value in own)
    if len(arrays) != expected:
        raise InvalidInput(f"a user of {len(arrays)} arrays; accepted: {expected}, those of the same policy")
    agent.make_places(max((array.size for array in arrays), default=0))
    waiting = iter(arrays)
    for value in _own(agent):
        if isinstance(value, Pairs):
            program(append_pairs)(value, user, next(waiting), next(waiting), next(waiting))
            continue
        row = next(waiting)
        if row.shape[1:] != value.shape[1:] or row.dtype != value.dtype:
            raise InvalidInput(f"a row of {row.dtype}{list(row.shape[1:])}; accepted: {value.dtype}{list(value.shape[1:])}")
        value[user] = row[0]
    agent.run(move, agent.learning, user, True, np.empty((2, agent.n_items), np.int32))


def _own(agent: Agent) -> list[Any]:
    """The tables of pairs, and the arrays with a row per user."""
    return [part(agent.state, name) for name in (agent.policy.division or Division()).rows]


def _chain(pairs: Pairs, user: int) -> NDArray[np.int64]:
    entries, entry = [], int(pairs.first[user])
    while entry != NOTHING:
        entries.append(entry)
        entry = int(pairs.following[entry])
    return np.array(entries, np.int64)
