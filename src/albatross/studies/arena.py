"""Policies side by side, to be watched while they run: all trials are at the same step, and can be shown at any step."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import Environment, Named
from albatross.core.foreign.plain import Player
from albatross.core.memory import require_memory
from albatross.core.policy import Policy
from albatross.core.streams import stream
from albatross.simulation.trial import begin
from albatross.studies.comparison import Comparison, contenders_of
from albatross.studies.showing import label
from albatross.studies.statistics import N_RESAMPLES, Estimate, mean_over_seeds, paired_difference
from albatross.studies.trials import Trial, checkpoints, result_of

QUANTITIES = ("regret", "pseudo_regret")
"""The curves of each policy; both are cumulative."""
DRAFT_RESAMPLES = 500
"""For intervals of intermediate pictures; the last picture has as many as every report."""
TICKER_STEPS = 10
SLICE_SECONDS = 0.05
"""About how long all trials advance before other work gets a turn."""
PICTURE_SECONDS = 0.25
"""Minimum time between two pictures."""
DIGITS = 6
"""Significant digits of drawn numbers."""

Curve = dict[str, list[float | None]]
Picture = dict[str, Any]
"""Plain JSON values."""


class Course(NamedTuple):
    """The trials of one policy, one per seed."""

    policy: Policy
    trials: list[Trial]
    lives: list[Any]


class Arena:
    """All policies with all seeds, in one process."""

    def __init__(
        self,
        policies: Sequence[Policy | type[Policy] | Callable[..., Player]],
        dataset: str,
        environment: Environment,
        horizon: int,
        seeds: Sequence[int],
    ) -> None:
        self.dataset, self.environment, self.horizon, self.seeds = dataset, environment, horizon, seeds
        self.done = 0
        grid = [(policy, [Trial(policy, environment, horizon, seed) for seed in seeds]) for policy in contenders_of(policies)]
        together = sum(trial.footprint() for _, trials in grid for trial in trials)
        require_memory(together, f"{len(grid)} policies with {len(seeds)} seeds at the same time")
        self.courses = [
            Course(policy, trials, [begin(trial.policy, environment, horizon, trial.seed) for trial in trials]) for policy, trials in grid
        ]
        self._checkpoints = checkpoints(horizon)
        self._passed: list[int] = []
        self._totals = np.zeros((len(QUANTITIES), len(grid), len(seeds)))
        self._history: list[NDArray[np.float64]] = []
        """The totals at each passed checkpoint."""

    def advance(self, n_steps: int) -> None:
        """Advance every trial by so many steps, but not beyond the horizon."""
        target = min(self.done + n_steps, self.horizon)
        while self.done < target:
            checkpoint = int(self._checkpoints[len(self._passed)])
            stop = min(target, checkpoint)
            for place, course in enumerate(self.courses):
                for number, life in enumerate(course.lives):
                    life.advance(stop - self.done)
                    record, since = life.public.record, slice(self.done, stop)
                    best = record.best[since]
                    self._totals[0, place, number] += np.sum(best - record.rewards[since])
                    self._totals[1, place, number] += np.sum(best - record.expected[since])
            self.done = stop
            if stop == checkpoint:
                self._passed.append(stop)
                self._history.append(self._totals.copy())

    def picture(self, n_resamples: int = DRAFT_RESAMPLES) -> Picture:
        """Everything visible at this step."""
        steps, totals = self._passed, self._history
        if self.done and (not steps or steps[-1] < self.done):
            steps, totals = [*steps, self.done], [*totals, self._totals]
        values = np.array([np.zeros_like(self._totals), *totals])  # step, quantity, policy, seed
        regret = values[:, 0].transpose(1, 2, 0)
        best = int(np.argmin(regret[:, :, -1].mean(axis=1)))
        return {
            "dataset": self.dataset,
            "users": self.environment.n_users,
            "items": self.environment.n_items,
            "protocol": self.courses[0].trials[0].protocol(),
            "seeds": list(self.seeds),
            "horizon": self.horizon,
            "done": self.done,
            "steps": [0, *steps],
            "best": best,
            "policies": [
                {
                    "label": label(course.policy),
                    "curves": {
                        name: _curve(mean_over_seeds(values[:, at, place].T, stream(0, "bootstrap"), n_resamples=n_resamples))
                        for at, name in enumerate(QUANTITIES)
                    },
                    "difference": _curve(paired_difference(regret[place], regret[best], stream(0, "bootstrap"), n_resamples)),
                }
                for place, course in enumerate(self.courses)
            ],
            "ticker": list(self._ticker()),
        }

    def _ticker(self) -> Iterator[dict[str, Any]]:
        """The latest steps at the first seed: the same user for every policy, the item each showed, and the rating."""
        named = self.environment if isinstance(self.environment, Named) else None
        lives = [course.lives[0] for course in self.courses]
        for step in range(self.done - 1, max(self.done - TICKER_STEPS, 0) - 1, -1):
            user = int(lives[0].public.users[step])
            yield {
                "step": step + 1,
                "user": str(user) if named is None else named.user_name(user),
                "shown": [
                    {
                        "item": str(item) if named is None else named.item_name(item),
                        "rating": _number(life.public.record.rewards[step]),
                        "missed": _number(life.public.record.best[step] - life.public.record.expected[step]),
                    }
                    for life in lives
                    for item in [int(life.public.record.items[step])]
                ],
            }

    def comparison(self) -> Comparison:
        """The result of `compare` with the same arguments, bit for bit, except for the time it took."""
        results = {
            course.policy: [result_of(trial, life.recording()) for trial, life in zip(course.trials, course.lives, strict=True)]
            for course in self.courses
        }
        return Comparison(self.dataset, self.environment, self.horizon, self.seeds, self.courses[0].trials[0].protocol(), 1, None, results)


def run_before_eyes(arena: Arena, allow: Callable[[], float], show: Callable[[Picture], None]) -> None:
    """Run all steps. `allow` returns the permitted steps per second, and waits while there are none; `show` gets the pictures."""
    show(arena.picture())
    shown = debt = 0.0
    n_steps, before = 1, time.monotonic()
    while arena.done < arena.horizon:
        speed = allow()
        now = time.monotonic()
        # Steps that are due, at most one picture's worth: after a pause they should not all run at once.
        debt = min(debt + speed * (now - before), max(1.0, speed * PICTURE_SECONDS))
        before = now
        if debt < 1.0:
            time.sleep(min(max((1.0 - debt) / speed, 1e-3), PICTURE_SECONDS))
            continue
        due = int(min(n_steps, debt))
        arena.advance(due)
        debt -= due
        took = time.monotonic() - now
        n_steps = max(1, int(n_steps * min(2.0, SLICE_SECONDS / max(took, 1e-6)))) if due == n_steps or took > SLICE_SECONDS else n_steps
        if now - shown > PICTURE_SECONDS and arena.done < arena.horizon:
            show(arena.picture())
            shown = time.monotonic()
    show(arena.picture(N_RESAMPLES))


def _curve(estimate: Estimate) -> Curve:
    return {name: [_number(value) for value in getattr(estimate, name)] for name in Estimate._fields}


def _number(value: float) -> float | None:
    """Rounded to visible digits; None without an interval."""
    return None if np.isnan(value) else float(f"{value:.{DIGITS}g}")
