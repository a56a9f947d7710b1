"""Two users who are one: what is summed over pairs stays what the pairs say, and the table of pairs stays within its arrays."""

import numpy as np
import pytest

from albatross import Agent
from albatross.checks.worlds import experienced
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.core.state import flatten
from albatross.kernels.linear import packed_size
from albatross.policies.random import Random
from albatross.policies.user_ucb import UserUCB

from zoo import POLICIES


def pairs_of(agent: Agent) -> list[tuple[int, int, int, float]]:
    columns = dict(flatten(agent.state.pairs))
    rows = []
    for user, entry in enumerate(columns["first"].tolist()):
        while entry >= 0:
            rows.append((user, *(columns[name][entry].item() for name in ("items", "plays", "totals"))))
            entry = int(columns["following"][entry])
    return rows


@pytest.mark.parametrize("name", ["alb", "mean-field"])
def test_sums_of_items_are_those_of_their_pairs(name: str) -> None:
    agent = experienced(POLICIES[name])
    for user, other in ((1, 2), (1, 3), (4, 1)):
        agent.join(user, other)
    state = agent.state
    if name == "alb":
        grams, moments = np.zeros_like(state.item_grams), np.zeros_like(state.item_moments)
        lower = np.tril_indices(moments.shape[1])
        for user, item, plays, total in pairs_of(agent):
            vector = state.user_factors[user]
            grams[item] += plays * np.outer(vector, vector)[lower]
            moments[item] += total * vector
        assert np.allclose(state.item_grams, grams)
        assert np.allclose(state.item_moments, moments)
        return
    sums, figures = np.zeros_like(state.item_sums), state.figures[0]
    rights, one = np.zeros_like(state.item_rights), packed_size(state.item_rights.shape[1] - 1)
    for user, item, plays, total in pairs_of(agent):
        weight = plays / (figures.share * plays + 1.0 - figures.share)
        sums[item] += weight * state.user_moments[user]
        rights[item] += weight * (total / plays - figures.origin) * state.user_moments[user][one : one + rights.shape[1]]
    assert np.allclose(state.item_sums, sums)
    assert np.allclose(state.item_rights, rights)
    met = state.users[: state.counts[0].users]
    assert sorted(met.tolist()) == sorted({user for user, _, _, _ in pairs_of(agent)})
    assert np.isclose(figures.residual, state.residuals.sum())


def test_a_table_of_pairs_never_grows_out_of_its_arrays() -> None:
    """Visitors arrive, rate items that others rated too, and are joined: unusable places are counted, and reclaimed from time to time."""
    agent, random = Agent(UserUCB(), n_users=12, n_items=300), np.random.default_rng(0)
    expected = np.zeros((12, 300))
    for _ in range(150):
        user, other = (int(number) for number in random.choice(12, 2, replace=False))
        items = random.integers(0, 300, 20)
        users = random.choice([user, other], 20)
        agent.replay(users, items, np.ones(20))
        np.add.at(expected, (users, items), 1.0)
        pairs = agent.state.pairs
        assert pairs.used[1] <= pairs.items.size
        agent.join(user, other)
        expected[user] += expected[other]
        expected[other] = 0.0
    found = np.zeros_like(expected)
    for user, item, plays, total in pairs_of(agent):
        assert plays == total
        found[user, item] = total
    assert np.array_equal(found, expected)
    assert agent.state.pairs.used[0] == np.count_nonzero(found)
    assert agent.state.pairs.items.size < 4 * agent.state.pairs.used[0]


@pytest.mark.parametrize(
    ("policy", "user", "other", "said"),
    [
        (Random(), 0, 1, "'random' cannot let two users be one; accepted: one with the operation `join`"),
        (UserUCB(), 1, 1, "user and other are both 1; accepted: two users"),
        (UserUCB(), 0, 2, "other is 2; accepted: a whole number from 0 to 1"),
    ],
)
def test_what_cannot_be_joined_is_refused(policy: Policy, user: int, other: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Agent(policy, n_users=2, n_items=2).join(user, other)
