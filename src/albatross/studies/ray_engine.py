"""Trials on a Ray cluster: the same function on the same trials, on any free core."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from albatross.core.errors import InvalidInput
from albatross.core.extras import install_command
from albatross.studies.trials import Result, Trial, run

STILLBORN = ("Starting Ray client server failed", "psutil.ZombieProcess", "psutil.NoSuchProcess")
"""Ray's head forks a server for each client out of a process of many threads, and now and then it dies at once. The next one lives."""
TRIES = 3


def check_ray(engine: str) -> None:
    """Refuse if Ray is missing, or the part of it that connects to a remote cluster."""
    needed = {"ray": "Ray", "grpc": "the client of Ray"} if engine.startswith("ray://") else {"ray": "Ray"}
    for module, name in needed.items():
        if find_spec(module) is None:
            raise InvalidInput(
                f"the engine {engine} needs {name}, which is not installed; accepted: {install_command('ray')}, or the engine local"
            )


def ray_results(trials: Sequence[Trial], order: Sequence[int], address: str | None) -> Iterator[tuple[int, Result]]:
    """The position and result of each trial when it is done. If a node dies, its trials are run elsewhere.

    `address` is that of a running cluster; without one, a cluster is started on this machine and stopped at the end.
    """
    import ray

    began = not ray.is_initialized()
    if began:
        _start(ray, address)
    try:
        # Environments can be large and are shared by many trials: each is sent once.
        worlds = {environment: ray.put(environment) for environment in {trial.environment for trial in trials}}
        task = ray.remote(num_cpus=1, max_retries=-1)(_run_numbered)
        waiting = [task.remote(position, trials[position], worlds[trials[position].environment]) for position in order]
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1)
            yield ray.get(done[0])
    finally:
        if began:
            ray.shutdown()


def _start(ray: Any, address: str | None) -> None:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    for left in reversed(range(TRIES)):
        try:
            ray.init(address=address or "local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if left and any(sign in str(error) for sign in STILLBORN):
                continue
            hint = "its head must run with --ray-client-server-port and --runtime-env-agent-port, both with a number"
            raise InvalidInput(f"no Ray cluster answers at {address}; {hint}: {error}") from error


def _run_numbered(position: int, trial: Trial, environment: Any) -> tuple[int, Result]:
    return position, run(replace(trial, environment=environment))
