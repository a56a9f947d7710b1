"""What mean-field keeps adds up, what it remembers is exact, what it hopes for has a limit, and what it spends has one too."""

import copy
import itertools

import numpy as np
import pytest

from albatross import Agent, simulate
from albatross.checks.worlds import Checkerboard
from albatross.core.sharing.carrying import arrive, rows_of
from albatross.environments.synthetic import Gaussian
from albatross.kernels.mean_field.gittins import worth_of
from albatross.kernels.mean_field.learning import part_of_pair, rebuild, refit_item, refit_user
from albatross.kernels.mean_field.partners import click_weight, pair_weight
from albatross.kernels.mean_field.population import OVERSHOOT, more_turns
from albatross.kernels.pairs import NOTHING, find_pair
from albatross.policies.mean_field import MeanField

pytestmark = pytest.mark.xdist_group("mean-field")


def taught(policy: MeanField, n_ratings: int = 300, noise: float = 0.3, seed: int = 0) -> tuple[Agent, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    truth = random.normal(size=(9, 2)) @ random.normal(size=(2, 12)) + 3.0
    users, items = random.integers(9, size=n_ratings), random.integers(12, size=n_ratings)
    rewards = truth[users, items] + noise * random.standard_normal(n_ratings)
    agent = Agent(policy, n_users=10, n_items=14)
    agent.replay(users, items, rewards)
    return agent, users, items, rewards


def test_sums_of_items_are_those_of_the_present_users() -> None:
    """Exchanged term by term since the last rebuild, and the same as summed up afresh."""
    agent, users, items, rewards = taught(MeanField(rank=3))
    state, share, origin = agent.state, agent.state.figures[0].share, agent.state.figures[0].origin
    assert state.counts[0].rebuilt < state.counts[0].ratings
    sums, rights = np.zeros_like(state.item_sums), np.zeros_like(state.item_rights)
    for user, item in set(zip(users.tolist(), items.tolist(), strict=True)):
        mine = rewards[(users == user) & (items == item)]
        weight = pair_weight(share, mine.size)
        sums[item] += weight * state.user_moments[user]
        rights[item] += weight * (mine.mean() - origin) * state.user_moments[user, 6:10]
    np.testing.assert_allclose(state.item_sums, sums, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(state.item_rights, rights, rtol=1e-8, atol=1e-8)
    assert np.array_equal(state.item_moments, state.item_columns)


def test_sums_of_items_follow_a_replaced_rating() -> None:
    agent, users, items, rewards = taught(MeanField(rank=3))
    for step in (0, 17, 299):
        agent.replace(int(users[step]), int(items[step]), float(rewards[step]), 1.5 + step / 100)
        rewards[step] = 1.5 + step / 100
    state, share, origin = agent.state, agent.state.figures[0].share, agent.state.figures[0].origin
    rights = np.zeros_like(state.item_rights)
    for user, item in set(zip(users.tolist(), items.tolist(), strict=True)):
        mine = rewards[(users == user) & (items == item)]
        rights[item] += pair_weight(share, mine.size) * (mine.mean() - origin) * state.user_moments[user, 6:10]
    np.testing.assert_allclose(state.item_rights, rights, rtol=1e-8, atol=1e-8)
    figures = state.figures[0]
    np.testing.assert_allclose([figures.average, figures.squares], [rewards.mean(), rewards.var() * rewards.size], rtol=1e-9)
    np.testing.assert_allclose(figures.residual, state.residuals.sum(), rtol=1e-9)


def test_a_first_rating_that_is_replaced_says_something_else_of_newcomers() -> None:
    """An impression is a rating of nothing until the click comes: it must not make all new items look bad."""
    surprises = []
    for told in ([0.0, 4.0], [4.0]):
        agent, *_ = taught(MeanField(rank=3))
        agent.update(3, 13, told[0])
        for before, after in itertools.pairwise(told):
            agent.replace(3, 13, before, after)
        surprises.append(float(agent.state.figures[0].surprise))
    np.testing.assert_allclose(surprises[0], surprises[1], rtol=1e-9)


def test_figures_are_those_of_all_ratings() -> None:
    agent, users, items, rewards = taught(MeanField(rank=3))
    state, figures, counts = agent.state, agent.state.figures[0], agent.state.counts[0]
    pairs = {(user, item) for user, item in zip(users.tolist(), items.tolist(), strict=True)}
    within = sum(((mine := rewards[(users == user) & (items == item)]) - mine.mean()) @ (mine - mine.mean()) for user, item in pairs)
    np.testing.assert_allclose([figures.average, figures.largest, figures.within], [rewards.mean(), rewards.max(), within], rtol=1e-9)
    np.testing.assert_allclose(figures.squares, rewards.var() * rewards.size, rtol=1e-9)
    assert (counts.ratings, counts.repeats, counts.users, counts.items) == (300, 300 - len(pairs), 9, 12)
    np.testing.assert_allclose(figures.residual, state.residuals.sum(), rtol=1e-9)
    np.testing.assert_allclose(figures.offsets, state.item_moments[:, -2].sum(), rtol=1e-9)
    for moments, squares, spreads in (
        (state.user_moments, state.user_squares, state.user_spreads),
        (state.item_moments, state.item_squares, state.item_spreads),
    ):
        means = moments[:, [6, 7, 8, 13]]
        np.testing.assert_allclose(squares, (means**2).sum(axis=0), rtol=1e-9)
        np.testing.assert_allclose(spreads, (moments[:, [0, 2, 5, 14]] - means**2).sum(axis=0), rtol=1e-9)


def test_the_population_is_found() -> None:
    """Items that differ by a standard deviation of 2, users who hardly differ, and nothing that a vector could tell."""
    random = np.random.default_rng(4)
    offsets = random.normal(0.0, 2.0, 100)
    users, items = random.integers(40, size=8000), random.integers(100, size=8000)
    agent = Agent(MeanField(rank=2), n_users=40, n_items=100)
    agent.replay(users, items, 3.0 + offsets[items] + random.standard_normal(8000))
    assert agent.state.item_variance[2] == pytest.approx(offsets.var(), rel=0.3)
    assert agent.state.user_variance[2] < 0.05 * offsets.var()
    assert (agent.state.user_variance[:2] * agent.state.item_variance[:2]).sum() < 0.1 * offsets.var()


@pytest.mark.parametrize("same", [1, 2, 40])
def test_ratings_that_are_all_the_same_tell_nothing_of_the_scale(same: int) -> None:
    """Clicks, of which the first are zeros: nobody is thought to differ by more than ratings do."""
    random = np.random.default_rng(6)
    clicks = np.concatenate((np.zeros(same), random.integers(2, size=30)))
    agent = Agent(MeanField(rank=2), n_users=50, n_items=50)
    for click in clicks:
        agent.update(int(random.integers(50)), int(random.integers(50)), float(click))
    assert (agent.state.user_variance * agent.state.item_variance)[:2].sum() < 10.0 * 0.25
    assert max(agent.state.user_variance[2], agent.state.item_variance[2]) < 10.0 * 0.25


def test_what_was_said_before_refits_nobody() -> None:
    """Where ratings are exact: a user who says it again teaches nothing, and one who changes their mind does."""
    random = np.random.default_rng(3)
    ratings = random.integers(1, 6, size=(15, 12)).astype(float)
    agent = Agent(MeanField(rank=2, refreshes=0), n_users=15, n_items=12)
    users, items = random.integers(15, size=4000), random.integers(12, size=4000)
    agent.replay(users, items, ratings[users, items])
    before = agent.state.user_moments[3].copy(), agent.state.item_moments[7].copy()
    agent.update(3, 7, ratings[3, 7])
    assert (agent.state.user_moments[3] == before[0]).all()
    assert (agent.state.item_moments[7] == before[1]).all()
    agent.update(3, 7, 6.0 - ratings[3, 7] + 1.0)
    assert (agent.state.user_moments[3] != before[0]).any()
    assert (agent.state.item_moments[7] != before[1]).any()


def test_everybody_has_a_turn_sooner_or_later() -> None:
    """However many ratings there are, and whoever gives them: nine users have had a turn after four times as many ratings.

    With fewer ratings than these a rating may refit several, of whom the last one is noted.
    """
    agent, *_ = taught(MeanField(rank=2), n_ratings=6000)
    had = set()
    for _ in range(36):
        agent.update(0, 0, 3.0)
        had.add(int(agent.state.counts[0].user_turn))
    assert had == set(range(9))


def test_noise_is_found_from_repeats() -> None:
    agent, *_ = taught(MeanField(rank=3), n_ratings=4000)
    assert agent.state.figures[0].noise == pytest.approx(0.3**2, rel=0.2)
    assert agent.state.figures[0].share < 0.2


def test_exact_ratings_are_remembered() -> None:
    """Ratings no vectors explain, each given many times: what was said is expected again, of everybody who said it."""
    random = np.random.default_rng(3)
    ratings = random.integers(1, 6, size=(15, 12)).astype(float)
    agent = Agent(MeanField(rank=2), n_users=15, n_items=14)
    users, items = random.integers(15, size=4000), random.integers(12, size=4000)
    agent.replay(users, items, ratings[users, items])
    assert agent.state.figures[0].memory > 0.8
    for user in range(15):
        agent.recommend(user, 1)  # fills the slate
        np.testing.assert_allclose(agent.slate.means[:12], ratings[user], atol=0.25)
    forgetful = Agent(MeanField(rank=2, memory=False), n_users=15, n_items=14)
    forgetful.replay(users, items, ratings[users, items])
    forgetful.recommend(0, 1)  # fills the slate
    assert np.abs(forgetful.slate.means[:12] - ratings[0]).max() > 0.5


@pytest.mark.parametrize("top", [None, 30.0])
def test_no_score_passes_the_top_unless_its_mean_does(top: float | None) -> None:
    agent, _, _, rewards = taught(MeanField(rank=3, top=top), n_ratings=40)
    limit = rewards.max() if top is None else top
    for user in range(10):
        agent.recommend(user, 1)  # fills the slate
        assert (agent.slate.scores <= np.maximum(limit, agent.slate.means) + 1e-9).all()
        assert (agent.slate.scores >= agent.slate.means).all()
        assert (agent.slate.scores > agent.slate.means).any()


def test_who_has_found_the_top_looks_no_further() -> None:
    """Seven strangers hope for all of 5, but the one item that has it is known to have it."""
    random = np.random.default_rng(0)
    agent = Agent(MeanField(rank=2, top=5.0), n_users=40, n_items=20)
    ratings = random.choice([1.0, 2.0, 3.0, 4.0, 5.0], size=(40, 13))
    ratings[0, 5] = 5.0
    users, items = random.integers(40, size=3000), random.integers(13, size=3000)
    agent.replay(users, items, ratings[users, items])
    agent.update(0, 5, 5.0)
    for _ in range(40):
        choice = agent.select(0, [5, 13, 14, 15, 16, 17, 18, 19])
        assert choice.item == 5
        agent.update(0, 5, 5.0)


def unpacked(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (vector, 1, offset)."""
    square = np.zeros((4, 4))
    square[np.tril_indices(4)] = moments
    square += np.tril(square, -1).T
    return square[2], square - np.outer(square[2], square[2])


@pytest.mark.parametrize(("returns", "told"), [(True, None), (False, None), (False, False)])
def test_scores_are_those_of_the_docstring(returns: bool, told: bool | None) -> None:
    """Rank 2: items rated by others, two that nobody has rated, and what the user has rated left out; all from what is kept.

    Whether what the user has rated is offered again is seen from the candidates.
    """
    agent, users, items, rewards = taught(MeanField(rank=2, top=12.0, returns=told))
    state, figures, counts, user = agent.state, agent.state.figures[0], agent.state.counts[0], 4
    noise, share, own, origin = figures.noise, figures.share, figures.memory, figures.origin
    gram, right = np.diag(noise / state.user_variance), np.zeros(3)
    rated = np.unique(items[users == user])
    for item in rated:
        ratings = rewards[(users == user) & (items == item)]
        mean, covariance = unpacked(state.item_moments[item])
        regressor = mean[:3]
        weight = pair_weight(share, ratings.size)
        gram += weight * (np.outer(regressor, regressor) + covariance[:3, :3])
        right += weight * (regressor * (ratings.mean() - origin - mean[3]) - covariance[:3, 3])
    believed, covariance_of_user = np.linalg.solve(gram, right), noise * np.linalg.inv(gram)
    whom = np.array([*believed[:2], believed[2], 1.0])  # against (vector, 1, offset) of an item
    t, n = counts.ratings, counts.users
    vectors = (state.user_variance[:2] * state.item_variance[:2]).sum()
    kept = 1.0 if told is None else 1.0 - 0.75 * vectors / (vectors + noise)
    others = [item for item in range(14) if item not in rated]
    assert {12, 13} < set(others)
    agent.recommend(user, 1, None if returns else others)  # fills the slate
    n_items = 12.0 * (14 + 1) / (12 + 1)  # by their part among what was ever offered to this user, two strangers in 14
    assert n_items < 14, "so that this user may be shown everything"
    visits = 5.0 * t + 3.0 * n if returns else min(4.0 * t / n_items, n)
    for position, item in enumerate(others):
        mean, covariance = unpacked(state.item_moments[item])
        if item >= 12:
            caution = 1.0 + 4.0 * np.sqrt(2.0 / (1.0 + counts.items))
            mean = np.array([0.0, 0.0, 1.0, figures.center + figures.surprise / (figures.newcomers + 10.0)])
            covariance = kept * np.diag([*state.item_variance[:2], 0.0, caution * state.item_variance[2]])
        of_user, of_item = mean[:3] @ covariance_of_user @ mean[:3], whom @ covariance @ whom / kept
        square = (1.0 - own) * noise * worth_of(own / (1.0 - own), 3.0 + t / n)
        square += (1.0 + 4.0 * vectors / (vectors + noise)) * noise * worth_of(of_user / noise, 3.0 + t / n)
        square = returns * square + (1.0 - 0.85 * share) * noise * worth_of(of_item / noise, visits)
        expected = origin + whom @ mean
        place = item if returns else position
        assert agent.slate.means[place] == pytest.approx(expected, rel=1e-9)
        assert agent.slate.scores[place] == pytest.approx(expected + np.sqrt(square / (1.0 + square / (12.0 - expected) ** 2)), rel=1e-9)


@pytest.mark.parametrize("odd", [False, True], ids=["clicks", "one rating is none"])
def test_a_click_counts_by_the_noise_of_its_item(odd: bool) -> None:
    """For users: p (1 − p) in the place of one noise for all, as long as every rating is 0 or 1."""
    random = np.random.default_rng(3)
    users, items = random.integers(9, size=300), random.integers(12, size=300)
    items[(users == 4) & (items % 4 == 3)] = 0  # so that three items are left to predict
    likely = np.linspace(0.02, 0.7, 12)
    rewards = (random.random(300) < likely[items]).astype(float)
    rewards[150] = 0.5 if odd else 1.0
    agent = Agent(MeanField(rank=2, top=1.0), n_users=10, n_items=12)
    agent.replay(users, items, rewards)
    state, figures, user = agent.state, agent.state.figures[0], 4
    clicks = rewards.mean() * (1.0 - rewards.mean())
    gram, right, weights = np.diag(figures.noise / state.user_variance), np.zeros(3), []
    for item in np.unique(items[users == user]):
        ratings = rewards[(users == user) & (items == item)]
        mean, covariance = unpacked(state.item_moments[item])
        weight = pair_weight(figures.share, ratings.size)
        if not odd:
            weight = click_weight(figures.share, ratings.size, figures.origin + mean[3], clicks)
            weights.append(weight / pair_weight(figures.share, ratings.size))
        gram += weight * (np.outer(mean[:3], mean[:3]) + covariance[:3, :3])
        right += weight * (mean[:3] * (ratings.mean() - figures.origin - mean[3]) - covariance[:3, 3])
    assert odd or (min(weights) < 1.0 < max(weights))
    believed = np.linalg.solve(gram, right)
    others = [item for item in range(12) if not ((users == user) & (items == item)).any()]
    assert others == [3, 7, 11]
    agent.recommend(user, 1)  # fills the slate
    for item in others:
        mean, _ = unpacked(state.item_moments[item])
        assert agent.slate.means[item] == pytest.approx(figures.origin + believed[:2] @ mean[:2] + believed[2] + mean[3], rel=1e-9)


def test_the_weight_of_a_click() -> None:
    """Four times at most, and not at all where the noise belongs to the pair."""
    assert click_weight(0.0, 3, 0.5, 0.25) == pytest.approx(pair_weight(0.0, 3))
    assert click_weight(0.0, 1, 0.1, 0.25) == pytest.approx(0.25 / 0.09)
    assert click_weight(0.0, 1, -0.1, 0.25) == 4.0
    assert click_weight(0.0, 1, 0.5, 0.01) == 0.25
    assert click_weight(1.0, 1, 0.9, 0.25) == 1.0


@pytest.mark.parametrize("odd", [False, True], ids=["clicks", "one rating is none"])
def test_clicks_of_favourites_do_not_make_all_clicks_look_certain(odd: bool) -> None:
    """Half of all pairs are clicked once or not at all; what is shown again is nearly always clicked, with little noise."""
    random = np.random.default_rng(5)
    users, items = np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)
    rewards = (random.random(600) < 0.5).astype(float)
    rewards[599] = 0.5 if odd else 1.0
    again = random.integers(30, size=1200)
    agent = Agent(MeanField(rank=2, top=1.0), n_users=30, n_items=21)
    agent.replay(users, items, rewards)
    agent.replay(again, np.full(1200, 20), (random.random(1200) < 0.95).astype(float))
    figures, counts = agent.state.figures[0], agent.state.counts[0]
    assert figures.share < 0.1
    assert figures.within / counts.repeats < 0.06
    clicks = figures.average * (1.0 - figures.average)
    if odd:
        assert figures.noise < 0.5 * clicks
    else:
        assert figures.noise == pytest.approx(clicks, rel=0.1)


@pytest.mark.parametrize("odd", [False, True], ids=["clicks", "one rating is none"])
def test_a_click_is_expected_again_before_any_pair_came_back(odd: bool) -> None:
    """As if every probability of a click were equally likely; other ratings first have to show that pairs have a part of their own."""
    users, items = np.repeat(np.arange(12), 8), np.tile(np.arange(8), 12)
    rewards = (np.random.default_rng(2).random(96) < 0.5).astype(float)
    rewards[40] = 0.5 if odd else 1.0
    agent = Agent(MeanField(rank=2, top=1.0, returns=True), n_users=12, n_items=9)
    agent.replay(users, items, rewards)
    rebuild(agent.state, agent.scratch.room)
    assert agent.state.counts[0].repeats == 0
    memory = 0.0 if odd else 4.0 * rewards.mean() * (1.0 - rewards.mean()) / 3.0
    assert agent.state.figures[0].memory == pytest.approx(memory, rel=1e-9)
    forgetful = Agent(MeanField(rank=2, top=1.0, returns=True, memory=False), n_users=12, n_items=9)
    forgetful.replay(users, items, rewards)
    rebuild(forgetful.state, forgetful.scratch.room)
    for user in range(12):
        agent.recommend(user, 1)  # fills the slate
        forgetful.recommend(user, 1)
        model, mine = forgetful.slate.means[:8], rewards[8 * user : 8 * user + 8]
        np.testing.assert_allclose(agent.slate.means[:8], model + memory * (mine - model), rtol=1e-9)


def test_candidates_have_the_scores_they_have_in_the_catalogue() -> None:
    """By lanes over columns, or gathered row by row; whatever the scratch held before."""
    agent, *_ = taught(MeanField(rank=3, returns=True))
    agent.grow(10, 40)
    for user in (0, 4, 9):
        agent.recommend(user, 1)  # fills the slate
        scores, means = agent.slate.scores.copy(), agent.slate.means.copy()
        agent.scratch.positions[:] = 3
        offered = [11, 2, 39, 7, 0]
        agent.recommend(user, 1, offered)  # fills the slate
        np.testing.assert_allclose(agent.slate.scores[:5], scores[offered], rtol=1e-12)
        np.testing.assert_allclose(agent.slate.means[:5], means[offered], rtol=1e-12)


def test_finds_out_whether_pairs_come_back() -> None:
    """As if it had been told, from what is offered to somebody who has rated something."""
    unsure, yes, no = (taught(MeanField(rank=2))[0] for _ in range(3))  # told when it chooses: told before, it learns otherwise, too
    yes.settings, no.settings = (MeanField(rank=2, returns=returns).settings() for returns in (True, False))
    rated = {int(item) for item in np.unique(unsure.state.pairs.items[: unsure.state.pairs.used[0]])}
    assert rated == set(range(12))
    for user in range(9):
        own = {item for item in range(14) if find_pair(unsure.state.pairs, user, item) != NOTHING}
        left = sorted(set(range(14)) - own)
        for offered, told in ((None, yes), (left, no)):
            told.recommend(user, 1, offered)  # fills the slate
            unsure.recommend(user, 1, offered)  # fills the slate
            size = 14 if offered is None else len(left)
            np.testing.assert_array_equal(unsure.slate.scores[:size], told.slate.scores[:size])
        assert (unsure.slate.scores[: len(left)] > unsure.slate.means[: len(left)]).any(), "there is still something to try"


def test_told_that_no_pair_comes_back_it_finds_vectors_sooner() -> None:
    world = Gaussian(n_users=80, n_items=80, repeats=False)
    seeds = range(12)
    unsure, told = (
        sum(simulate(MeanField(informed=informed), world, horizon=2500, seed=seed).pseudo_regret.sum() for seed in seeds)
        for informed in (False, True)
    )
    assert told < 0.97 * unsure


def test_an_item_is_tried_for_those_who_may_be_shown_it() -> None:
    """What nobody can be shown again is worth less than what everybody can, and least where others have other candidates."""

    def hope(returns: bool, candidates: list[int]) -> float:
        agent, *_ = taught(MeanField(rank=2, returns=returns, top=1e6), n_ratings=400)
        agent.grow(10, 100)
        agent.update(9, 11, 3.0)
        agent.recommend(9, 1, candidates)  # fills the slate
        return float(agent.slate.scores[0] - agent.slate.means[0])

    everything, few = [5, *range(5), *range(6, 11)], [5, 6]
    assert 0.0 < hope(False, few) < 0.8 * hope(False, everything) < 0.64 * hope(True, everything)


def test_strangers_are_expected_to_be_like_the_last_ones_met() -> None:
    """Forty items that are good, then forty that are not: what is expected of the next follows, and that of those known does not."""
    agent = Agent(MeanField(rank=1), n_users=20, n_items=100)
    random = np.random.default_rng(0)
    hopes = []
    for first, level in ((0, 4.0), (40, 2.0)):
        for item in range(first, first + 40):
            for user in random.choice(20, 4, replace=False):
                agent.update(int(user), item, level + 0.3 * random.standard_normal())
        agent.recommend(0, 1)  # fills the slate
        hopes.append((agent.slate.means[:40].mean(), agent.slate.means[80:].mean()))
    assert hopes[0][1] == pytest.approx(4.0, abs=0.3)
    assert hopes[1][1] < 2.7, "without it, the mean of both"
    assert hopes[1][0] == pytest.approx(4.0, abs=0.3)


def test_explores_without_repeats_where_that_pays_and_not_where_it_does_not() -> None:
    """All may be shown everything: half the regret of the greedy one. Few candidates of many: no more than a tenth above it."""
    dense = Gaussian(n_users=100, n_items=100, repeats=False)
    sparse = Gaussian(n_users=200, n_items=1500, candidates=60, rank=1, repeats=False)
    totals = {}
    for name, world in (("dense", dense), ("sparse", sparse)):
        for optimism in (1.0, 0.0):
            policy = MeanField(optimism=optimism)
            totals[name, optimism] = sum(simulate(policy, world, horizon=6000, seed=seed).pseudo_regret.sum() for seed in range(6))
    assert totals["dense", 1.0] < 0.75 * totals["dense", 0.0]
    assert totals["sparse", 1.0] < 1.1 * totals["sparse", 0.0]


def test_small_laws() -> None:
    assert part_of_pair(1.0, 1) == pair_weight(1.0, 7) == 1.0
    assert part_of_pair(0.0, 5) == 0.0
    assert pair_weight(0.0, 5) == 5.0
    assert part_of_pair(0.5, 3) == pytest.approx(0.75)


def turns_of(agent: Agent) -> np.ndarray:
    return np.array([agent.state.counts[0].user_turn, agent.state.counts[0].item_turn])


@pytest.mark.parametrize("refreshes", [0, 2])
def test_a_rating_refits_no_more_than_allowed(refreshes: int) -> None:
    """Besides its own user and item: so many turns of others, each, and that in order of acquaintance."""
    agent, *_ = taught(MeanField(rank=2, refreshes=refreshes), n_ratings=60)
    for step in range(30):
        before = [array.copy() for array in (agent.state.user_moments, agent.state.item_moments)]
        turns = turns_of(agent)
        agent.update(step % 9, step % 12, 3.0)
        after = (agent.state.user_moments, agent.state.item_moments)
        for old, new in zip(before, after, strict=True):
            assert (old != new).any(axis=1).sum() <= 1 + refreshes
        moves = (turns_of(agent) - turns) % [9, 12]
        assert (moves <= refreshes).all()


def refitted(noise: float, n_ratings: int) -> int:
    """How many users one more rating refits, if vectors and so much noise have made these ratings."""
    random = np.random.default_rng(1)
    truth = random.normal(size=(50, 2)) @ random.normal(size=(2, 40))
    users, items = random.integers(50, size=n_ratings), random.integers(40, size=n_ratings)
    agent = Agent(MeanField(rank=2), n_users=50, n_items=40)
    agent.replay(users, items, truth[users, items] + noise * random.standard_normal(n_ratings))
    before = agent.state.user_moments.copy()
    agent.update(0, 0, truth[0, 0])
    return int((agent.state.user_moments != before).any(axis=1).sum())


def test_many_are_refitted_while_vectors_are_found() -> None:
    """Not before anything is known of vectors, not when they are found, and never where noise makes the ratings."""
    assert refitted(0.2, 60) <= 2
    assert refitted(0.2, 800) > 10
    assert refitted(0.2, 10_000) <= 2
    assert refitted(10.0, 800) <= 2


@pytest.mark.parametrize(
    ("rank", "users", "items", "needed"),
    [(5, 200, 200, 800), (5, 1_000, 400, 2_800), (16, 200, 200, 2_560), (2, 9, 12, 800), (5, 10_000_000, 1_000_000, 6_400)],
)
def test_the_more_there_is_to_find_the_later_most_are_refitted(rank: int, users: int, items: int, needed: int) -> None:
    """After 0.4 k (n + m) ratings, but within bounds, where vectors alone explain them."""
    state = Agent(MeanField(rank=rank), n_users=1, n_items=1).state
    state.user_variance[:] = state.item_variance[:] = 1.0
    state.figures[0].noise = 1e-9
    state.counts[0].users, state.counts[0].items = users, items

    def further(ratings: int) -> int:
        state.counts[0].ratings = ratings
        return int(more_turns(state, 1))

    assert further(needed) == 44 - 1  # c is a little less than 1
    assert further(needed // 2) == further(needed * 2) == 10
    assert further(100) <= 1


def test_refits_that_overshoot_end_where_others_do_and_sooner() -> None:
    """All users and items in turn, with the same priors: what the means predict, and how far that is from the end."""
    agent, *_ = taught(MeanField(rank=2, refreshes=0), n_ratings=60, noise=0.05)

    def predicted(sweeps: int, further: float) -> np.ndarray:
        state, room = copy.deepcopy(agent.state), agent.scratch.room
        for _ in range(sweeps):
            for user in state.users[: state.counts[0].users]:
                refit_user(state, room, int(user), further)
            for item in state.items[: state.counts[0].items]:
                refit_item(state, room, int(item), further)
        users, items = state.user_moments, state.item_moments
        predictions: np.ndarray = users[:, 3:5] @ items[:, 3:5].T + users[:, 8:9] + items[:, 8]
        return predictions

    end = predicted(300, 0.0)
    plain, overshot = (np.abs(predicted(10, further) - end).max() for further in (0.0, OVERSHOOT))
    assert overshot < 0.5 * plain
    np.testing.assert_allclose(predicted(150, OVERSHOOT), end, atol=1e-3)


@pytest.mark.parametrize("scale", [20.0, 1e60])
def test_scale_and_origin_of_ratings_make_no_difference(scale: float) -> None:
    """Nothing is tuned to a scale: ratings that are shifted and stretched are answered with scores that are.

    But for what is left of the first rating, when there was no scale yet and its own size had to do.
    """
    random = np.random.default_rng(5)
    users, items, rewards = random.integers(9, size=200), random.integers(12, size=200), random.normal(3.0, 1.0, 200)
    agents = [Agent(MeanField(rank=2), n_users=9, n_items=12) for _ in range(2)]
    agents[0].replay(users, items, rewards)
    agents[1].replay(users, items, scale * (rewards + 0.35))
    for user in range(9):
        for agent in agents:
            agent.recommend(user, 1)  # fills the slate
        np.testing.assert_allclose(agents[1].slate.scores, scale * (agents[0].slate.scores + 0.35), rtol=1e-3)


def test_finds_structure_soon() -> None:
    """Three times less regret in the second half than in the first, where nothing but vectors tells users apart."""
    regret = simulate(MeanField(rank=3), Gaussian(n_users=40, n_items=40, rank=3), horizon=6000, seed=1).pseudo_regret
    assert regret[3000:].sum() < regret[:3000].sum() / 3
    regret = simulate(MeanField(rank=2), Checkerboard(), horizon=2000, seed=0).pseudo_regret
    assert regret[1000:].mean() < 0.1


def test_items_that_arrive_with_a_user_are_met() -> None:
    """Otherwise no sum over the items that have been rated includes them."""
    here, there = (Agent(MeanField(rank=2), n_users=3, n_items=6) for _ in range(2))
    here.replay([0, 0, 1], [1, 4, 2], [4.0, 2.0, 3.0])
    there.replay([0], [4], [3.0])
    arrive(there, 1, rows_of(here, 0))
    assert there.state.items[: there.state.counts["items"][0]].tolist() == [4, 1]
