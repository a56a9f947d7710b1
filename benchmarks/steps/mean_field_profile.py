"""Where the time goes for mean-field, kernel by kernel: the clock is read before and after each of them, step by step."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import World
from albatross.core.state import reserve
from albatross.environments.world import arrivals, expected_reward, offer, reaction, reaction_draws
from albatross.kernels.compiling import program
from albatross.kernels.counting import any_best
from albatross.kernels.mean_field.choosing import any_stranger, count_own, largest_variances, list_met, look_at_others, look_at_own
from albatross.kernels.mean_field.learning import add_rating, meet_item, note_newcomer, place_user, refit_item, refit_user, refresh
from albatross.kernels.mean_field.measuring import measure_listed, weigh_partners
from albatross.kernels.mean_field.moments import row_start
from albatross.kernels.mean_field.population import count_rating, learn_population
from albatross.kernels.mean_field.valuing import nothing_known, rank_items, reach_of, returning_part, scales_of, value_stranger
from albatross.kernels.operations import Slate
from albatross.policies.mean_field import MeanField
from albatross.studies.reproducing.paper import available_environments
from benchmarks.measuring import Line, Quantity
from benchmarks.steps.stepping import Watched, new_reading, now, reading_cost

PARTS = (
    "place_user",
    "list_met",
    "measure_listed",
    "scales_of",
    "look_at_own",
    "look_at_others",
    "equals",
    "world",
    "newcomer",
    "add_rating",
    "refit_user",
    "refit_item",
    "learn_population",
    "refresh",
)


def watch_parts(
    state: Any,
    settings: Any,
    scratch: Any,
    world: World,
    slate: Slate,
    users: NDArray[np.int32],
    draws: NDArray[np.float64],
    moments: NDArray[np.int64],
    reading: NDArray[np.int64],
    exploring: np.random.Generator,
    learning: np.random.Generator,
) -> None:
    room = scratch.room
    for step in range(users.size):
        user = int(users[step])
        start, stop = offer(world, user)
        candidates = world.items[start:stop]
        n_candidates = candidates.size if candidates.size > 0 else state.item_moments.shape[0]
        moments[step, 0] = now(reading)
        if state.counts[0].ratings == 0:
            position, _ = nothing_known(n_candidates, slate, exploring)
            for part in range(1, 8):
                moments[step, part] = now(reading)
        else:
            place_user(state, room, user)
            moments[step, 1] = now(reading)
            weigh_partners(scratch)
            n_listed, n_strangers = list_met(state, scratch, candidates)
            moments[step, 2] = now(reading)
            measure_listed(state, scratch, scratch.listed[: n_listed if candidates.size > 0 else 0], n_listed, scratch.means)
            moments[step, 3] = now(reading)
            rated, back, favourite = count_own(state, scratch, user, candidates, n_listed)
            returns, offered = returning_part(state, settings, n_candidates, rated, back)
            scales = scales_of(state, settings, scratch, returns, offered, float(n_strangers))
            strange_score = value_stranger(scratch, scales) if n_strangers > 0 else -math.inf
            moments[step, 4] = now(reading)
            reach = reach_of(scales, *largest_variances(scratch, n_listed))
            best, place, mean, ties = look_at_own(
                state, settings, scratch, scales, reach, user, favourite, candidates, n_listed, -math.inf, 0, 0.0, 0
            )
            moments[step, 5] = now(reading)
            best, place, mean, ties = look_at_others(scratch, scales, reach, n_listed, strange_score, best, place, mean, ties)
            position = int(scratch.places[place]) if candidates.size > 0 else place
            moments[step, 6] = now(reading)
            if strange_score > best:
                position = any_stranger(state, candidates, n_candidates, int(exploring.random() * n_strangers) if n_strangers > 1 else 0)
            elif ties != 1 or strange_score == best:
                rank_items(state, settings, scratch, user, candidates, slate)
                position, _ = any_best(slate.scores, n_candidates, exploring)
            moments[step, 7] = now(reading)
        item = int(candidates[position]) if candidates.size > 0 else position
        reward = reaction(world, expected_reward(world, user, position, item), draws[step])
        moments[step, 8] = now(reading)
        count_rating(state, user, reward)
        if state.item_moments[item, row_start(state.item_variance.size) - 1] == 0.0:
            note_newcomer(state, room, user, reward)
            meet_item(state, room, item, learning)
        moments[step, 9] = now(reading)
        news = add_rating(state, room, user, item, reward)
        moments[step, 10] = now(reading)
        if news:
            refit_user(state, room, user, 0.0)
        moments[step, 11] = now(reading)
        if news:
            refit_item(state, room, item, 0.0)
        moments[step, 12] = now(reading)
        learn_population(state, settings.refreshes, room.once)
        moments[step, 13] = now(reading)
        refresh(state, room, settings.refreshes)
        moments[step, 14] = now(reading)


def seconds_per_part(environment: Any, horizon: int) -> NDArray[np.float64]:
    watched = Watched(MeanField(), environment)
    agent = watched.agent
    users = arrivals(watched.world, watched.arrivals, horizon)
    draws = reaction_draws(watched.world, watched.moods, horizon)
    agent.state = reserve(agent.state, horizon)
    moments, reading = np.zeros((horizon, len(PARTS) + 1), np.int64), new_reading(0)
    before = (agent.state, agent.settings, agent.scratch, watched.world, agent.slate)
    program(watch_parts, type(agent.state))(*before, users, draws, moments, reading, agent.exploring, agent.learning)
    return np.maximum(1e-9 * (np.diff(moments, axis=1) - reading_cost(int(reading[2]))), 0.0)


def profile(horizon: int = 25_000) -> Iterator[Line]:
    """Microseconds of each kernel in a step of a whole trial, on each of the paper's data sets that are here."""
    for name, environment in available_environments()[0].items():
        seconds_per_part(environment, 1)
        parts = np.min([seconds_per_part(environment, horizon) for _ in range(3)], axis=0).mean(axis=0)
        for part, seconds in zip(PARTS, parts, strict=True):
            yield Line(f"{name}, {part}", Quantity("kernel", float(seconds)), Quantity("step", float(parts.sum())))
