"""Our worlds as Gymnasium environments: they pass Gymnasium's own check, and their public is that of `simulate`."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import albatross.gym
from albatross import datasets, simulate
from albatross.core.errors import InvalidInput
from albatross.environments import from_file
from albatross.environments.synthetic import WORLDS, Gaussian
from albatross.gym import Recommendation
from albatross.policies.random import Random

pytestmark = pytest.mark.xdist_group("random")

SMALL: dict[str, Any] = {"n_users": 9, "n_items": 12, "rank": 2}
OFFERS: dict[str, dict[str, Any]] = {
    "all": {},
    "subset": {"candidates": 5},
    "fresh": {"candidates": 5, "fresh": True},
    "once": {"candidates": 8, "repeats": False},
}
each_offer = pytest.mark.parametrize("offers", OFFERS.values(), ids=OFFERS)


@each_offer
@pytest.mark.parametrize("name", WORLDS)
def test_it_passes_the_check_of_gymnasium(name: str, offers: dict[str, Any]) -> None:
    check_env(gymnasium.make(f"albatross/{name}", horizon=50, world=SMALL | offers).unwrapped)


def test_every_data_set_is_registered() -> None:
    registered = {name for name in gymnasium.registry if name.startswith("albatross/")}
    assert registered == {f"albatross/{name}" for name in (*WORLDS, *datasets.names())}


def test_a_file_of_ratings_passes_too(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\nann,emma,5\nann,ulysses,2\nbob,emma,3\nbob,dune,4\n")
    check_env(Recommendation(str(file), horizon=20), skip_render_check=True)
    env = Recommendation(from_file(file), horizon=20)
    observation, _ = env.reset(seed=0)
    masks = {0: [1, 1, 0], 1: [1, 0, 1]}
    assert observation["action_mask"].tolist() == masks[observation["user"]]


@each_offer
def test_the_same_actions_meet_the_same_public(offers: dict[str, Any]) -> None:
    world = Gaussian(**SMALL, **offers)
    lived = simulate(Random(), world, 60, seed=4)
    env = Recommendation(world, horizon=60)
    observation, info = env.reset(seed=4)
    assert info == {"seed": 4}
    for step in range(60):
        assert observation["user"] == lived.users[step]
        assert observation["action_mask"][lived.items[step]] == 1
        observation, reward, terminated, truncated, info = env.step(lived.items[step])
        assert reward == lived.rewards[step]
        assert info == {"pseudo_regret": lived.pseudo_regret[step], "offered": True}
        assert (terminated, truncated) == (False, step == 59)
    assert not observation["action_mask"].any()


def test_a_mask_has_the_items_that_may_be_shown() -> None:
    env = Recommendation("uniform", horizon=30, world=SMALL | {"candidates": 4, "repeats": False})
    observation, _ = env.reset(seed=0)
    shown = set()
    truncated = False
    while not truncated:
        action = np.int64(env.action_space.sample(mask=observation["action_mask"]))
        assert (observation["user"], action) not in shown
        shown.add((observation["user"], action))
        observation, _, _, truncated, info = env.step(action)
        assert info["offered"]
    assert len(shown) == 30


def test_who_is_shown_nothing_leaves() -> None:
    world = Gaussian(**SMALL, candidates=5, fresh=True)
    env = Recommendation(world, horizon=40, penalty=-3.0)
    lived = simulate(Random(), world, 40, seed=1)
    observation, _ = env.reset(seed=1)
    for step in range(40):
        assert observation["user"] == lived.users[step], "the public does not depend on the actions"
        action = lived.items[step] if step % 2 else np.flatnonzero(observation["action_mask"] == 0)[0]
        observation, reward, _, _, info = env.step(action)
        assert reward == (lived.rewards[step] if step % 2 else -3.0)
        assert info["offered"] == bool(step % 2)
        assert info["pseudo_regret"] == lived.best[step] - (lived.expected[step] if step % 2 else -3.0)


def test_without_a_penalty_what_is_not_offered_is_refused() -> None:
    env = Recommendation("gaussian", horizon=10, penalty=None, world=SMALL | {"candidates": 5})
    observation, _ = env.reset(seed=0)
    action = np.flatnonzero(observation["action_mask"] == 0)[0]
    with pytest.raises(InvalidInput, match=f"action is {action}, an item that is not offered; accepted"):
        env.step(action)
    env.step(np.flatnonzero(observation["action_mask"])[0])


def test_every_episode_without_a_seed_has_another_public() -> None:
    env = Recommendation("gaussian", horizon=10, world=SMALL)
    seeds = [env.reset(seed=seed)[1]["seed"] for seed in (3, None, None)]
    assert len(set(seeds)) == 3
    assert [env.reset(seed=seed)[1]["seed"] for seed in (3, None, None)] == seeds


def test_a_step_needs_somebody_to_show_it_to() -> None:
    env = Recommendation("gaussian", horizon=1, world=SMALL)
    with pytest.raises(InvalidInput, match=r"accepted: reset\(\) first"):
        env.step(np.int64(0))
    env.reset(seed=0)
    env.step(np.int64(0))
    with pytest.raises(InvalidInput, match=r"accepted: reset\(\) first"):
        env.step(np.int64(0))


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="horizon is 0"):
        Recommendation("gaussian", horizon=0)
    with pytest.raises(InvalidInput, match="unknown data set 'gausian'"):
        Recommendation("gausian")
    with pytest.raises(InvalidInput, match="beside an environment"):
        Recommendation(Gaussian(), world={"rank": 3})


def test_without_gymnasium_the_import_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import albatross.gym"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: albatross.gym needs Gymnasium, which is not installed; accepted: pip install" in finished.stderr
    assert albatross.gym.__all__ == ["Recommendation"]
