"""Checks of a policy in plain Python, whose state is not visible."""

import json
import random
from collections.abc import Callable

import numpy as np

from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import Plain
from albatross.environments.synthetic import Uniform
from albatross.metrics.ndcg import NDCG
from albatross.simulation.trial import simulate

WORLD = Uniform(n_users=6, n_items=12, rank=2, candidates=4)
OFFERS = (WORLD, Uniform(n_users=6, n_items=12, rank=2, candidates=4, fresh=True), Uniform(n_users=6, n_items=12, rank=2, repeats=False))
STEPS = 60


def chooses_only_candidates(policy: Plain) -> None:
    """The choice is always one of the candidates."""
    for world in OFFERS:
        try:
            simulate(policy, world, STEPS, seed=0)
        except InvalidInput as error:
            raise AssertionError(str(error)) from error


def same_seed_same_life(policy: Plain) -> None:
    """A trial is a function of its recipe and its seed."""
    first, second = (simulate(policy, WORLD, STEPS, seed=3) for _ in range(2))
    assert np.array_equal(first.items, second.items), "two lives with the same seed differ"


def nothing_global_is_random(policy: Plain) -> None:
    """Random numbers come from the given generator, not from a global one."""
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    simulate(policy, WORLD, STEPS, seed=0)
    assert random.getstate() == before[0], "drew from the module random"
    assert repr(np.random.get_state()) == before[1], "drew from numpy.random"  # noqa: NPY002


def scores_every_candidate(policy: Plain) -> None:
    """If there is a method `scores`, it returns a number for every candidate."""
    player = policy.player(WORLD.n_users, WORLD.n_items, np.random.default_rng(0))
    if not hasattr(player, "scores"):
        return
    try:
        simulate(policy, WORLD, STEPS, seed=0, ndcg=NDCG())
    except InvalidInput as error:
        raise AssertionError(str(error)) from error


def config_round_trips(policy: Plain) -> None:
    """A policy is its maker and its parameters, which are plain values."""
    parameters = json.loads(json.dumps(policy.parameters()))
    assert type(policy)(**parameters) == policy
    assert hash(type(policy)(**parameters)) == hash(policy)


CHECKS: dict[str, Callable[[Plain], None]] = {
    check.__name__: check
    for check in (chooses_only_candidates, same_seed_same_life, nothing_global_is_random, scores_every_candidate, config_round_trips)
}
