"""Checks of the optional operations. A policy that offers none passes."""

import numpy as np

from albatross.checks.worlds import experienced
from albatross.core.agent import Agent
from albatross.core.asking.beliefs import belief_about, parts_of_mean, widths_of
from albatross.core.asking.together import choose_supposing
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.kernels.operations import ALL_ITEMS, offers, suppose

USER, ITEM = 2, 5


def _supposed(agent: Agent, items: list[int], rewards: list[float]) -> tuple[int, np.ndarray, np.ndarray]:
    """The choice, scores and means with these ratings supposed."""
    supposed = (np.array(items, np.int32), np.array(rewards, np.float64))
    position, _ = choose_supposing(agent, stream(3, "check"), USER, ALL_ITEMS, *supposed)
    return position, agent.slate.scores.copy(), agent.slate.means.copy()


def beliefs_change_nothing(policy: Policy) -> None:
    """Asking for beliefs changes nothing that was learned."""
    agent = experienced(policy)
    before = agent.state_id
    belief_about(agent, USER)
    widths_of(agent, USER, ITEM)
    parts_of_mean(agent, USER, ITEM)
    if offers(agent.state, suppose):
        _supposed(agent, [ITEM], [4.0])
    assert agent.state_id == before, "an optional operation changed what was learned"


def beliefs_are_regions(policy: Policy) -> None:
    """The covariance of a belief is symmetric and positive, and its center finite; also for a user never seen."""
    agent = experienced(policy)
    agent.grow(agent.n_users + 1, agent.n_items)
    for user in (USER, agent.n_users - 1):
        belief = belief_about(agent, user)
        if belief is not None:
            assert np.isfinite(belief.center).all()
            assert np.allclose(belief.covariance, belief.covariance.T)
            assert (np.linalg.eigvalsh(belief.covariance) > 0.0).all()
            assert belief.radius[0] > 0.0


def widths_shrink(policy: Policy) -> None:
    """One more rating of an item makes its width smaller, and never negative."""
    agent = experienced(policy)
    for item in range(agent.n_items):
        widths = widths_of(agent, USER, item)
        if widths is not None:
            assert 0.0 <= widths.after <= widths.now, f"width {widths.now} of item {item}, after one more rating {widths.after}"


def supposes_nothing_as_it_selects(policy: Policy) -> None:
    """Without supposed ratings, `suppose` is `select`."""
    agent = experienced(policy)
    if offers(agent.state, suppose):
        position, scores, means = _supposed(agent, [], [])
        agent.exploring = stream(3, "check")
        assert agent.recommend(USER, 1)[0].score == scores.max()
        agent.exploring = stream(3, "check")
        assert agent.select(USER).item == position
        assert np.isfinite(means).all()


def supposes_what_is_expected(policy: Policy) -> None:
    """A supposed rating equal to the mean moves no mean, whether it is given or left open."""
    agent = experienced(policy)
    if offers(agent.state, suppose):
        _, _, means = _supposed(agent, [], [])
        position, _, open_means = _supposed(agent, [ITEM], [np.nan])
        if position >= 0:
            assert np.allclose(open_means, means)
            _, _, told_means = _supposed(agent, [ITEM], [float(means[ITEM])])
            assert np.allclose(told_means, means, atol=0.05 * (1.0 + np.abs(means).max()))


def supposes_what_is_told(policy: Policy) -> None:
    """A better supposed rating of an item raises its mean."""
    agent = experienced(policy)
    if offers(agent.state, suppose):
        (low, _, low_means), (high, _, high_means) = (_supposed(agent, [ITEM], [reward]) for reward in (1.0, 5.0))
        if min(low, high) >= 0:
            assert low_means[ITEM] < high_means[ITEM]
