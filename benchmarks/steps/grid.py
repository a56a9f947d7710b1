"""`select` and `update` of ALB over ranks and sizes of catalogue: against NumPy, the literal algorithm, and the arithmetic limit."""

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.environments.synthetic import Gaussian
from albatross.kernels.compiling import program
from albatross.kernels.search.scoring import optimistic_scores, scoring_block
from albatross.policies.alb import ALB
from benchmarks.measuring import Line, Quantity
from benchmarks.steps import limit
from benchmarks.steps.literal_alb import LiteralALB
from benchmarks.steps.numpy_alb import NumpyALB
from benchmarks.steps.stepping import Watched, new_reading, now

RANKS = (3, 5, 8, 16, 32)
CATALOGUES = (100, 1_682, 20_000, 1_000_000)
N_USERS = 200
N_RATINGS = 25_000
"""Number of past ratings when steps are measured: as many as a trial has, at first of random items."""

TURNS = 5
MOST_BYTES = 4e9
"""Memory limit of the NumPy yardstick: it keeps whole matrices."""

NEAR_THE_LIMIT = 2.5
"""Limit of scoring time in multiples of the arithmetic limit, from MovieLens's 1,682 items on, at the ranks with a target."""

LARGEST = (32, 1_000_000)
"""Rank and catalogue at which an update waits for memory most. It must take no longer there than the literal algorithm's."""


def step(ranks: tuple[int, ...] = (5, 16), catalogues: tuple[int, ...] = (100, 1_682, 20_000)) -> Iterator[Line]:
    """Steps after 25,000 ratings, with all items as candidates; medians of the steps of a turn, and of those the quickest turn."""
    for rank, n_items in product(ranks, catalogues):
        cell = f"k = {rank}, m = {n_items:,}"
        seconds = _medians(rank, n_items)
        compiled = seconds.pop("compiled")
        for name, part in product(seconds, (0, 1)):
            one, other = Quantity(name, seconds[name][part]), Quantity("compiled", compiled[part])
            aim = ("≥ 1", one.amount >= other.amount) if (part, name, rank, n_items) == (1, "literal", *LARGEST) else ("–", None)
            yield Line(f"{('select', 'update')[part]}, {cell}", one, other, *aim)


def largest_step() -> Iterator[Line]:
    yield from step(*((size,) for size in LARGEST))


def whole_step() -> Iterator[Line]:
    yield from step(RANKS, CATALOGUES)


def _medians(rank: int, n_items: int) -> dict[str, list[float]]:
    """Seconds of `select` and `update`: compiled, in NumPy where its sums of all items fit, and literal.

    A virtual machine may take memory away that was not used for some seconds. An update then waits tens of microseconds per page, and
    there are two pages per item. That is not the algorithm's time: before each turn, the sums of all rated items are written as they are.
    They do not stay in a cache, because `select` reads all items before each update.
    """
    policy = ALB(rank=rank, ridge=0.01, noise=0.5)
    watched = Watched(policy, Gaussian(n_users=N_USERS, n_items=n_items, rank=rank))
    random = np.random.default_rng(0)
    users, items = random.integers(N_USERS, size=N_RATINGS), random.integers(n_items, size=N_RATINGS)
    rewards = watched.rate(users, items)
    vectors = (watched.agent.state.user_factors, watched.agent.state.item_factors)
    n_steps = max(4, min(100, 2_000_000 // n_items))
    yardsticks: dict[str, NumpyALB | LiteralALB] = {}
    if 8 * n_items * rank * (rank + 1) <= MOST_BYTES:
        yardsticks["NumPy"] = NumpyALB(policy, *vectors)
    yardsticks["literal"] = LiteralALB(policy, *vectors, horizon=N_RATINGS + TURNS * n_steps)
    for yardstick in yardsticks.values():
        yardstick.recall(users, items, rewards)
    watched.live(1)  # compiles or loads
    measured: dict[str, list[NDArray[np.float64]]] = {name: [] for name in ("compiled", *yardsticks)}
    for _ in range(TURNS):
        for sums in (watched.agent.state.item_grams, watched.agent.state.item_moments):
            sums[items] = sums[items]
        steps = watched.live(n_steps)
        measured["compiled"].append(np.array([steps.select, steps.update]))
        ratings = list(zip(steps.users.tolist(), steps.items.tolist(), steps.rewards.tolist(), strict=True))
        for name, yardstick in yardsticks.items():
            measured[name].append(np.array([take(yardstick, *rating) for rating in ratings]).T)
    return {name: np.median(turns, axis=2).min(axis=0).tolist() for name, turns in measured.items()}


def take(yardstick: NumpyALB | LiteralALB, user: int, item: int, reward: float) -> tuple[float, float]:
    """Seconds of `select` and of `update`, for the item that the policy showed."""
    began = time.thread_time()
    yardstick.select(user)
    selected = time.thread_time()
    yardstick.update(user, item, reward)
    return selected - began, time.thread_time() - selected


def scoring(ranks: tuple[int, ...] = (5, 16), catalogues: tuple[int, ...] = CATALOGUES) -> Iterator[Line]:
    """Scoring all items against the multiply-adds alone: the quickest of repetitions in turns."""
    for rank, n_items in product(ranks, catalogues):
        coordinates = np.asfortranarray(np.random.default_rng(0).normal(size=(n_items, rank)))
        repetitions, terms = max(4, min(200, 10_000_000 // (n_items * rank))), limit.terms_of_alb(rank)
        turns = [(_scoring_seconds(coordinates, repetitions), limit.seconds(coordinates, terms, repetitions)) for _ in range(TURNS)]
        scored, least = (float(min(turn[which].min() for turn in turns)) for which in (0, 1))
        what, one, other = f"scoring, k = {rank}, m = {n_items:,}", Quantity("compiled", scored), Quantity("limit", least)
        aimed = (rank in (5, 16) and n_items >= 1_682) or (rank == 32 and n_items >= 1_000_000)
        yield Line.at_most(what, one, other, NEAR_THE_LIMIT) if aimed else Line(what, one, other)


def whole_scoring() -> Iterator[Line]:
    yield from scoring(RANKS)


def score(
    item_factors: NDArray[np.float64],
    candidates: NDArray[np.int32],
    center: NDArray[np.float64],
    whitener: NDArray[np.float64],
    block: NDArray[np.float64],
    scores: NDArray[np.float64],
    means: NDArray[np.float64],
    moments: NDArray[np.int64],
    reading: NDArray[np.int64],
) -> None:
    """Score all items once per moment, and read the clock before each time and at the end."""
    for repetition in range(moments.size - 1):
        moments[repetition] = now(reading)
        optimistic_scores(item_factors, candidates, center, whitener, 0.5, block, scores, means)
    moments[-1] = now(reading)


def _scoring_seconds(item_factors: NDArray[np.float64], repetitions: int) -> NDArray[np.float64]:
    n_items, rank = item_factors.shape
    moments = np.zeros(repetitions + 1, np.int64)
    user: tuple[Any, ...] = (np.ones(rank), np.tril(np.ones((rank, rank))), scoring_block(rank))
    room = (np.zeros(n_items), np.zeros(n_items), moments, new_reading(n_items))
    program(score)(item_factors, np.empty(0, np.int32), *user, *room)
    return 1e-9 * np.diff(moments)
