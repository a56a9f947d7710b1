"""Runs trials on all available cores."""

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from albatross.core.errors import InvalidInput
from albatross.core.foreign.outside import pack
from albatross.core.memory import check_sizes, memory_limit
from albatross.core.sharing.exchange import check_shards
from albatross.kernels.building.sources import is_ours
from albatross.simulation.preparing import prepare
from albatross.studies.ray_engine import check_ray, ray_results
from albatross.studies.trials import Result, Trial, run

REHEARSAL_STEPS = 128


def execute(
    trials: Sequence[Trial], jobs: int, progress: Callable[[int], None] | None = None, engine: str = "local"
) -> Iterator[tuple[int, Result]]:
    """Run trials in so many processes. Yields the position and result of each when it is done, in any order.

    Results depend only on the trials. `progress` is called with the number of steps done since the last call.
    `engine` is local, ray (a cluster is started on this machine) or the address of a cluster, ray://host:port.
    """
    check_engine(engine)
    for trial in trials:
        check_shards(trial.policy, trial.shards)
        check_sizes(trial.policy, trial.environment.n_users, trial.environment.n_items, trial.horizon)
    if engine != "local" and trials:
        _check_portable(trials)
        for position, result in ray_results(trials, _longest_first(trials), None if engine == "ray" else engine):
            if progress is not None:
                progress(trials[position].horizon)
            yield position, result
        return
    jobs = min(jobs, len(trials), _how_many_fit(trials))
    if jobs > 1:
        _check_portable(trials)
    if jobs <= 1:
        _prepare_alone(trials)
        for position, trial in enumerate(trials):
            yield position, run(trial, progress)
        return
    tasks = [(_run_numbered, (position, trials[position])) for position in _longest_first(trials, jobs)]
    with _in_processes(tasks, jobs) as results:
        for position, result in results:
            if progress is not None:
                progress(trials[position].horizon)
            yield position, result


def check_engine(engine: str) -> None:
    """Refuse an engine that cannot run, before anything is compiled."""
    if engine != "local" and engine != "ray" and not engine.startswith("ray://"):
        raise InvalidInput(f"engine is {engine!r}; accepted: local, ray, ray://host:port")
    if engine != "local":
        check_ray(engine)


@contextmanager
def _in_processes(tasks: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], jobs: int) -> Iterator[Iterator[Any]]:
    """Call functions in so many processes; gives their results as they finish. Only this process reacts to the interrupt key."""
    import joblib  # slow to import, and needed only for workers

    _let_workers_be_killed()
    workers = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    with _deaf():
        results = workers(joblib.delayed(function)(*arguments) for function, arguments in tasks)
    try:
        yield results
    finally:  # left early by an error or the interrupt key: stop the workers without interruption, and without joblib's warnings
        with _deaf(), warnings.catch_warnings(action="ignore"):
            results.close()


def _let_workers_be_killed() -> None:
    """Without psutil, joblib looks for a worker's children with pgrep. A small container has no pgrep, and then joblib hangs.

    Our workers have no children: killing them is enough.
    """
    if os.name == "posix":
        from joblib.externals.loky.backend import utils

        utils._kill_process_tree_without_psutil = _kill


def _kill(process: Any) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def rehearse(trials: Sequence[Trial], jobs: int = 1) -> list[float]:
    """Estimated duration of each trial, from the first steps of a similar one.

    This also compiles every policy's code before the trials begin, each policy in one process: otherwise every worker would
    compile it.
    """
    alike = {(trial.policy, trial.environment, trial.shards, trial.exchange): trial for trial in trials}
    casts: dict[type, list[tuple[int, Trial]]] = {}
    for number, trial in enumerate(alike.values()):
        casts.setdefault(type(trial.policy), []).append((number, trial))
    if min(jobs, len(casts)) > 1:
        with _in_processes([(_paces, (cast,)) for cast in casts.values()], jobs) as rehearsed:
            numbered = dict(pace for paces in rehearsed for pace in paces)
    else:
        _prepare_alone(trials)
        numbered = dict(pace for cast in casts.values() for pace in _paces(cast))
    paces = {kind: numbered[number] for number, kind in enumerate(alike)}
    return [paces[trial.policy, trial.environment, trial.shards, trial.exchange] * trial.horizon for trial in trials]


def _prepare_alone(trials: Sequence[Trial]) -> None:
    """Compile in two processes if there is one policy. The code of several is compiled one by one, or in as many processes."""
    if len({type(trial.policy) for trial in trials}) == 1:
        prepare(trials[0].policy, trials[0].environment, trials[0].ndcg)


def _paces(cast: Sequence[tuple[int, Trial]]) -> list[tuple[int, float]]:
    """Seconds per step of each numbered trial, from its first steps."""
    paces = []
    for number, trial in cast:
        steps = min(trial.horizon, REHEARSAL_STEPS)
        paces.append((number, run(replace(trial, horizon=steps)).seconds / steps))
    return paces


def _check_portable(trials: Sequence[Trial]) -> None:
    """Refuse a policy that cannot be sent to another process."""
    for policy in {type(trial.policy) for trial in trials}:
        if not is_ours(policy):
            pack(policy)


def _how_many_fit(trials: Sequence[Trial]) -> int:
    """How many trials fit in memory at once."""
    return memory_limit() // max([1, *(trial.footprint() for trial in trials)])


def _longest_first(trials: Sequence[Trial], jobs: int = 1) -> list[int]:
    """Order by duration, longest first, so that no core idles while the last trial runs."""
    efforts = rehearse(trials, jobs)
    return sorted(range(len(trials)), key=lambda position: -efforts[position])


def _run_numbered(position: int, trial: Trial) -> tuple[int, Result]:
    return position, run(trial)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore the interrupt key, also in processes started now: a terminal sends it to every process, but only the parent reacts."""
    if threading.current_thread() is not threading.main_thread():  # Python allows signal handlers only in the main thread
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
