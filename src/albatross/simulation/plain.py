"""The trial of a policy in plain Python: slower, and before the same public as every other."""

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.plain import Plain
from albatross.core.recording import Recording
from albatross.core.streams import stream
from albatross.metrics.ndcg import NDCG
from albatross.simulation.public import Public, Visits

REPORTED_STEPS = 64
"""How often progress is told: a step may take a tenth of a second."""


def play(
    policy: Plain, environment: Environment, horizon: int, seed: int, ndcg: NDCG | None, progress: Callable[[int], None] | None
) -> Recording:
    """Ask for an item, show it, teach what was said, once per arriving user."""
    public = Public(environment, horizon, seed, ndcg)
    visits = Visits(public, environment.n_items)
    player: Any = policy.player(environment.n_users, environment.n_items, stream(seed, "exploring"))
    if ndcg is not None and not callable(getattr(player, "scores", None)):
        raise InvalidInput(f"NDCG of {policy.policy_name()}, which has no method scores; accepted: scores(user, candidates), or no NDCG")
    seconds = 0.0
    for step in range(horizon):
        user, candidates = visits.arrive()
        n_candidates = candidates.size
        began = time.process_time()  # of all threads: the algebra of a plain policy may use several
        item = player.select(user, candidates)
        seconds += time.process_time() - began
        position = visits.position(int(item)) if isinstance(item, int | np.integer) else None
        if position is None:
            raise InvalidInput(
                f"{policy.policy_name()}: select chose {item!r} for user {user} at step {step}; "
                f"accepted: a whole number, one of the {n_candidates} candidates"
            )
        scores = None if ndcg is None else _scores(policy, player, user, visits.candidates())
        visits.show(position, scores)
        heard = step - public.world.delay
        if heard >= 0:
            said = int(public.users[heard]), int(public.record.items[heard]), float(public.record.rewards[heard])
            began = time.process_time()
            player.update(*said)
            seconds += time.process_time() - began
        if progress is not None and (step + 1) % REPORTED_STEPS == 0:
            progress(REPORTED_STEPS)
    if progress is not None and horizon % REPORTED_STEPS:
        progress(horizon % REPORTED_STEPS)
    return Recording(policy, environment.name, seed, public.users, *public.record, seconds, {}, _lessons(public))


def _scores(policy: Plain, player: Any, user: int, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
    """What the player ranks the candidates by."""
    expected = candidates.size
    scores = np.asarray(player.scores(user, candidates), np.float64)
    if scores.shape != (expected,) or np.isnan(scores).any():
        given = "not a number" if scores.shape == (expected,) else f"of shape {scores.shape}"
        raise InvalidInput(f"{policy.policy_name()}: scores are {given} for user {user}; accepted: {expected} numbers, one per candidate")
    return scores


def _lessons(public: Public) -> str:
    """What a plain policy has learned cannot be seen; this names the ratings it learned from."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (public.users, public.record.items, public.record.rewards):
        digest.update(array.tobytes())
    return digest.hexdigest()
