"""What the cost of a step of ALB depends on, and what not; and memory per user, item and pair."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross import Agent
from albatross.core.state import flatten
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from benchmarks.measuring import Line, Quantity
from benchmarks.steps.grid import take
from benchmarks.steps.literal_alb import LiteralALB
from benchmarks.steps.stepping import Steps, Watched

POLICY = ALB(ridge=0.01, noise=0.5)
TURNS = 20
N_STEPS = 200


def users() -> Iterator[Line]:
    """Many users against few, each with ten ratings of 200 items."""
    few, many = (_rated(n_users, n_items=200, n_ratings=10) for n_users in (1_000, 100_000))
    yield from _compared("1,000 → 100,000 users", few, many)


def popularity() -> Iterator[Line]:
    """An item that all of 100,000 users have rated against one that 10 have rated: the visitor has rated both."""
    n_users, popular, obscure = 100_000, 0, 1
    watched = _rated(n_users, n_items=200, n_ratings=10, first=2)
    everybody, few = np.arange(n_users), np.arange(10)
    rewards = (watched.rate(everybody, np.full(n_users, popular)), watched.rate(few, np.full(10, obscure)))
    steps = [watched.live(N_STEPS, *_visits(few, item)) for _ in range(TURNS) for item in (obscure, popular)]
    less, more = _median(steps[::2], "update"), _median(steps[1::2], "update")
    yield Line.at_most("update, item with 10 → 100,000 users", Quantity("more", more), Quantity("fewer", less), 1.2)
    literal = LiteralALB(POLICY, watched.agent.state.user_factors, watched.agent.state.item_factors, n_users + 1_000)
    literal.recall(np.r_[few, everybody], np.repeat([obscure, popular], (10, n_users)), np.r_[rewards[1], rewards[0]])
    taken = {item: [take(literal, int(user), item, 1.0)[1] for user in few] for item in (obscure, popular)}
    less, more = float(np.median(taken[obscure])), float(np.median(taken[popular]))
    yield Line("the same, literal Algorithm 1", Quantity("more", more), Quantity("fewer", less))


def history() -> Iterator[Line]:
    """Users who have rated many distinct items against users who have rated few: what a step must depend on."""
    for fewer, more in ((10, 100), (100, 1_000)):
        yield from _compared(f"{fewer:,} → {more:,} items rated", _rated(100, 1_682, fewer), _rated(100, 1_682, more))


def repeats() -> Iterator[Line]:
    """A long trial against a short one, in which users rate the same 20 items again and again."""
    short, long = (_replayed(n_ratings) for n_ratings in (10_000, 1_000_000))
    yield from _compared("10,000 → 1,000,000 ratings", short[0], long[0], most=1.2)
    seconds = []
    for watched, users, items, rewards in (short, long):
        literal = LiteralALB(POLICY, watched.agent.state.user_factors, watched.agent.state.item_factors, users.size + 10)
        literal.recall(users, items, rewards)
        seconds.append(np.median([take(literal, user, user, 1.0) for user in range(10)], axis=0))
    for part, less, more in zip(("select", "update"), *seconds, strict=True):
        yield Line(f"{part}, the same, literal Algorithm 1", Quantity("more", float(more)), Quantity("fewer", float(less)))


def memory() -> Iterator[Line]:
    """Bytes of a state per user, item and distinct pair: what one more of each adds."""
    for rank in (5, 16, 32):
        policy = ALB(rank=rank)
        vector = Quantity("its vector", 8.0 * rank, "B")
        one_more = {"user": (2_000, 1_000), "item": (1_000, 2_000)}
        for kind, sizes in one_more.items():
            more = (_bytes(Agent(policy, *sizes)) - _bytes(Agent(policy, 1_000, 1_000))) / 1_000
            yield Line(f"memory per {kind}, k = {rank}", Quantity(kind, more, "B"), vector)
    agent = Agent(POLICY, 1_000, 1_000)
    before = _bytes(agent)
    agent.replay(np.arange(1_000), np.arange(1_000), np.ones(1_000))
    agent.replay(np.arange(1_000), np.arange(1_000), np.ones(1_000))  # once more: no further pairs
    pair = Quantity("pair", (_bytes(agent) - before) / 1_000, "B")
    yield Line("memory per distinct pair, any rank", pair, Quantity("two ids, a rating", 16.0, "B"))


def _bytes(agent: Agent) -> int:
    return sum(array.nbytes for _, array in flatten(agent.state))


def _rated(n_users: int, n_items: int, n_ratings: int, first: int = 0) -> Watched:
    """An agent whose every user has rated so many distinct items, in an order in which users take turns at random."""
    watched = Watched(POLICY, Gaussian(n_users=n_users, n_items=n_items))
    random = np.random.default_rng(0)
    users = random.permutation(np.repeat(np.arange(n_users), n_ratings))
    rows = random.permuted(np.broadcast_to(np.arange(first, n_items), (n_users, n_items - first)), axis=1)[:, :n_ratings]
    visits = np.empty(users.size, np.int64)
    visits[np.argsort(users, kind="stable")] = np.tile(np.arange(n_ratings), n_users)
    watched.rate(users, rows[users, visits])
    return watched


def _replayed(n_ratings: int) -> tuple[Watched, NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """An agent with so many ratings by 200 users, of the same 20 items each, and the ratings."""
    watched = Watched(POLICY, Gaussian())
    visits = np.random.default_rng(0).permutation(n_ratings) % (200 * 20)
    users = visits % 200
    items = (users + visits // 200) % 200
    return watched, users, items, watched.rate(users, items)


def _visits(users: NDArray[Any], item: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return np.resize(users, N_STEPS).astype(np.int32), np.full(N_STEPS, item, np.int32)


def _median(steps: list[Steps], part: str) -> float:
    return float(np.median(np.concatenate([getattr(some, part) for some in steps])))


def _compared(what: str, fewer: Watched, more: Watched, most: float | None = None) -> Iterator[Line]:
    """Steps of two agents in turns, each user being shown what they have rated before, so that histories stay as long as they are."""
    agents = (fewer, more)
    rated = [_rated_items(watched) for watched in agents]
    random = np.random.default_rng(1)
    steps: tuple[list[Steps], list[Steps]] = ([], [])
    for _ in range(TURNS):
        for watched, items, taken in zip(agents, rated, steps, strict=True):
            users = random.integers(items.size, size=N_STEPS)
            taken.append(watched.live(N_STEPS, users.astype(np.int32), items[users]))
    for part in ("select", "update"):
        less, greater = (_median(taken, part) for taken in steps)
        one, other = Quantity("more", greater), Quantity("fewer", less)
        yield Line(f"{part}, {what}", one, other) if most is None else Line.at_most(f"{part}, {what}", one, other, most)


def _rated_items(watched: Watched) -> NDArray[np.int32]:
    """Per user, their first rated item."""
    pairs = watched.agent.state.pairs
    items: NDArray[np.int32] = pairs.items[pairs.first]
    return items
