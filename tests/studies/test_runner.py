"""A study runs what its journal does not hold, and keeps what is finished when it is stopped."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from albatross.environments.synthetic import Uniform
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.studies import execution, runner
from albatross.studies.journal import RESULTS, Journal
from albatross.studies.observer import Observer, Progress
from albatross.studies.plan import Cell, Study
from albatross.studies.trials import Result, Trial

WORLD = Uniform(n_users=5, n_items=6)
STUDY = Study("small", 60, (0, 1), None, tuple(Cell("uniform", WORLD, policy) for policy in (Random(), ItemMean())))
N_TRIALS = 4


class Listener:
    """Keeps what an observer is told."""

    def __init__(self) -> None:
        self.news: list[str] = []
        self.warnings: list[str] = []
        self.totals: list[int] = []
        self.steps = 0
        self.observer = Observer(self.news.append, self.warnings.append, self.watch)

    @contextmanager
    def watch(self, total: int) -> Iterator[Progress]:
        self.totals.append(total)
        yield self.advance

    def advance(self, steps: int) -> None:
        self.steps += steps


class Executed:
    """The trials that were run, of which the interrupt key lets only so many end."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []
        self.until = N_TRIALS

    def __call__(
        self, trials: Sequence[Trial], jobs: int, progress: Callable[[int], None] | None, engine: str
    ) -> Iterator[tuple[int, Result]]:
        for position, result in execution.execute(trials, jobs, progress, engine):
            if len(self.trials) == self.until:
                raise KeyboardInterrupt
            self.trials.append(trials[position])
            yield position, result


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Executed:
    executed = Executed()
    monkeypatch.setattr(runner, "execute", executed)
    return executed


def test_what_is_in_the_journal_is_not_run_again(tmp_path: Path, executed: Executed) -> None:
    listener = Listener()
    first = STUDY.trials()[1]
    journal = Journal(tmp_path)
    journal.add(first, *(result for _, result in execution.execute([first], 1)))
    runner.finish([STUDY], journal, jobs=1, observer=listener.observer)
    assert executed.trials == [trial for trial in STUDY.trials() if trial != first]
    assert listener.news == ["1 of 4 trials are finished already."]
    assert listener.warnings == []
    assert listener.totals == [listener.steps] == [3 * 60]
    runner.finish([STUDY], Journal(tmp_path), jobs=1, observer=listener.observer)
    assert len(executed.trials) == N_TRIALS - 1
    assert len(listener.news) == 1


def test_a_trial_of_two_studies_is_run_once(tmp_path: Path, executed: Executed) -> None:
    runner.finish([STUDY, STUDY], Journal(tmp_path), jobs=1)
    assert executed.trials == STUDY.trials()


def test_the_interrupt_key_leaves_what_is_finished(tmp_path: Path, executed: Executed) -> None:
    listener = Listener()
    executed.until = 2
    with pytest.raises(KeyboardInterrupt):
        runner.finish([STUDY], Journal(tmp_path), jobs=1, observer=listener.observer)
    assert listener.warnings == ["2 of 4 trials are finished and kept; the same command goes on from there."]
    again = Journal(tmp_path)
    assert list(again.finished(STUDY.trials())) == STUDY.trials()[:2]
    assert (tmp_path / RESULTS).exists(), "the table of what is finished is written too"
    executed.until = N_TRIALS
    runner.finish([STUDY], again, jobs=1)
    assert executed.trials == STUDY.trials(), "each once"


def test_interrupted_before_anything_is_finished_it_leaves_no_table(tmp_path: Path, executed: Executed) -> None:
    executed.until = 0
    with pytest.raises(KeyboardInterrupt):
        runner.finish([STUDY], Journal(tmp_path), jobs=1)
    assert not (tmp_path / RESULTS).exists()


def test_an_error_too_leaves_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(trials: Sequence[Trial], *arguments: object) -> Iterator[tuple[int, Result]]:
        yield from execution.execute(trials[:1], 1)
        raise OSError("no space left")

    monkeypatch.setattr(runner, "execute", broken)
    with pytest.raises(OSError, match="no space left"):
        runner.finish([STUDY], Journal(tmp_path))
    assert len(Journal(tmp_path).finished(STUDY.trials())) == 1
