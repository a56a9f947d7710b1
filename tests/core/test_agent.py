"""The agent refuses what it cannot use, and keeps what it learned."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import Agent
from albatross.core.environment import Truth
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.policies.alb import ALB
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random

pytestmark = pytest.mark.xdist_group("alb")

POLICY = ALB(rank=2, ridge=0.5)
N_USERS, N_ITEMS = 5, 8


@pytest.fixture
def agent() -> Agent:
    agent = Agent(POLICY, N_USERS, N_ITEMS, seed=1)
    agent.replay([0, 1, 1, 4], [7, 0, 3, 3], [1.0, 2.0, 3.0, 4.0])
    return agent


def everything(agent: Agent) -> tuple[Any, ...]:
    return agent.state_id, agent.exploring.bit_generator.state, agent.learning.bit_generator.state, agent.n_users, agent.n_items


USERS, ITEMS = "from 0 to 4", "from 0 to 7"
REFUSED: list[tuple[str, Callable[[Agent], Any], str, str]] = [
    ("replaced for nobody", lambda agent: agent.replace(5, 0, 1.0, 2.0), "user is 5", USERS),
    ("replaced for nothing", lambda agent: agent.replace(0, 8, 1.0, 2.0), "item is 8", ITEMS),
    ("replaced by nothing", lambda agent: agent.replace(0, 7, 1.0, float("nan")), "nan", "finite"),
    ("user too large", lambda agent: agent.select(5), "user is 5", USERS),
    ("user negative", lambda agent: agent.select(-1), "user is -1", USERS),
    ("user a float", lambda agent: agent.select(1.0), "user is 1.0", USERS),  # type: ignore[arg-type]
    ("user a truth value", lambda agent: agent.select(True), "user is True", USERS),
    ("user a word", lambda agent: agent.select("ann"), "user is 'ann'", USERS),  # type: ignore[arg-type]
    ("user beyond 64 bits", lambda agent: agent.select(2**70), "user is 1180591620717411303424", USERS),
    ("candidates empty", lambda agent: agent.select(0, []), "candidates is empty", "at least one item"),
    ("candidate repeated", lambda agent: agent.select(0, [3, 6, 3]), "candidate 3 is given more than once", "each item once"),
    ("candidate too large", lambda agent: agent.select(0, [1, 8]), "candidate is 8", ITEMS),
    ("candidate negative", lambda agent: agent.select(0, [1, -1]), "candidate is -1", ITEMS),
    ("candidate a float", lambda agent: agent.select(0, [1.5, 2.0]), "candidate is [1.5, 2.0]", ITEMS),  # type: ignore[list-item]
    ("candidate a truth value", lambda agent: agent.select(0, [True]), "candidate is [True]", ITEMS),
    ("candidates a table", lambda agent: agent.select(0, np.zeros((2, 2), int)), "candidate is", ITEMS),
    ("candidate beyond 64 bits", lambda agent: agent.select(0, [2**70]), "candidate is [1180591620717411303424]", ITEMS),
    ("rating by nobody", lambda agent: agent.update(5, 0, 1.0), "user is 5", USERS),
    ("rating by a float", lambda agent: agent.update(0.0, 0, 1.0), "user is 0.0", USERS),  # type: ignore[arg-type]
    ("rating of nothing", lambda agent: agent.update(0, 8, 1.0), "item is 8", ITEMS),
    ("rating of a float", lambda agent: agent.update(0, 2.0, 1.0), "item is 2.0", ITEMS),  # type: ignore[arg-type]
    ("rating of an item before the first", lambda agent: agent.update(0, -1, 1.0), "item is -1", ITEMS),
    ("reward not a number", lambda agent: agent.update(0, 0, float("nan")), "reward is nan", "a finite number"),
    ("reward infinite", lambda agent: agent.update(0, 0, float("inf")), "reward is inf", "a finite number"),
    ("reward minus infinite", lambda agent: agent.update(0, 0, -float("inf")), "reward is -inf", "a finite number"),
    ("one bad reward of many", lambda agent: agent.replay([0, 1], [0, 1], [1.0, float("nan")]), "reward is nan", "a finite number"),
    ("one bad item of many", lambda agent: agent.replay([0, 1], [0, 9], [1.0, 1.0]), "item is 9", ITEMS),
    ("unequal lengths", lambda agent: agent.replay([0, 1], [0], [1.0]), "lengths 2, 1 and 1", "equal ones"),
    ("fewer users", lambda agent: agent.grow(4, 8), "n_users is 4", "at least 5"),
    ("fewer items", lambda agent: agent.grow(9, 7), "n_items is 7", "at least 8"),
]


@pytest.mark.parametrize(("attempt", "given", "accepted"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_bad_input_is_refused_and_leaves_no_trace(agent: Agent, attempt: Callable[[Agent], Any], given: str, accepted: str) -> None:
    before = everything(agent)
    with pytest.raises(InvalidInput) as refusal:
        attempt(agent)
    assert given in str(refusal.value)
    assert accepted in str(refusal.value)
    assert everything(agent) == before


@pytest.mark.parametrize("reward", ["five", 1j, None, 10**400], ids=["word", "complex", "none", "beyond all floats"])
def test_a_reward_that_is_no_number_is_refused(agent: Agent, reward: Any) -> None:
    before = everything(agent)
    with pytest.raises(InvalidInput, match="accepted: a finite number"):
        agent.update(0, 0, reward)
    assert everything(agent) == before


@pytest.mark.parametrize(("sizes", "message"), [((0, 3), "n_users is 0"), ((3, -1), "n_items is -1"), ((2.5, 3), "n_users is 2.5")])
def test_sizes_are_whole_numbers_of_at_least_one(sizes: tuple[Any, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Agent(Random(), *sizes)


def test_a_seed_is_not_negative() -> None:
    with pytest.raises(InvalidInput, match="seed is -1; accepted: a whole number, at least 0"):
        Agent(Random(), 2, 2, seed=-1)


def test_a_privileged_policy_needs_the_truth() -> None:
    with pytest.raises(InvalidInput, match="'oracle' must be told the truth"):
        Agent(Oracle(), 2, 3)
    truth = Truth(np.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0]]), None)
    agent = Agent(Oracle(), 2, 3, truth=truth)
    assert [agent.select(user).item for user in (0, 1)] == [1, 0]
    assert agent.select(0, [0, 2]) == (2, 1.0, 1.0, 0.0, 1.0)


def test_numbers_may_come_from_numpy(agent: Agent) -> None:
    twin = Agent(POLICY, N_USERS, N_ITEMS, seed=1)
    twin.replay(np.array([0, 1, 1, 4], np.uint8), np.array([7, 0, 3, 3], np.int32), np.array([1, 2, 3, 4]))
    assert twin.state_id == agent.state_id
    expected = agent.select(2, [5, 6])
    for candidates in (np.array([5, 6], np.uint16), range(5, 7), (5, 6)):
        assert twin.select(np.int32(2), candidates) == expected  # type: ignore[arg-type]


def test_a_choice_is_its_mean_and_its_bonus(agent: Agent) -> None:
    choice = agent.select(1, [6, 2, 3])
    assert choice.item in (6, 2, 3)
    assert choice.score == pytest.approx(choice.mean + choice.bonus)
    assert choice.bonus > 0
    assert choice.propensity == 1.0


def test_learning_from_nothing_changes_nothing(agent: Agent) -> None:
    before = everything(agent)
    agent.replay([], [], [])
    assert everything(agent) == before


def test_a_larger_catalogue_is_shown() -> None:
    """New items can be chosen, by a policy that never learns too."""
    for policy in (Random(), POLICY):
        agent = Agent(policy, 2, 2, seed=0)
        agent.grow(2, 50)
        assert agent.slate.scores.shape == (50,)
        shown = set()
        for _ in range(60):
            shown.add(agent.select(0).item)
            agent.update(0, max(shown), -1.0)
        assert max(shown) >= 2, policy


def test_growing_keeps_old_vectors_and_draws_new_ones_as_if_there_from_the_start(agent: Agent) -> None:
    before = agent.state.item_factors.copy()
    agent.grow(9, 20)
    assert (agent.state.item_factors[:N_ITEMS] == before).all()
    newborn = Agent(POLICY, 9, 20, seed=1)
    assert (agent.state.item_factors[N_ITEMS:] == newborn.state.item_factors[N_ITEMS:]).all()
    newborn.replay([0, 1, 1, 4], [7, 0, 3, 3], [1.0, 2.0, 3.0, 4.0])
    assert agent.state_id == newborn.state_id


def test_saving_replaces_the_file_and_leaves_no_other(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "agent.npz"
    path.write_text("an older file")
    agent.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]
    twin = Agent.load(path, POLICY)
    assert everything(twin) == everything(agent)
    assert twin.seed == agent.seed


def test_a_save_that_fails_leaves_the_old_file(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.npz"
    agent.save(path)
    before = path.read_bytes()
    agent.update(0, 0, 1.0)

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        agent.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]


@pytest.mark.parametrize("policy", [ALB(rank=3, ridge=0.5), ALB(rank=2, ridge=0.6), Random()], ids=["rank", "ridge", "policy"])
def test_a_snapshot_of_another_policy_is_refused(agent: Agent, policy: Policy, tmp_path: Path) -> None:
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(InvalidInput, match="was saved with policy") as refusal:
        Agent.load(tmp_path / "agent.npz", policy)
    assert repr(policy.parameters()) in str(refusal.value)


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    change(arrays)
    np.savez(path, **arrays)


def bytes_of_one_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


SPOILED: dict[str, Callable[[Path], Any]] = {
    "text": lambda path: path.write_text("user,item,rating\n"),
    "empty": lambda path: path.write_bytes(b""),
    "first half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "without its end": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "one array": lambda path: path.write_bytes(bytes_of_one_array()),
    "no manifest": lambda path: rewritten(path, lambda arrays: arrays.pop("manifest")),
    "manifest of something else": lambda path: rewritten(path, lambda arrays: arrays.update(manifest=np.array("{}"))),
    "manifest of no kind": lambda path: rewritten(path, lambda arrays: arrays.update(manifest=np.array("[]"))),
    "manifest not JSON": lambda path: rewritten(path, lambda arrays: arrays.update(manifest=np.array("{"))),
}


@pytest.mark.parametrize("spoil", [pytest.param(spoil, id=name) for name, spoil in SPOILED.items()])
def test_what_is_not_a_snapshot_is_refused(agent: Agent, spoil: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "agent.npz"
    agent.save(path)
    spoil(path)
    with pytest.raises(InvalidInput, match=r"agent\.npz is not a snapshot of an agent"):
        Agent.load(path, POLICY)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (lambda arrays: arrays.pop("item_factors"), r"'item_factors' is missing; expected float64\[8, 2\]"),
    "missing below": (lambda arrays: arrays.pop("pairs.totals"), "'pairs.totals' is missing; expected float64"),
    "shape": (lambda arrays: arrays.update(user_factors=np.zeros((5, 3))), r"'user_factors' is float64\[5, 3\]; expected float64\[5, 2\]"),
    "type": (lambda arrays: arrays.update(updates=np.zeros(2)), r"'updates' is float64\[2\]; expected int64\[2\]"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_a_snapshot_with_a_wrong_array_is_refused(
    agent: Agent, change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "agent.npz"
    agent.save(path)
    rewritten(path, change)
    with pytest.raises(InvalidInput, match=message):
        Agent.load(path, POLICY)


def test_a_snapshot_holds_plain_arrays_and_a_readable_manifest(agent: Agent, tmp_path: Path) -> None:
    agent.save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz", allow_pickle=False) as file:
        manifest = json.loads(str(file["manifest"]))
        assert set(file.files) > {"user_factors", "item_factors", "pairs.items"}
    assert manifest["policy"] == "alb"
    assert manifest["parameters"] == POLICY.parameters()
    assert (manifest["n_users"], manifest["n_items"], manifest["seed"]) == (N_USERS, N_ITEMS, 1)


def test_a_list_is_the_top_of_the_ranking_and_equals_stand_in_the_order_offered(agent: Agent) -> None:
    ranking = agent.recommend(1, 3, [6, 0, 4, 2])
    assert ranking[0].item == agent.select(1, [6, 0, 4, 2]).item
    assert [choice.score for choice in ranking] == sorted((choice.score for choice in ranking), reverse=True)
    equal = Agent(ALB(rank=2, item_scale=1e-200, noise=0.0, norm_bound=0.0), n_users=1, n_items=5)
    assert [choice.item for choice in equal.recommend(0, 3, [4, 1, 3, 0])] == [4, 1, 3]


@pytest.mark.parametrize(("n", "accepted"), [(0, "at least 1"), (5, "at most the number of candidates, 4"), (1.5, "a whole number")])
def test_a_list_of_impossible_length_is_refused(agent: Agent, n: int, accepted: str) -> None:
    with pytest.raises(InvalidInput, match=accepted):
        agent.recommend(0, n, [6, 0, 4, 2])


def test_a_policy_that_cannot_take_a_rating_back_says_so() -> None:
    with pytest.raises(InvalidInput, match="'random' cannot take a rating back; accepted"):
        Agent(Random(), 1, 1).replace(0, 0, 1.0, 2.0)
