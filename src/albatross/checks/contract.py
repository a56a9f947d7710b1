"""Checks of what the rest of the library assumes of a policy."""

import json
import pickle
import tempfile
from pathlib import Path

import numpy as np

from albatross.checks.worlds import WORLD, Checkerboard, beginner, experienced
from albatross.core.agent import Agent, choose, learn
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.kernels.compiling import program
from albatross.policies import create
from albatross.simulation.loop import live
from albatross.simulation.trial import simulate


def chooses_only_candidates(policy: Policy) -> None:
    """The choice is always one of the candidates, and choice and slate agree."""
    agent = experienced(policy)
    random = stream(1, "check")
    for size in range(1, agent.n_items + 1):
        candidates = random.choice(agent.n_items, size, replace=False)
        choice = agent.select(int(random.integers(agent.n_users)), candidates)
        assert choice.item in candidates, f"chose {choice.item} of {candidates}"
        assert np.isclose(choice.score, choice.mean + choice.bonus)
    assert 0 <= agent.select(0).item < agent.n_items


def recommends_the_best_scores(policy: Policy) -> None:
    """A list of n items has the n best scores, in order, each item once."""
    agent = experienced(policy)
    for candidates in (None, [9, 2, 7, 4]):
        n_candidates = agent.n_items if candidates is None else len(candidates)
        for n in (1, 3, n_candidates):
            ranking = agent.recommend(2, n, candidates)
            scores = np.sort(agent.slate.scores[:n_candidates])[::-1]
            assert [choice.score for choice in ranking] == scores[:n].tolist()
            assert len({choice.item for choice in ranking}) == n
            assert all(choice.item in (candidates or range(agent.n_items)) for choice in ranking)


def select_changes_nothing(policy: Policy) -> None:
    """A recommendation without a rating changes nothing that was learned."""
    agent = experienced(policy)
    state, learning = agent.state_id, agent.learning.bit_generator.state
    for user in range(agent.n_users):
        agent.select(user)
        agent.select(user, [1, 2])
    assert agent.state_id == state, "select changed the state"
    assert agent.learning.bit_generator.state == learning, "select drew from the stream for learning"


def same_seed_same_life(policy: Policy) -> None:
    """A trial is a function of its recipe and its seed."""
    first, second = (simulate(policy, WORLD, horizon=200, seed=3) for _ in range(2))
    assert np.array_equal(first.items, second.items)
    assert first.state_id == second.state_id


def replay_equals_live(policy: Policy) -> None:
    """The learned state is a fold over the ratings in order: replaying them gives the same state, bit for bit."""
    lived = simulate(policy, WORLD, horizon=200, seed=7)
    agent = beginner(policy)
    agent.replay(lived.users, lived.items, lived.rewards)
    assert agent.state_id == lived.state_id
    one_by_one = beginner(policy)
    for user, item, reward in zip(lived.users, lived.items, lived.rewards, strict=True):
        one_by_one.update(int(user), int(item), float(reward))
    assert one_by_one.state_id == lived.state_id


def snapshot_resumes_exactly(policy: Policy) -> None:
    """An agent loaded from disk continues exactly as the one that was saved."""
    agent = experienced(policy)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        agent.save(path)
        twin = Agent.load(path, policy, agent._truth)
    assert twin.state_id == agent.state_id
    for user in range(agent.n_users):
        choices = [each.select(user) for each in (agent, twin)]
        assert repr(choices[0]) == repr(choices[1])
        for each in (agent, twin):
            each.update(user, choices[0].item, 3.0)
    assert twin.state_id == agent.state_id


def growth_keeps_beliefs(policy: Policy) -> None:
    """Growth for new users and items changes no score of the old ones, and the new ones can be served."""
    agent = experienced(policy)
    old_users, old_items = range(agent.n_users), list(range(agent.n_items))

    def scores() -> list[str]:
        agent.exploring = stream(5, "check")
        return [repr(agent.select(user, old_items)) for user in old_users]

    before = scores()
    agent.grow(2 * agent.n_users + 1, 2 * agent.n_items + 1)
    assert scores() == before
    agent.update(agent.n_users - 1, agent.n_items - 1, 4.0)
    assert 0 <= agent.select(agent.n_users - 1).item < agent.n_items


def config_round_trips(policy: Policy) -> None:
    """A policy is its name and its parameters, which are plain values. Another process gets an equal policy."""
    parameters = json.loads(json.dumps(policy.parameters()))
    assert type(policy)(**parameters) == policy
    assert hash(type(policy)(**parameters)) == hash(policy)
    if policy.__module__.startswith("albatross.policies."):
        assert create(policy.policy_name(), parameters) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy


def scores_finite(policy: Policy) -> None:
    """Every candidate gets a finite mean, and a score that is not NaN."""
    agent = experienced(policy)
    for user in range(agent.n_users):
        agent.recommend(user, 1)  # a ranking looks at all candidates, where a choice need not
        assert np.isfinite(agent.slate.means).all(), "a mean is not finite"
        assert not np.isnan(agent.slate.scores).any(), "a score is not a number"


def serves_a_stranger(policy: Policy) -> None:
    """The very first user, and a user without ratings, get an item."""
    assert 0 <= beginner(policy).select(0).item < WORLD.n_items
    agent = beginner(policy)
    agent.replay([0] * 20, list(range(10)) * 2, [4.0] * 20)
    choice = agent.select(agent.n_users - 1)
    assert 0 <= choice.item < agent.n_items
    assert np.isfinite(choice.mean)


def compiles_once(policy: Policy) -> None:
    """Other sizes, worlds and parameters use the same machine code."""
    simulate(policy, WORLD, horizon=10, seed=0)
    state = type(beginner(policy).state)
    entries = (program(choose, state), program(learn, state), program(live))
    compiled = [len(getattr(entry, "signatures", [])) for entry in entries]
    simulate(policy, Checkerboard(n_users=3, n_items=4), horizon=20, seed=1)
    again = sum(len(getattr(entry, "signatures", [])) for entry in entries) - sum(compiled)
    assert again == 0, f"compiled {again} more times for another world"
