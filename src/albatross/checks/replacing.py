"""Checks of a policy that can replace a rating. A policy that cannot passes."""

import numpy as np
from numpy.typing import NDArray

from albatross.checks.worlds import EXACT, STEPS, beginner, statistics_of
from albatross.core.agent import Agent
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.kernels.operations import offers, replace

REPLACED = (0, 7, STEPS - 1)
"""Steps whose ratings are replaced: the first, one in between, the last."""


def _life(policy: Policy, rewards: NDArray[np.float64]) -> tuple[Agent, NDArray[np.int64], NDArray[np.int64]]:
    """An agent that learned these ratings, of pairs that do not depend on its choices; some pairs come twice."""
    agent, random = beginner(policy), stream(4, "check")
    users, items = random.integers(0, agent.n_users // 2, rewards.size), random.integers(0, agent.n_items // 2, rewards.size)
    users[8], items[8] = users[7], items[7]
    agent.replay(users, items, rewards)
    return agent, users, items


def replaces_as_if_only_the_last_had_come(policy: Policy) -> None:
    """After a rating is replaced, pairs, counts and sums are those of a history with the new rating only."""
    last = stream(5, "check").integers(1, 6, STEPS).astype(np.float64)
    first = last.copy()
    first[list(REPLACED)] = 6.0 - first[list(REPLACED)] + 0.5
    if not offers(beginner(policy).state, replace):
        return
    agent, users, items = _life(policy, first)
    for step in REPLACED:
        agent.replace(int(users[step]), int(items[step]), float(first[step]), float(last[step]))
    expected, _, _ = _life(policy, last)
    compared = 0
    for (name, found), (_, wanted) in zip(statistics_of(policy, agent.state), statistics_of(policy, expected.state), strict=True):
        compared += 1
        assert np.allclose(found, wanted, rtol=EXACT, atol=EXACT), f"{name} is not what it would be if only the last rating had come"
    assert compared, "nothing is known to be kept of the ratings: the class declares `statistics`, names of counts and sums in its state"


def replaces_for_the_next_decision(policy: Policy) -> None:
    """A better replacement raises the mean of the item, at once."""
    rewards = np.full(STEPS, 3.0)
    rewards[::2] = 2.0
    means = []
    if not offers(beginner(policy).state, replace):
        return
    for after in (1.0, 5.0):
        agent, users, items = _life(policy, rewards)
        user, item = int(users[STEPS - 1]), int(items[STEPS - 1])
        agent.select(user)  # results computed for the user must not be reused
        agent.replace(user, item, float(rewards[STEPS - 1]), after)
        means.append(agent.select(user, [item]).mean)
    assert means[0] < means[1], f"replaced by 1, {means[0]} is expected of the item; replaced by 5, {means[1]}"
