"""The best item found without most roots and divisions is the one that looking at every item finds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albatross.core.agent import Agent, choose
from albatross.core.asking.together import choose_supposing
from albatross.core.streams import stream
from albatross.kernels.mean_field.side_by_side import largest_parts, may_reach
from albatross.kernels.mean_field.valuing import Scales, reach_of, value_items
from albatross.kernels.operations import ALL_ITEMS
from albatross.kernels.search.lanes import LANES
from albatross.policies.mean_field import MeanField

N_USERS, N_ITEMS = 6, 70

sizes = st.floats(0.0, 1e3)


@given(
    origin=st.floats(-1e3, 1e3),
    above=st.floats(-1e2, 1e3),
    noise=st.floats(1e-3, 1e2),
    visits=st.lists(st.floats(0.0, 1e8), min_size=2, max_size=2),
    parts=st.lists(sizes, min_size=3, max_size=3),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=200, deadline=None)
def test_who_has_the_best_score_may_reach_it(
    origin: float, above: float, noise: float, visits: list[float], parts: list[float], seed: int
) -> None:
    """Whatever the scales are, and whatever is believed of the items. Interpreted."""
    random = np.random.default_rng(seed)
    means = random.normal(size=LANES) * np.exp(random.uniform(-6, 6))
    squares = np.exp(random.uniform(-12, 6, LANES))
    seconds = means**2 + noise * np.exp(random.uniform(-12, 6, LANES))
    for_user, for_all = visits
    own, user, item = parts
    scales = Scales(origin, origin + above, 1.0 / noise, for_user, for_all, own, user, item, 0.0, 0.0, 0.0)
    valued, scored, scores = squares.copy(), means.copy(), np.zeros(LANES)
    value_items(scales, valued, seconds, scored, scores, LANES)
    reach = reach_of(scales, *largest_parts(squares, seconds, means, 1))
    reaching = may_reach(scales, reach, squares, seconds, means, 0, float(scores.max()))
    assert all((reaching >> lane) & 1 for lane in np.flatnonzero(scores == scores.max()).tolist())
    squares[scores == scores.max()] = -1.0
    hidden = may_reach(scales, reach, squares, seconds, means, 0, -math.inf)
    assert [(hidden >> lane) & 1 for lane in range(LANES)] == (squares >= 0.0).tolist()


@pytest.mark.parametrize("rank", [5, 2], ids=["written out", "in loops"])
@pytest.mark.parametrize("rating", ["whole", "alike", "own"])
@pytest.mark.parametrize("supposing", [False, True], ids=["plain", "supposing"])
def test_the_choice_is_that_of_the_whole_slate(rank: int, rating: str, supposing: bool) -> None:
    """To the last bit: item, score, mean, propensity, and what is drawn among equals; also with supposed ratings, as a service chooses."""
    random = np.random.default_rng(3)
    agent = Agent(MeanField(rank=rank), N_USERS, N_ITEMS)
    likes, latest, chosen_from_few = random.normal(size=(N_USERS, N_ITEMS)), list[int](), 0
    for step in range(300):
        user = int(random.integers(N_USERS))
        n_offered = int(random.integers(1, N_ITEMS)) if step % 3 else 0
        offered = random.permutation(N_ITEMS)[:n_offered].astype(np.int32) if n_offered else ALL_ITEMS
        if step % 5 == 0:
            offered = np.arange(n_offered, dtype=np.int32)  # side by side
        outcomes = []
        supposed = np.array(latest[-random.integers(1, 4) :] if step % 2 else [], np.int32)
        for whole in (False, True):
            agent.slate.scores.fill(np.nan)
            agent.slate.means.fill(np.nan)
            agent.exploring.bit_generator.state = stream(step, "exploring").bit_generator.state
            ratings = (supposed, np.full(supposed.size, math.nan))
            if supposing:
                position, propensity = choose_supposing(agent, agent.exploring, user, offered, *ratings, whole)
            else:
                position, propensity = agent.run(choose, agent.exploring, user, offered, whole, ALL_ITEMS)
            outcomes.append((position, propensity, agent.slate.scores[position], agent.slate.means[position], agent.exploring.random()))
            if not whole:
                chosen_from_few += int(np.isnan(agent.slate.scores).sum() > 0)
        assert outcomes[0] == outcomes[1]
        item = int(offered[outcomes[0][0]]) if offered.size else outcomes[0][0]
        reward = {"whole": float(random.integers(1, 6)), "alike": 3.0, "own": likes[user, item]}[rating]
        agent.update(user, item if step % 4 else int(random.integers(N_ITEMS)), reward)
        latest = [*(other for other in latest if other != item), item]
    assert chosen_from_few > 100
