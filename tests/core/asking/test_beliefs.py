"""What policies say they believe agrees with what they do."""

import numpy as np
import pytest

from albatross.core.agent import Agent
from albatross.core.asking.beliefs import belief_about, parts_of_mean, widths_of
from albatross.core.asking.together import choose_supposing
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.environments.synthetic import Gaussian
from albatross.environments.telling import told
from albatross.kernels.operations import ALL_ITEMS
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.policies.oful import OFUL
from albatross.policies.pts import PTS

WORLD = Gaussian(n_users=12, n_items=15, rank=2)
USER = 3


def experienced(policy: Policy, ratings: int = 1500) -> Agent:
    world = WORLD.world(0)
    agent = Agent(policy, WORLD.n_users, WORLD.n_items, seed=0, truth=told(policy, WORLD, 0, world))
    random = stream(0, "ratings")
    users, items = random.integers(WORLD.n_users, size=ratings), random.integers(WORLD.n_items, size=ratings)
    means = (world.user_factors[users] * world.item_factors[items]).sum(axis=1)
    agent.replay(users, items, means + 0.5 * random.standard_normal(ratings))
    return agent


def means_supposing(agent: Agent, items: list[int], rewards: list[float]) -> np.ndarray:
    choose_supposing(agent, stream(0, "drawing"), USER, ALL_ITEMS, np.array(items, np.int32), np.array(rewards), True, ALL_ITEMS)
    return agent.slate.means.copy()


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        pytest.param(MeanField(rank=2), 0.02, id="mean-field", marks=pytest.mark.xdist_group("mean-field")),
        pytest.param(OFUL(), 0.02, id="oful", marks=pytest.mark.xdist_group("oful")),
        pytest.param(PTS(n_particles=10, rank=2), 0.1, id="pts", marks=pytest.mark.xdist_group("pts")),  # its particles are drawn again
    ],
)
def test_one_more_rating_narrows_the_width_by_what_was_said(policy: Policy, error: float) -> None:
    """Done, not supposed: a rating just as expected, so that nothing else moves much."""
    agent = experienced(policy)
    choice = agent.select(USER)
    widths = widths_of(agent, USER, choice.item)
    assert widths is not None
    agent.update(USER, choice.item, choice.mean)
    done = widths_of(agent, USER, choice.item)
    assert done is not None
    assert done.now < widths.now
    assert done.now == pytest.approx(widths.after, rel=error)


def test_the_width_of_an_optimist_is_its_bonus() -> None:
    agent = experienced(ALB(rank=2, ridge=0.1))
    for choice in agent.recommend(USER, 5):
        widths = widths_of(agent, USER, choice.item)
        assert widths is not None
        assert widths.now == pytest.approx(choice.bonus)


def test_a_told_rating_is_the_rating_itself() -> None:
    """OFUL's items stay where they are, so supposing a rating is learning it."""
    agent = experienced(OFUL(), ratings=100)
    supposed = means_supposing(agent, [4, 7], [3.0, -2.0])
    agent.replay([USER, USER], [4, 7], [3.0, -2.0])
    assert np.allclose(supposed, means_supposing(agent, [], []))


def test_the_center_of_a_belief_gives_the_means() -> None:
    agent = experienced(OFUL())
    belief = belief_about(agent, USER)
    assert belief is not None
    assert np.allclose(agent.state.item_factors @ belief.center, means_supposing(agent, [], []))


def test_the_center_and_the_offset_of_mean_field_give_the_means() -> None:
    """Without memory, which knows more of a pair than the vectors do."""
    agent = experienced(MeanField(rank=2, memory=False))
    belief = belief_about(agent, USER)
    assert belief is not None
    means = agent.state.item_moments[:, 3:5]  # packed row by row: the third row holds the means of the two factors
    offsets = agent.state.item_moments[:, -2]
    expected = agent.state.figures[0]["origin"] + means @ belief.center[:2] + belief.center[2] + offsets
    assert np.allclose(expected, means_supposing(agent, [], []))


def test_a_policy_that_says_nothing_of_itself_is_not_asked() -> None:
    agent = experienced(ItemMean())
    assert belief_about(agent, USER) is None
    assert widths_of(agent, USER, 0) is None


@pytest.mark.parametrize("policy", [ALB(), MeanField(), MeanField(memory=False)], ids=["alb", "mean-field", "without memory"])
def test_what_ratings_add_sums_to_the_mean(policy: Policy) -> None:
    """With what is expected of a stranger, but for the share of the mean that memory of the pair itself takes."""
    agent = experienced(policy, 100)
    agent.grow(agent.n_users + 1, agent.n_items)
    stranger = {choice.item: choice.mean for choice in agent.recommend(agent.n_users - 1, agent.n_items)}
    unrated = 0
    for choice in agent.recommend(USER, agent.n_items):
        found = parts_of_mean(agent, USER, choice.item)
        assert found is not None
        if choice.item not in found.items:
            unrated += 1
            assert found.parts.sum() + stranger[choice.item] == pytest.approx(choice.mean)
        elif isinstance(policy, ALB):
            assert found.parts.sum() == pytest.approx(choice.mean)
    assert unrated > 0


@pytest.mark.parametrize("policy", [ALB(), MeanField()], ids=["alb", "mean-field"])
def test_a_part_is_linear_in_its_rating(policy: Policy) -> None:
    """With the ratings of one item 1 higher, the mean moves by what its part moves, and the other parts stay."""
    agent = experienced(policy, 100)
    before = parts_of_mean(agent, USER, 0)
    assert before is not None
    entry = int(agent.state.pairs.first[USER])
    item, plays = int(agent.state.pairs.items[entry]), int(agent.state.pairs.plays[entry])
    mean = {choice.item: choice.mean for choice in agent.recommend(USER, agent.n_items)}[0]
    agent.state.pairs.totals[entry] += plays  # as if each of these ratings had been 1 higher
    agent = agent.apart()
    after = parts_of_mean(agent, USER, 0)
    moved = {choice.item: choice.mean for choice in agent.recommend(USER, agent.n_items)}[0] - mean
    assert after is not None
    changed = after.parts - before.parts
    assert moved == pytest.approx(changed.sum())
    assert changed[after.items.tolist().index(item)] == pytest.approx(changed.sum())


def test_a_policy_that_does_not_say_gives_no_parts() -> None:
    assert parts_of_mean(experienced(ItemMean(), 10), USER, 0) is None
