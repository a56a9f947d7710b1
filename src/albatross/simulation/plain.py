"""A trial of a policy in plain Python: slower, with the same users and noise as every other trial."""

import hashlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import Plain
from albatross.core.recording import Recording
from albatross.core.streams import stream
from albatross.metrics.ndcg import NDCG
from albatross.simulation.public import Public, Visits

REPORTED_STEPS = 64
"""Progress is reported after so many steps: a step may take a tenth of a second."""


class PlainLife:
    """The trial of a policy in plain Python, in progress."""

    at_once = REPORTED_STEPS

    def __init__(self, policy: Plain, environment: Environment, horizon: int, seed: int, ndcg: NDCG | None) -> None:
        self.public = Public(environment, horizon, seed, ndcg)
        self.done = 0
        self._policy, self._environment, self._horizon, self._seed, self._ranked = policy, environment, horizon, seed, ndcg is not None
        self._visits = Visits(self.public, environment.n_items)
        self._player: Any = policy.player(environment.n_users, environment.n_items, stream(seed, "exploring"))
        if self._ranked and not callable(getattr(self._player, "scores", None)):
            name = policy.policy_name()
            raise InvalidInput(f"NDCG of {name}, which has no method scores; accepted: scores(user, candidates), or no NDCG")
        self._seconds = 0.0

    def advance(self, n_steps: int) -> None:
        for _ in range(min(n_steps, self._horizon - self.done)):
            self._step()

    def _step(self) -> None:
        """Ask for an item, show it, and pass on the reward."""
        policy, player, visits, public = self._policy, self._player, self._visits, self.public
        user, candidates = visits.arrive()
        n_candidates = candidates.size
        began = time.process_time()  # of all threads: the linear algebra of a plain policy may use several
        item = player.select(user, candidates)
        self._seconds += time.process_time() - began
        position = visits.position(int(item)) if isinstance(item, int | np.integer) else None
        if position is None:
            raise InvalidInput(
                f"{policy.policy_name()}: select chose {item!r} for user {user} at step {self.done}; "
                f"accepted: a whole number, one of the {n_candidates} candidates"
            )
        visits.show(position, _scores(policy, player, user, visits.candidates()) if self._ranked else None)
        heard = self.done - public.world.delay
        if heard >= 0:
            said = int(public.users[heard]), int(public.record.items[heard]), float(public.record.rewards[heard])
            began = time.process_time()
            player.update(*said)
            self._seconds += time.process_time() - began
        self.done += 1

    def recording(self) -> Recording:
        public = self.public
        name, seed = self._environment.name, self._seed
        return Recording(self._policy, name, seed, public.users, *public.record, self._seconds, {}, _lessons(public))


def _scores(policy: Plain, player: Any, user: int, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
    """The scores by which the player ranks the candidates."""
    expected = candidates.size
    scores = np.asarray(player.scores(user, candidates), np.float64)
    if scores.shape != (expected,) or np.isnan(scores).any():
        given = "not a number" if scores.shape == (expected,) else f"of shape {scores.shape}"
        raise InvalidInput(f"{policy.policy_name()}: scores are {given} for user {user}; accepted: {expected} numbers, one per candidate")
    return scores


def _lessons(public: Public) -> str:
    """The state of a plain policy is not visible; this digest identifies the ratings it learned from."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (public.users, public.record.items, public.record.rewards):
        digest.update(array.tobytes())
    return digest.hexdigest()
