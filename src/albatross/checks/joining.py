"""Checks of a policy that can join two users. A policy that cannot passes."""

import numpy as np
from numpy.typing import NDArray

from albatross.checks.worlds import EXACT, STEPS, beginner, statistics_of
from albatross.core.agent import Agent
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.kernels.operations import join, offers

USER, OTHER, STRANGER = 1, 3, 5
"""Two users with ratings, partly of the same items, and one without."""


def _ratings(n_items: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    random = stream(6, "check")
    users, items = random.integers(0, STRANGER, STEPS), random.integers(0, n_items // 2, STEPS)
    users[4:8], items[4:8] = [USER, OTHER, OTHER, USER], [2, 2, 3, 3]  # each of the two is the first to rate one of the items
    return users, items, random.integers(1, 6, STEPS).astype(np.float64)


def _life(policy: Policy, instead: dict[int, int]) -> Agent:
    """An agent that learned the same ratings, with some users replaced."""
    agent = beginner(policy)
    users, items, rewards = _ratings(agent.n_items)
    agent.replay([instead.get(int(user), int(user)) for user in users], items, rewards)
    return agent


def joins_as_if_all_had_come_from_the_one(policy: Policy) -> None:
    """After a join, pairs, counts and sums are as if all ratings had come from one user; also if that user had no ratings."""
    if not offers(beginner(policy).state, join):
        return
    for user in (USER, STRANGER):
        agent, expected = _life(policy, {}), _life(policy, {OTHER: user})
        agent.join(user, OTHER)
        for (name, found), (_, wanted) in zip(statistics_of(policy, agent.state), statistics_of(policy, expected.state), strict=True):
            equal = found.shape == wanted.shape and np.allclose(found, wanted, rtol=EXACT, atol=EXACT)
            assert equal, f"after user {OTHER} was joined with {user}, {name} is not what it would be if all had come from {user}"


def joined_users_go_on(policy: Policy) -> None:
    """After a join, both users can be served and can rate again, many times."""
    if not offers(beginner(policy).state, join):
        return
    agent = _life(policy, {})
    for step in range(STEPS):
        before = agent.state_id
        agent.join(OTHER, STRANGER)
        assert step or agent.state_id == before, "a join with somebody who has rated nothing changes what was learned"
        agent.join(USER, OTHER)
        for user in (USER, OTHER, STRANGER):
            choice = agent.select(user)
            assert np.isfinite(choice.mean), f"user {user} is expected to give {choice.mean} after a join"
            agent.update(user, choice.item, 1.0 + step % 5)
    copy = beginner(policy)
    copy.join(USER, OTHER)  # there are no ratings at all
    assert copy.state_id == beginner(policy).state_id, "a join of two strangers changes what was learned"
