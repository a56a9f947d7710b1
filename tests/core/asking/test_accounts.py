"""An account in one call says what the operations of a policy say one by one."""

import numpy as np
import pytest

from albatross.core.agent import Agent
from albatross.core.asking.accounts import MOST_PARTS, Accounts
from albatross.core.asking.beliefs import belief_about, parts_of_mean, widths_of
from albatross.core.policy import Policy
from albatross.kernels.accounting import BRIEF, UNKNOWN
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField

USER = 3


def experienced(policy: Policy) -> Agent:
    agent, random = Agent(policy, 12, 15), np.random.default_rng(0)
    agent.replay(random.integers(12, size=400), random.integers(15, size=400), random.uniform(1.0, 5.0, 400))
    return agent


@pytest.mark.parametrize("policy", [ALB(rank=2, ridge=0.1), MeanField(rank=2)], ids=["alb", "mean-field"])
def test_an_account_is_what_is_said_one_by_one(policy: Policy) -> None:
    agent, items = experienced(policy), np.array([4, 7, 1], np.int32)
    accounts = Accounts()
    account = accounts.of(agent, agent.exploring, USER, True, items.tolist())
    assert accounts.of_each(agent, agent.exploring, [0, USER], True, [[3, 2, 5], items.tolist()])[1] == account
    assert Accounts().reasons(agent, agent.exploring, [0, USER], True, [[3, 2, 5], items.tolist()], 0.0)[1] == account.brief
    belief = belief_about(agent, USER)
    assert belief is not None
    assert np.array_equal(account.center, belief.center)
    assert account.radius[0] == belief.radius[0]
    axes, inverse = np.array(account.axes), np.array(account.inverse)
    assert np.allclose(axes.T @ np.diag(1.0 / inverse) @ axes, belief.covariance)
    assert np.all(np.diff(account.inverse) >= 0.0)
    for place, item in enumerate(items.tolist()):
        widths, found = widths_of(agent, USER, item), parts_of_mean(agent, USER, item)
        assert widths is not None
        assert found is not None
        assert tuple(account.widths[place]) == widths
        apart = accounts.parts_of_mean(agent, agent.exploring, USER, item)
        assert apart is not None
        assert (apart.items.tolist(), apart.parts.tolist()) == (found.items.tolist(), found.parts.tolist())
        assert account.brief[place][BRIEF.rated] == found.items.size
        assert account.brief[place][BRIEF.total] == pytest.approx(found.parts.sum())
        largest = np.argsort(-np.abs(found.parts), kind="stable")[:MOST_PARTS]
        told = account.sizes[2]
        assert told == largest.size
        assert account.largest[place][:told] == found.items[largest].tolist()
        assert account.largest_parts[place][:told] == found.parts[largest].tolist()
        pairs = agent.state.pairs
        own = [entry for entry in range(pairs.used[1]) if pairs.following[entry] != -2 and pairs.items[entry] == item]
        assert account.brief[place][BRIEF.own] in pairs.plays[own]


def test_who_cannot_say_says_so() -> None:
    agent = experienced(ItemMean())
    account = Accounts().of(agent, agent.exploring, USER, True, [0])
    assert account.sizes == [UNKNOWN, UNKNOWN, 0]
    assert Accounts().parts_of_mean(agent, agent.exploring, USER, 0) is None
    assert account.brief[0][BRIEF.own] == UNKNOWN
    assert np.isnan(account.widths).all()
