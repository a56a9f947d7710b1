"""Runs studies to their end. They can be interrupted and resumed: trials in the journal are never run again."""

from collections.abc import Sequence

from albatross.kernels.building.beside import usable_cores
from albatross.studies.execution import check_engine, execute
from albatross.studies.journal import Journal
from albatross.studies.observer import NOBODY, Observer
from albatross.studies.plan import Study
from albatross.studies.tuning import settle


def finish_tuned(study: Study, journal: Journal, engine: str = "local", jobs: int | None = None, observer: Observer = NOBODY) -> Study:
    """Tune the open choices of a study, run its missing trials, and return it with every choice made."""
    if study.choices:
        grid = study.tuning()
        observer.tell(f"Tuning: {len(grid.trials()):,} trials on seeds of their own.")
        finish([grid], journal, engine, jobs, observer)
        study = settle(study, journal)
    finish([study], journal, engine, jobs, observer)
    return study


def finish(studies: Sequence[Study], journal: Journal, engine: str = "local", jobs: int | None = None, observer: Observer = NOBODY) -> None:
    """Run the missing trials of some studies and write their tables. Without `jobs`, one process per core.

    Each trial is in the journal as soon as it is done. After an interruption, the next call continues from there.
    """
    check_engine(engine)
    trials = list(dict.fromkeys(trial for study in studies for trial in study.trials()))
    missing = [trial for trial in trials if trial not in journal]
    if missing and len(missing) < len(trials):
        observer.tell(f"{len(trials) - len(missing):,} of {len(trials):,} trials are finished already.")
    observer.warn_of_memory(missing)
    try:
        with observer.watch(sum(trial.horizon for trial in missing)) as progress:
            for position, result in execute(missing, usable_cores() if jobs is None else jobs, progress, engine):
                journal.add(missing[position], result)
    except KeyboardInterrupt:
        kept = len(journal.finished(trials))
        observer.warn(f"{kept:,} of {len(trials):,} trials are finished and kept; the same command goes on from there.")
        raise
    finally:
        if any(trial in journal for trial in trials):
            journal.write_parquet(trials)
