"""The page about plain Python: every block runs, and its statements on comparisons and Gymnasium are true."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import checks, simulate
from albatross.core.foreign.plain import Plain, as_policy
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian, Uniform
from albatross.metrics.ndcg import NDCG
from albatross.policies.mean_field import MeanField
from albatross.policies.random import Random
from albatross.studies.comparison import compare

from documentation.blocks import NAMED, ROOT, blocks

pytestmark = pytest.mark.xdist_group("mean-field")

PAGE = ROOT / "docs" / "guides" / "plain-python.md"
BLOCKS = {named[1].removesuffix(".py"): block.text for block in blocks(PAGE) if (named := NAMED.match(block.text))}
MODELS = {"biased_mf": "BiasedMF", "regression": "Regression", "agent": "Played", "first": "ItemMeans"}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The blocks as files that can be imported, and a place where they may write."""
    folder = tmp_path_factory.mktemp("plain")
    for name, block in BLOCKS.items():
        folder.joinpath(f"{name}.py").write_text(block, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.chdir(folder)
        invalidate_caches()
        yield folder
    for name in BLOCKS:
        sys.modules.pop(name, None)


def maker(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(name), MODELS[name])
    return found


def test_every_block_is_named() -> None:
    assert len(blocks(PAGE)) == len(BLOCKS)


@pytest.mark.parametrize("name", BLOCKS)
def test_block_runs(name: str) -> None:
    import_module(name)


@pytest.mark.parametrize("name", MODELS)
def test_model_passes_the_checks(name: str) -> None:
    checks.run(maker(name))


def test_models_of_other_libraries_play_in_one_comparison() -> None:
    world = Uniform(n_users=10, n_items=12, rank=2, candidates=6)
    entrants: list[Any] = [MeanField(), Random(), *(maker(name) for name in MODELS)]
    comparison = compare(entrants, "uniform", world, horizon=300, seeds=[0, 1], jobs=1)
    assert [policy.policy_name().rpartition(":")[2] for policy in comparison.results] == ["mean-field", "random", *MODELS.values()]
    for policy, results in comparison.results.items():
        for seed, result in enumerate(results):
            alone = simulate(policy, world, 300, seed)
            np.testing.assert_array_equal(result.pseudo_regret, np.cumsum(alone.pseudo_regret)[result.checkpoints - 1])
            assert result.state_id == alone.state_id


def test_every_model_meets_the_same_public() -> None:
    world = Gaussian(n_users=10, n_items=12, rank=2, candidates=6, fresh=True)
    entrants: list[Any] = [Random(), *(maker(name) for name in MODELS)]
    lives = [simulate(policy, world, 300, seed=5) for policy in entrants]
    for lived in lives[1:]:
        assert lived.users.tobytes() == lives[0].users.tobytes()
        assert lived.best.tobytes() == lives[0].best.tobytes()
        np.testing.assert_allclose(lived.rewards - lived.expected, lives[0].rewards - lives[0].expected, rtol=0, atol=1e-13)
        assert (lived.items != lives[0].items).any()


def test_a_model_that_has_scores_has_a_ranking_to_measure() -> None:
    lived = simulate(maker("biased_mf"), Uniform(n_users=10, n_items=12, rank=2), 100, ndcg=NDCG())
    assert ((lived.ndcg > 0) & (lived.ndcg <= 1)).all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_change_nothing(jobs: int) -> None:
    policies: list[Policy] = [as_policy(maker("first")), Random()]
    results = compare(policies, "uniform", Uniform(n_users=5, n_items=6, rank=2), horizon=200, seeds=[0, 1], jobs=jobs).results
    for policy, (first, _) in results.items():
        assert first.state_id == simulate(policy, Uniform(n_users=5, n_items=6, rank=2), 200, seed=0).state_id


def test_an_agent_lives_the_same_life_in_both_worlds() -> None:
    """The episode of the page, beside the same agent as a policy."""
    episode = import_module("episode")
    world = Gaussian(n_users=30, n_items=30, candidates=10)
    lived = simulate(maker("agent"), world, 500, seed=7)
    assert episode.regret == pytest.approx(lived.pseudo_regret.sum(), rel=1e-12)
    assert (episode.greedy.counts == np.bincount(lived.items, minlength=30)).all()


class Shared:
    """Breaks what plain policies are asked, one at a time."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def select(self, user: int, candidates: Any) -> int:
        return int(candidates[0])

    def update(self, user: int, item: int, reward: float) -> None:
        pass


class DrawsFromNumpy(Shared):
    def select(self, user: int, candidates: Any) -> int:
        return int(np.random.choice(candidates))  # noqa: NPY002


class ChoosesZero(Shared):
    def select(self, user: int, candidates: Any) -> int:
        return 0


class ScoresOne(Shared):
    def scores(self, user: int, candidates: Any) -> list[float]:
        return [1.0]


class RemembersLives(Shared):
    memory: list[int] = []  # noqa: RUF012

    def select(self, user: int, candidates: Any) -> int:
        self.memory.append(0)
        return int(candidates[len(self.memory) // 7 % len(candidates)])


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (DrawsFromNumpy, "differ"),
        (ChoosesZero, "ChoosesZero: select chose 0"),
        (ScoresOne, "scores are of shape"),
        (RemembersLives, "differ"),
    ],
)
def test_a_broken_policy_is_told(broken: type, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        checks.run(broken)


def test_nothing_global_is_random() -> None:
    policy = as_policy(DrawsFromNumpy)
    assert isinstance(policy, Plain)
    with pytest.raises(AssertionError, match=r"drew from numpy\.random"):
        checks.plain.nothing_global_is_random(policy)
