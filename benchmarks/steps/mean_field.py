"""The default policy beside ALB: steps of whole trials, large catalogues, rankings, learning, single calls, and where the time goes."""

import math
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross import Agent, simulate
from albatross.core.agent import room_for_best
from albatross.core.asking.together import choose_supposing
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.kernels.compiling import program
from albatross.kernels.mean_field.choosing import largest_variances, look_at_others
from albatross.kernels.mean_field.learning import place_user
from albatross.kernels.mean_field.measuring import measure_listed, weigh_partners
from albatross.kernels.mean_field.valuing import Scales, reach_of, scales_of
from albatross.kernels.operations import ALL_ITEMS
from albatross.policies import create
from albatross.policies.alb import ALB
from albatross.policies.mean_field import MeanField
from albatross.studies.reproducing.paper import available_environments
from benchmarks.measuring import Line, Quantity, cpu_seconds, medians_in_turns
from benchmarks.steps.grid import NEAR_THE_LIMIT
from benchmarks.steps.limit import seconds as least_seconds
from benchmarks.steps.limit import terms_of_mean_field
from benchmarks.steps.stepping import Watched, new_reading, now

N_USERS, N_RATINGS = 20_000, 60_000
HORIZON = 25_000


def steps() -> Iterator[Line]:
    """A step of a whole trial on each available data set of the paper, both policies with their defaults."""
    for name, environment in available_environments()[0].items():
        for policy in (MeanField(), ALB()):
            simulate(policy, environment, horizon=1)  # compiles or loads

        def one_step(policy: Policy, seed: int, environment: Any = environment) -> float:
            return simulate(policy, environment, HORIZON, seed).seconds / HORIZON

        slow, quick = medians_in_turns(partial(one_step, MeanField()), partial(one_step, ALB()), repetitions=3)
        yield Line.at_most(f"step, {name}", Quantity("mean-field", slow), Quantity("ALB", quick), 2.0)


def _informed(policy: Policy, n_items: int, n_ratings: int = N_RATINGS) -> Agent:
    """An agent that has learned from ratings of items at random."""
    random = np.random.default_rng(0)
    world = Gaussian(n_users=N_USERS, n_items=n_items).world(0)
    users, items = random.integers(N_USERS, size=n_ratings), random.integers(n_items, size=n_ratings)
    means = np.einsum("sk,sk->s", world.user_factors[users], world.item_factors[items])
    agent = Agent(policy, N_USERS, n_items)
    agent.replay(users, items, means + world.spread * random.standard_normal(n_ratings))
    agent.select(0)  # arranges the catalogue
    return agent


def search(sizes: tuple[tuple[int, float], ...] = ((100_000, 1 / 3), (1_000_000, 1 / 5))) -> Iterator[Line]:
    """The best item, of all and of all but three, against scoring every item, in turns; each after a rating."""
    for n_items, most in sizes:
        agent = _informed(MeanField(), n_items)
        others = np.delete(np.arange(n_items, dtype=np.int32), [3, 5, 7])
        random = np.random.default_rng(1)
        seconds: dict[str, list[float]] = {"search": [], "search, exclude": [], "every item": []}
        for _ in range(30):
            user = int(random.integers(N_USERS))
            agent.update(user, int(random.integers(n_items)), 1.0)
            for name, offered, whole in (("search", ALL_ITEMS, False), ("search, exclude", others, False), ("every item", ALL_ITEMS, True)):
                seconds[name].append(cpu_seconds(partial(agent._choose, user, offered, whole)))
        medians = {name: Quantity(name, statistics.median(taken)) for name, taken in seconds.items()}
        for name in ("search", "search, exclude"):
            yield Line.at_most(f"best of {n_items:,} items, rank 5", medians[name], medians["every item"], round(most, 3))


def scoring(catalogues: tuple[tuple[int, int], ...] = ((5, 1_682), (5, 20_000), (16, 1_682), (32, 1_682))) -> Iterator[Line]:
    """The best of all items, none of which the user has rated, against the multiply-adds alone: the quickest of repetitions in turns."""
    for rank, n_items in catalogues:
        agent = _informed(MeanField(rank=rank), n_items)
        state, settings, scratch = agent.state, agent.settings, agent.scratch
        place_user(state, scratch.room, 0)
        weigh_partners(scratch)
        scales = scales_of(state, settings, scratch, 1.0, float(n_items), float(n_items - state.counts[0].items))
        repetitions, terms = max(4, min(200, 10_000_000 // (n_items * rank))), terms_of_mean_field(rank)
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(5):
            moments = np.zeros(repetitions + 1, np.int64)
            program(score, type(state))(state, scratch, scales, moments, new_reading(n_items))
            taken[0].append(1e-9 * float(np.diff(moments).min()))
            taken[1].append(float(least_seconds(state.item_columns, terms, repetitions).min()))
        what, one, other = f"scoring, k = {rank}, m = {n_items:,}", Quantity("mean-field", min(taken[0])), Quantity("limit", min(taken[1]))
        yield Line.at_most(what, one, other, NEAR_THE_LIMIT) if rank == 5 else Line(what, one, other)


def score(state: Any, scratch: Any, scales: Scales, moments: NDArray[np.int64], reading: NDArray[np.int64]) -> None:
    """Find the best of all items once per moment, and read the clock before each time and at the end."""
    n_items = state.item_moments.shape[0]
    for repetition in range(moments.size - 1):
        moments[repetition] = now(reading)
        measure_listed(state, scratch, scratch.listed[:0], n_items, scratch.means)
        reach = reach_of(scales, *largest_variances(scratch, n_items))
        _, place, _, _ = look_at_others(scratch, scales, reach, n_items, -math.inf, -math.inf, 0, 0.0, 0)
        scratch.nearby[0] = place
    moments[-1] = now(reading)


def rankings() -> Iterator[Line]:
    """The ten best items against the best one, of a hundred thousand."""
    for policy in (MeanField(), ALB()):
        agent = _informed(policy, 100_000)

        def seconds(n: int, user: int, agent: Agent = agent) -> float:
            room = room_for_best(n) if n > 1 else ALL_ITEMS
            return min(cpu_seconds(partial(agent._choose, user, ALL_ITEMS, False, room)) for _ in range(3))

        ten, one = medians_in_turns(partial(seconds, 10), partial(seconds, 1), repetitions=50)
        yield Line.at_most(f"10 best of 100,000, {policy.policy_name()}", Quantity("10 best", ten), Quantity("best", one), 1.5)


MOST_LEARNING = ((1_700, 8e-6), (1_000_000, 12e-6))


def learning() -> Iterator[Line]:
    """A rating learned by replay: a hundred thousand ratings of twenty thousand users, the second half of them."""
    for n_items, limit in MOST_LEARNING:
        agent, random = _informed(MeanField(), n_items, 50_000), np.random.default_rng(2)
        seconds = []
        for _ in range(10):
            ratings = random.integers(N_USERS, size=5_000), random.integers(n_items, size=5_000), random.standard_normal(5_000)
            seconds.append(cpu_seconds(partial(agent.replay, *ratings)) / 5_000)
        yield Line.at_most(f"learning, {n_items:,} items", Quantity("rating", min(seconds)), Quantity("limit", limit), 1.0)


BEYOND = 12e-6


def single(names: tuple[str, ...] = ("mean-field", "alb", "item-ucb")) -> Iterator[Line]:
    """The time of one call from Python beyond its compiled code, with 1,700 items."""
    for name in names:
        watched = Watched(create(name), Gaussian(n_users=1_000, n_items=1_700))
        watched.live(2_000, whole=False)
        inside = watched.live(2_000, whole=False)
        for part, compiled in (("select", inside.select), ("update", inside.update)):
            beyond = float(np.median(_calls(watched.agent, part)) - np.median(compiled))
            yield Line.at_most(f"{part} from Python, {name}", Quantity("beyond kernel", beyond), Quantity("limit", BEYOND), 1.0)


def in_service() -> Iterator[Line]:
    """A choice among 1,700 items as a service makes it, against scoring the whole slate, after 60,000 ratings with vectors behind them."""
    random, (n_users, n_items, n_ratings) = np.random.default_rng(0), (1_000, 1_700, 60_000)
    tastes, features = random.normal(size=(n_users, 5)), random.normal(size=(n_items, 5))
    users, items = random.integers(n_users, size=n_ratings), random.integers(n_items, size=n_ratings)
    liked = 3.0 + (tastes[users] * features[items]).sum(axis=1) / 1.5 + 0.5 * random.normal(size=n_ratings)
    agent, offered = Agent(MeanField(), n_users, n_items), np.arange(n_items, dtype=np.int32)
    agent.replay(users, items, np.clip(np.round(liked), 1.0, 5.0))
    for n_pending in (0, 3):
        pending = (offered[5 : 5 + n_pending], np.full(n_pending, math.nan))

        def choose(whole: bool, repetition: int, pending: tuple[Any, ...] = pending) -> float:
            place = (repetition % n_users, offered, *pending, whole, ALL_ITEMS)
            return cpu_seconds(lambda: choose_supposing(agent, agent.exploring, *place))

        best, whole = medians_in_turns(partial(choose, False), partial(choose, True), 4_000)
        yield Line(f"a choice with {n_pending} pending", Quantity("the best", best), Quantity("whole slate", whole))


def _calls(agent: Agent, part: str) -> NDArray[np.float64]:
    """Seconds of two thousand calls, in wall time: they are so short that few are interrupted."""
    random = np.random.default_rng(3)
    users, items = random.integers(agent.n_users, size=2_000).tolist(), random.integers(agent.n_items, size=2_000).tolist()
    taken = np.empty(len(users))
    for step, (user, item) in enumerate(zip(users, items, strict=True)):
        began = time.perf_counter()
        if part == "select":
            agent.select(user)
        else:
            agent.update(user, item, 1.0)
        taken[step] = time.perf_counter() - began
    return taken
