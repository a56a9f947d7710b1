"""The fit never gets worse; asking and pleasing are what the formulas say."""

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.environment import OtherRatings, Truth
from albatross.core.streams import stream
from albatross.policies.aspect_model import FOLD_IN, STRENGTH, AspectModel, Fit, first_guess, improved, rounded

pytestmark = pytest.mark.xdist_group("aspect-model")

Array = NDArray[np.float64]

N_ITEMS = 12


def others() -> tuple[OtherRatings, NDArray[np.int64]]:
    """Users of two types, who agree about the first items and not about the others; and whose type is which."""
    random = np.random.default_rng(0)
    users, items = np.nonzero(random.random((40, N_ITEMS)) < 0.7)
    types = np.arange(40) % 2
    means = np.where(items < 4, 3.0, np.where(types[users] == items % 2, 4.5, 1.5))
    return OtherRatings(
        users.astype(np.int32), items.astype(np.int32), np.clip(np.round(means + 0.6 * random.normal(size=users.size)), 1, 5)
    ), types


def objective(fit: Fit, told: OtherRatings, numbers: NDArray[np.int64]) -> float:
    """Log-likelihood and log-prior."""
    ratings = np.log((fit.mixtures[told.users] * fit.likelihoods[told.items, :, numbers]).sum(axis=1)).sum()
    return float(
        ratings + STRENGTH / fit.mixtures.shape[1] * np.log(fit.mixtures).sum() + STRENGTH * (fit.shares * np.log(fit.likelihoods)).sum()
    )


def test_expectation_maximization_never_lowers_the_likelihood() -> None:
    told, _ = others()
    _, _, numbers = rounded(told.ratings, 5)
    fit = first_guess(told, numbers, 3, 5, stream(0, "guess"))
    course = [objective(fit, told, numbers)]
    for _ in range(40):
        fit = improved(fit, told, numbers)
        course.append(objective(fit, told, numbers))
    assert min(np.diff(course)) > -1e-9
    assert course[-1] > course[0] + 50


def test_planted_types_are_found() -> None:
    told, types = others()
    _, _, numbers = rounded(told.ratings, 5)
    fit = first_guess(told, numbers, 2, 5, stream(0, "guess"))
    for _ in range(50):
        fit = improved(fit, told, numbers)
    found = fit.mixtures.argmax(axis=1)
    assert max((found == types).mean(), (found != types).mean()) == 1.0


def test_levels_are_values_or_quantiles() -> None:
    edges, values, numbers = rounded(np.array([1.0, 5.0, 3.0, 1.0]), 4)
    assert (edges.tolist(), values.tolist(), numbers.tolist()) == ([2.0, 4.0, np.inf], [1.0, 3.0, 5.0, 0.0], [0, 2, 1, 0])
    edges, values, numbers = rounded(np.arange(100.0), 4)
    assert np.bincount(numbers).tolist() == [25, 25, 25, 25]
    assert values.tolist() == [12.0, 37.0, 62.0, 87.0]


def test_asking_and_pleasing_against_numpy() -> None:
    told, _ = others()
    agent = Agent(AspectModel(n_types=3, queries=6, levels=5), 4, N_ITEMS, truth=Truth(ratings=told))
    likelihoods, prior, random = agent.state.likelihoods, agent.state.prior, np.random.default_rng(1)
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    mixture = prior.copy()
    rated: list[tuple[int, int]] = []
    for visit in range(12):
        agent.select(2)
        expected = np.einsum("z,izr,r->i", mixture, likelihoods, values)
        np.testing.assert_allclose(agent.slate.means, expected, rtol=1e-9)
        if visit < 6:
            joint = mixture[:, np.newaxis] * likelihoods
            scores = (joint * np.log(joint / joint.sum(axis=1, keepdims=True))).sum(axis=(1, 2))
        else:
            scores = expected
        np.testing.assert_allclose(agent.slate.scores, scores, rtol=1e-9)
        item, level = visit, int(random.integers(5))
        agent.update(2, item, level + 1.0)
        rated.append((item, level))
        for _ in range(FOLD_IN):
            counts = STRENGTH * prior
            for each, number in rated:
                joint_types = mixture * likelihoods[each, :, number]
                counts = counts + joint_types / joint_types.sum()
            mixture = counts / counts.sum()
        np.testing.assert_allclose(agent.state.mixtures[2], mixture, rtol=1e-9)


def test_it_asks_what_types_disagree_about() -> None:
    agent = Agent(AspectModel(n_types=2, queries=3), 4, N_ITEMS, truth=Truth(ratings=others()[0]))
    assert agent.select(0).item >= 4
