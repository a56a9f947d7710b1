"""The search by mean-field's score finds what looking at every item finds, and its bounds hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albatross.core.agent import Agent
from albatross.core.asking.together import choose_supposing
from albatross.core.streams import stream
from albatross.kernels.mean_field import shelving
from albatross.kernels.mean_field.bounding import bound_blocks
from albatross.kernels.mean_field.gittins import bonus, worth_of
from albatross.kernels.mean_field.learning import place_user
from albatross.kernels.mean_field.measuring import weigh_partners
from albatross.kernels.mean_field.shelving import BLOCK, Shelves, bring_up_to_date
from albatross.kernels.mean_field.valuing import rank_items, scales_of
from albatross.kernels.operations import ALL_ITEMS, Items, Slate
from albatross.kernels.search import catalogue
from albatross.policies.mean_field import MeanField

N_ITEMS = 300


@pytest.fixture(autouse=True)
def _search_small_catalogues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "SEARCHED_FROM", 2)


@given(
    means=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2),
    squares=st.lists(st.floats(0.0, 1e4), min_size=2, max_size=2),
    top=st.floats(-1e3, 1e3),
)
def test_a_score_grows_with_mean_and_with_what_it_is_worth_to_try(means: list[float], squares: list[float], top: float) -> None:
    less, more = sorted(means)
    little, much = sorted(squares)
    low, high = less + bonus(little, top - less), more + bonus(much, top - more)
    assert low <= high + 1e-12 * (abs(less) + abs(more) + abs(top) + math.sqrt(much))


@given(ratios=st.lists(st.floats(0.0, 1e6), min_size=2, max_size=2), visits=st.floats(0.0, 1e12))
def test_what_it_is_worth_to_try_grows_with_the_variance(ratios: list[float], visits: float) -> None:
    less, more = sorted(ratios)
    assert worth_of(less, visits) <= worth_of(more, visits) * (1.0 + 1e-12)


def beliefs_at_random(seed: int, rank: int, n_items: int, scale: float) -> Agent:
    """An agent that believes anything of its items, of one user who has rated some of them, and of the population."""
    random = np.random.default_rng(seed)
    agent = Agent(MeanField(rank=rank), n_users=2, n_items=n_items)
    state, size = agent.state, rank + 1
    figures, counts = state.figures[0], state.counts[0]
    n_met = int(random.integers(n_items // 2, n_items))
    for item in range(n_met):
        root = random.normal(size=(size, size)) * np.exp(random.uniform(-4, 1))
        coefficients = scale * random.normal(size=size) * np.exp(random.uniform(-3, 1))
        z, order = np.zeros((rank + 2, rank + 2)), [*range(rank), rank + 1]
        z[np.ix_(order, order)] = np.outer(coefficients, coefficients) + root @ root.T
        z[rank, order] = coefficients
        z[order, rank] = coefficients
        z[rank, rank] = 1.0
        state.item_moments[item] = z[np.tril_indices(rank + 2)]
    state.item_columns[:] = state.item_moments
    state.items[:n_met] = random.permutation(n_met)
    counts.items, counts.users, counts.ratings = n_met, 1, 1 + int(np.exp(random.uniform(0, 12)))
    figures.noise, figures.origin, figures.share, figures.memory = np.exp(random.uniform(-4, 2)), scale * random.normal(), *random.random(2)
    figures.largest, figures.offsets = figures.origin + scale * random.normal(), state.item_moments[:, -2].sum()
    state.user_variance[:], state.item_variance[:] = np.exp(random.uniform(-3, 2, size)), np.exp(random.uniform(-3, 2, size))
    state.pairs.first[0] = -1
    return agent


@given(seed=st.integers(0, 2**32), rank=st.sampled_from([1, 3]), scale=st.sampled_from([0.0, 1e-3, 1.0, 1e4]), returns=st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_no_item_scores_above_the_bound_of_its_block(seed: int, rank: int, scale: float, returns: float) -> None:
    """Whatever is believed; also after beliefs have changed, without arranging the items anew. Interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "SEARCHED_FROM", 2)
        agent = beliefs_at_random(seed, rank, 2 * BLOCK + 9, scale)
    other = beliefs_at_random(seed + 1, rank, 2 * BLOCK + 9, scale)
    state, scratch, shelves = agent.state, agent.scratch, agent.scratch.room.shelves
    bring_up_to_date(shelves, state)
    for item in range(5):
        before = state.figures[0].offsets
        state.item_moments[item] = state.item_columns[item] = other.state.item_moments[item]
        state.figures[0].offsets += 1.0
        shelving.take_down(shelves, before, state.figures[0].offsets, item)
    bring_up_to_date(shelves, state)
    assert shelves.counts[shelving.WIDENED] == 5
    place_user(state, scratch.room, 0)
    policy_settings = MeanField(rank=rank).settings()._replace(returns=returns)
    slate = Slate(np.zeros(agent.n_items), np.zeros(agent.n_items))
    rank_items(state, policy_settings, scratch, 0, ALL_ITEMS, slate)
    weigh_partners(scratch)
    n_met = state.counts[0].items
    scales = scales_of(state, policy_settings, scratch, returns, float(agent.n_items), float(agent.n_items - n_met))
    bound_blocks(state, scratch, scales)
    bounds = shelves.bounds[shelves.places[:n_met] // BLOCK]
    assert (slate.scores[:n_met] <= bounds).all()


class Life:
    """Choices, rankings and what was learned, by an agent that searches or looks at every item."""

    def __init__(self, seed: int, searches: bool, constant: bool) -> None:
        self.random, self.constant = np.random.default_rng(seed), constant
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(catalogue, "SEARCHED_FROM", 2)
            self.agent = Agent(MeanField(rank=2), n_users=4, n_items=N_ITEMS, seed=seed)
            self.agent.search(searches)
        assert isinstance(self.agent.scratch.room.shelves, Shelves) == searches

    def live(self, n_steps: int) -> list[object]:
        agent, random, told = self.agent, self.random, []  # type: Agent, np.random.Generator, list[object]
        for step in range(n_steps):
            user = int(random.integers(4))
            candidates = None if step % 3 else random.permutation(N_ITEMS)[: int(random.integers(60, N_ITEMS))]
            choice = agent.select(user, candidates)
            told.append(choice)
            item = choice.item if step % 2 else int(random.integers(N_ITEMS))
            reward = 3.0 if self.constant else float(random.integers(1, 6))
            if step % 5 == 0:  # sometimes many ratings, sometimes none, between two searches
                agent.replay(random.integers(4, size=6), random.integers(N_ITEMS, size=6), np.full(6, reward))
            agent.update(user, item, reward)
            if step % 7 == 0:
                agent.replace(user, item, reward, 2.0)
            told += [(best.item, best.score, best.mean) for best in agent.recommend(user, 1 + step % 20, candidates)]
            told.append(self.suppose(user, random.permutation(N_ITEMS)[:3].astype(np.int32), np.array([4.0, np.nan, 1.0])))
        return [*told, agent.state_id, agent.exploring.random()]

    def suppose(self, user: int, items: Items, rewards: np.ndarray) -> object:
        chosen = choose_supposing(self.agent, stream(0, "supposing"), user, ALL_ITEMS, items, rewards, False, ALL_ITEMS)
        return chosen, self.agent.slate.scores[chosen[0]], self.agent.slate.means[chosen[0]]


@pytest.mark.parametrize("constant", [False, True], ids=["ratings", "ratings all alike"])
def test_an_agent_lives_the_same_life_with_and_without_the_search(constant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit: choices, propensities, rankings, draws among equals."""
    monkeypatch.setattr(shelving, "LEAST_CHANGES", 40)
    one, other = (Life(1, searches, constant).live(150) for searches in (True, False))
    assert one == other
