"""Information-directed sampling: the expected maximum, the best mixture of two, and the beliefs of mean-field."""

import numpy as np
import pytest

from albatross import Agent
from albatross.core.state import flatten
from albatross.policies.ids import IDS, best_mixture, expected_maximum
from albatross.policies.mean_field import MeanField

pytestmark = pytest.mark.xdist_group("ids")

USERS, ITEMS = 8, 10


def taught(policy: IDS | MeanField) -> Agent:
    random = np.random.default_rng(1)
    agent = Agent(policy, USERS, ITEMS, seed=0)
    agent.replay(random.integers(USERS, size=150), random.integers(ITEMS - 2, size=150), random.normal(size=150))
    return agent


def test_believes_what_mean_field_believes() -> None:
    ours, theirs = (dict(flatten(taught(policy).state)) for policy in (IDS(rank=2), MeanField(rank=2)))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.tobytes() == theirs[name].tobytes(), name


@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
def test_the_expected_maximum_is_that_of_draws(spread: float) -> None:
    random = np.random.default_rng(2)
    means, variances = random.normal(size=30), spread * random.random(30)
    drawn = (means + np.sqrt(variances) * random.normal(size=(40_000, 30))).max(axis=1).mean()
    assert expected_maximum(means, variances, 30) == pytest.approx(drawn, rel=0.05)


def test_the_expected_maximum_of_what_is_known_is_the_largest() -> None:
    assert expected_maximum(np.array([1.0, 3.0, 2.0]), np.zeros(3), 3) == 3.0
    assert expected_maximum(np.array([1.0, 3.0, 2.0]), np.array([4.0, 0.0, 0.0]), 3) > 3.0


def test_no_other_mixture_has_a_much_smaller_ratio() -> None:
    """With the greedy item none is better; of all pairs the best is at most a third better."""
    random = np.random.default_rng(3)
    chances = np.linspace(0.0, 1.0, 101)
    for _ in range(40):
        means, gains = random.normal(size=7), random.random(7) ** 2
        best = means.max() + random.random()
        greedy = int(means.argmax())
        other, chance, _ = best_mixture(means, gains, 7, greedy, best)
        regrets = best - means
        ratio = ((1 - chance) * regrets[greedy] + chance * regrets[other]) ** 2 / ((1 - chance) * gains[greedy] + chance * gains[other])
        mixed = (1 - chances) * regrets[:, np.newaxis, np.newaxis] + chances * regrets[np.newaxis, :, np.newaxis]
        gained = (1 - chances) * gains[:, np.newaxis, np.newaxis] + chances * gains[np.newaxis, :, np.newaxis]
        assert ratio <= (mixed[greedy] ** 2 / gained[greedy]).min() * (1 + 1e-9)
        assert ratio <= 4 / 3 * (mixed**2 / gained).min() * (1 + 1e-9)


def test_both_of_a_mixture_have_the_same_score() -> None:
    means, gains = np.array([1.0, 0.2, 0.0]), np.array([0.0, 0.5, 0.1])
    other, chance, price = best_mixture(means, gains, 3, 0, 1.3)
    assert other == 1
    assert chance == pytest.approx(0.3 / 0.8)
    assert means[0] == pytest.approx(means[1] + price * gains[1])


def test_who_has_found_the_top_of_the_scale_hardly_looks_further() -> None:
    agent = Agent(IDS(rank=2, top=5.0), USERS, ITEMS, seed=0)
    agent.replay([0] * 40, [3, 4] * 20, [5.0, 1.0] * 20)
    chances = [choice.propensity for choice in (agent.select(0) for _ in range(100)) if choice.item == 3]
    assert len(chances) > 90
    assert min(chances) > 0.95


def test_the_propensity_is_how_often_the_item_is_shown() -> None:
    agent = taught(IDS(rank=2))
    shown: dict[int, int] = {}
    told = {}
    for _ in range(2000):
        choice = agent.select(1)
        shown[choice.item] = shown.get(choice.item, 0) + 1
        told[choice.item] = choice.propensity
    assert len(shown) == 2
    for item, times in shown.items():
        assert times / 2000 == pytest.approx(told[item], abs=0.05)
