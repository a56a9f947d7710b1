"""Messages and progress while trials run. Nothing here prints; the command line or a notebook decides where messages go."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from albatross.core.memory import memory_limit, show_bytes
from albatross.studies.showing import label
from albatross.studies.trials import Trial

MUCH_MEMORY = 50_000_000
"""From so many bytes on, there is a warning beforehand."""

Progress = Callable[[int], None]
"""Called with the number of steps done since the last call."""


def _unheard(sentence: str) -> None:
    pass


def _unwatched(steps: int) -> AbstractContextManager[Progress | None]:
    return nullcontext()


@dataclass(frozen=True)
class Observer:
    """Functions to call with news, with warnings and with progress; each is optional."""

    tell: Callable[[str], None] = _unheard
    warn: Callable[[str], None] = _unheard
    watch: Callable[[int], AbstractContextManager[Progress | None]] = _unwatched
    """Gets the total number of steps, and returns a function for the steps done, or None if progress is not shown."""

    def warn_of_memory(self, trials: Sequence[Trial]) -> None:
        """Warn beforehand about policies that take much memory."""
        for policy, trial in {trial.policy: trial for trial in trials}.items():
            if MUCH_MEMORY <= trial.footprint() <= memory_limit():  # what does not fit is refused, with the estimate
                sizes = f"{trial.environment.n_users:,} users, {trial.environment.n_items:,} items, {trial.horizon:,} steps"
                self.warn(f"{label(policy)} takes up to {show_bytes(trial.footprint())} of memory ({sizes})")


NOBODY = Observer()
