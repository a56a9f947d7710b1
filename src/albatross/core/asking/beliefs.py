"""What an agent believes, if its policy can tell: about a user, and about an item for a user."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.kernels.building.keeping import parts_of
from albatross.kernels.operations import Belief, Items, attribute, believe, offers, width

USUAL_LENGTH = 8
"""Space for a belief while its length is unknown."""


class Widths(NamedTuple):
    """How uncertain the expected reward of an item is."""

    now: float
    after: float
    """After one more rating of it."""


def describe_user(mind: Any, drawing: Any, user: int, belief: Belief) -> int:
    state, settings, scratch, _ = parts_of(mind)
    return believe(state, settings, scratch, user, belief)


def measure_width(mind: Any, drawing: Any, user: int, item: int, more: int) -> float:
    state, settings, scratch, _ = parts_of(mind)
    return width(state, settings, scratch, user, item, more)


def divide_mean(mind: Any, drawing: Any, user: int, item: int, items: Items, parts: NDArray[np.float64]) -> int:
    state, settings, scratch, _ = parts_of(mind)
    return attribute(state, settings, scratch, user, item, items, parts)


class Parts(NamedTuple):
    """The contribution of each item a user has rated to the predicted reward of another."""

    items: Items
    parts: NDArray[np.float64]


def parts_of_mean(agent: Agent, user: int, item: int) -> Parts | None:
    """The contributions of the user's own ratings to the predicted reward of an item; None if the policy cannot tell.

    >>> from albatross.policies.alb import ALB
    >>> agent = Agent(ALB(rank=2), n_users=3, n_items=4)
    >>> agent.replay([0, 0], [1, 2], [4.0, 2.0])
    >>> parts = parts_of_mean(agent, user=0, item=3)
    >>> parts.items.tolist(), bool(np.isclose(parts.parts.sum(), agent.select(0, [3]).mean))
    ([1, 2], True)
    """
    if not offers(agent.state, attribute):
        return None
    room = USUAL_LENGTH
    while True:
        found = Parts(np.zeros(room, np.int32), np.zeros(room))
        needed = agent.run(divide_mean, agent.exploring, user, item, *found)
        if needed <= room:
            return Parts(found.items[:needed], found.parts[:needed])
        room = needed


def belief_about(agent: Agent, user: int) -> Belief | None:
    """The confidence region of the user's vector; None if the policy cannot tell.

    >>> from albatross.policies.alb import ALB
    >>> agent = Agent(ALB(rank=2), n_users=3, n_items=4)
    >>> belief_about(agent, user=0).center.tolist()
    [0.0, 0.0]
    """
    if not offers(agent.state, believe):
        return None
    length = USUAL_LENGTH
    while True:
        belief = Belief(np.zeros(length), np.zeros((length, length)), np.zeros(1))
        needed = agent.run(describe_user, agent.exploring, user, belief)
        if needed <= length:
            return Belief(belief.center[:needed], belief.covariance[:needed, :needed], belief.radius)
        length = needed


def widths_of(agent: Agent, user: int, item: int) -> Widths | None:
    """The uncertainty of the predicted reward of an item for this user, now and after one more rating; None if the policy cannot tell.

    >>> from albatross.policies.alb import ALB
    >>> agent = Agent(ALB(rank=2), n_users=3, n_items=4)
    >>> now, after = widths_of(agent, user=0, item=1)
    >>> after < now
    True
    """
    if not offers(agent.state, width):
        return None
    now, after = (float(agent.run(measure_width, agent.exploring, user, item, more)) for more in (0, 1))
    return Widths(now, after) if np.isfinite(after) else None
