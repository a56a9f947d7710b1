"""Trials in one process or several."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from albatross.core import memory
from albatross.core.environment import World
from albatross.core.errors import InvalidInput
from albatross.core.parameters import parameter
from albatross.core.ratings import RatingTable
from albatross.core.vocabulary import Vocabulary
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random
from albatross.studies import execution
from albatross.studies.execution import execute, rehearse
from albatross.studies.trials import Trial

WORLD = Gaussian(n_users=10, n_items=12, rank=2)


def large_ratings() -> Ratings:
    """Large enough that its arrays reach the workers by way of a file."""
    n_users, n_items = 500, 400
    random = np.random.default_rng(0)
    users, items = np.divmod(np.arange(n_users * n_items), n_items)
    names = (Vocabulary(map(str, range(n_users))), Vocabulary(map(str, range(n_items))))
    return Ratings(RatingTable(users.astype(np.int32), items.astype(np.int32), random.normal(size=users.size), *names, "large"))


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    trials = [Trial(policy, WORLD, 300, seed) for policy in (ALB(rank=2), Random()) for seed in range(3)]
    trials += [Trial(Random(), large_ratings(), horizon, seed=0) for horizon in (100, 200)]
    here, there = dict(execute(trials, jobs=1)), dict(execute(trials, jobs=2))
    assert sorted(here) == sorted(there) == list(range(len(trials)))
    for position in here:
        assert here[position].state_id == there[position].state_id
        assert np.array_equal(here[position].regret, there[position].regret)
        assert here[position].checkpoints[-1] == trials[position].horizon


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_adds_up_to_all_steps(jobs: int) -> None:
    done: list[int] = []
    trials = [Trial(Random(), WORLD, horizon, seed=0) for horizon in (50, 70, 90)]
    assert len(list(execute(trials, jobs, done.append))) == 3
    assert sum(done) == 50 + 70 + 90


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_refused_in_a_worker_is_refused_here(jobs: int) -> None:
    once = Gaussian(n_users=10, n_items=20, repeats=False)
    with pytest.raises(InvalidInput, match="horizon is 500; accepted: at most 200"):
        list(execute([Trial(Random(), once, 500, seed) for seed in range(3)], jobs))


def test_workers_serve_again_after_being_left_early() -> None:
    trials = [Trial(Random(), WORLD, 100, seed) for seed in range(50)]
    results = execute(trials, jobs=2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(list(execute(trials[:4], jobs=2))) == 4


@dataclass(frozen=True)
class Interrupted(Gaussian):
    """A process that makes this world, other than the one named, gets an interrupt."""

    spared: int = parameter(0, "the number of a process")

    def world(self, seed: int) -> World:
        if os.getpid() != self.spared:
            os.kill(os.getpid(), signal.SIGINT)
        return super().world(seed)


def test_workers_do_not_hear_the_interrupt_key() -> None:
    trials = [Trial(Random(), Interrupted(n_users=5, n_items=5, spared=os.getpid()), 100, seed) for seed in range(4)]
    assert len(list(execute(trials, jobs=2))) == 4


INTERRUPTING = """
import os, signal, sys
from pathlib import Path
from albatross.environments.synthetic import Gaussian
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.studies.execution import execute
from albatross.studies.trials import Trial

marker = sys.argv[1]

class Interrupting(Gaussian):
    def world(self, seed):
        if os.getpid() != self.n_users and not Path(marker).exists():
            Path(marker).touch()
            os.kill(self.n_users, signal.SIGINT)
        return Gaussian(n_users=3, n_items=3).world(seed)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores the key, and all that it starts
world = Interrupting(n_users=os.getpid(), n_items=3)
print("ended", list(execute([Trial(policy, world, 100, 0) for policy in (Random(), ItemMean())], jobs=2)))
"""
"""The first process that makes this world, other than the process whose number it has, sends an interrupt to that process."""


def test_the_interrupt_key_is_heard_before_the_first_trial_begins(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTING, str(tmp_path / "interrupted")], capture_output=True, text=True)
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert "ended" not in done.stdout


def test_effort_is_foreseen() -> None:
    short, long = rehearse([Trial(Random(), WORLD, 1_000, seed=0), Trial(Random(), WORLD, 5_000, seed=1)])
    assert long == pytest.approx(5 * short)


def test_workers_find_the_code_compiled(tmp_path: Path) -> None:
    command = ["run", "--policy", "random", "--dataset", "gaussian", "--horizon", "200", "--seeds", "4", "--jobs", "2"]
    code = f"import sys; from albatross.cli import main; sys.exit(main({command}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"ALBATROSS_CACHE": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    compiled = [line for line in done.stderr.splitlines() if "compiling" in line]
    assert any("random (choose)" in line for line in compiled)
    assert len(set(compiled)) == len(compiled)


def test_what_cannot_fit_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: 1_000_000_000)
    fits, huge = Gaussian(n_users=3, n_items=3), Gaussian(n_users=1_000_000, n_items=10_000)
    trials = [Trial(Random(), fits, 10, 0), Trial(Oracle(), huge, 10, 0)]
    with pytest.raises(InvalidInput, match=r"'oracle' for 1,000,000 users and 10,000 items: would take about 160\.0 GB"):
        next(execute(trials, jobs=2))


def test_no_more_trials_at_once_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With memory for one, the second is not sent to another process: what it reports arrives here step by step."""
    trials = [Trial(Random(), Gaussian(n_users=3, n_items=3), 20_000, seed) for seed in (0, 1)]
    monkeypatch.setattr(execution, "memory_limit", lambda: int(1.5 * trials[0].footprint()))
    steps: list[int] = []
    assert len(list(execute(trials, jobs=2, progress=steps.append))) == 2
    assert len(steps) > 2
