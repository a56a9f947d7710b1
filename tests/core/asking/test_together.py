"""Choices that are made together are those that are made one by one."""

from hashlib import blake2b

import numpy as np
import pytest

from albatross.core.agent import Agent
from albatross.core.asking.together import NOT_CHOSEN, best_of_slate, choose_supposing, choose_together
from albatross.core.policy import Policy
from albatross.core.streams import Turner
from albatross.kernels.operations import ALL_ITEMS
from albatross.policies.alb import ALB
from albatross.policies.mean_field import MeanField

OFFERED = np.array([9, 3, 4, 0, 12, 7, 1, 14], np.int32)


def experienced(policy: Policy) -> Agent:
    agent, random = Agent(policy, 12, 15), np.random.default_rng(0)
    agent.replay(random.integers(11, size=200), random.integers(15, size=200), random.uniform(1.0, 5.0, 200))
    return agent


@pytest.mark.parametrize("chance_first", [True, False])
@pytest.mark.parametrize("policy", [ALB(rank=2), MeanField(rank=2)], ids=["alb", "mean-field"])
def test_choices_have_the_same_bits(policy: Policy, chance_first: bool) -> None:
    agent, turner, floor = experienced(policy), Turner(), 0.4
    users = [3, 0, 11, 3, 5, 7, 1, 2]
    names = [blake2b(b"%d" % number, digest_size=32).digest() for number in range(len(users))]
    pending = [[], [4], [1, 9, 3], [], [0], [], [13, 2], [5]]
    chosen = choose_together(agent, turner, names, floor, chance_first, users, OFFERED, pending, 3)
    assert 0 < chosen.positions.count(NOT_CHOSEN) < len(users)
    for user, name, waiting, position, score, mean, certainty, best in zip(users, names, pending, *chosen, strict=True):
        random = turner.turn(name)
        by_chance = chance_first and random.random() < floor
        items, expected = np.array(waiting, np.int32), np.full(len(waiting), np.nan)
        alone, likely = choose_supposing(agent, random, user, OFFERED, items, expected, True, ALL_ITEMS)
        if by_chance or (not chance_first and random.random() < floor):
            assert position == NOT_CHOSEN
            continue
        assert (position, certainty) == (alone, likely)
        assert (score, mean) == (agent.slate.scores[alone], agent.slate.means[alone])
        assert best == best_of_slate(agent, random, OFFERED, np.full(3, -1, np.int32))
        order = np.lexsort((np.arange(OFFERED.size), -agent.slate.scores[: OFFERED.size]))[:3]
        assert [line[0] for line in best] == OFFERED[order].tolist()
