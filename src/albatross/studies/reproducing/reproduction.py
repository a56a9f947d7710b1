"""The paper's evaluation, run and judged."""

from dataclasses import dataclass
from pathlib import Path

from albatross.core.environment import Environment
from albatross.kernels.building.beside import usable_cores
from albatross.studies.execution import check_engine, rehearse
from albatross.studies.journal import Journal
from albatross.studies.observer import NOBODY, Observer
from albatross.studies.reproducing.claims import Verdict, judge
from albatross.studies.reproducing.evidence import Contenders, Outcomes, collect, collect_beyond, weigh
from albatross.studies.reproducing.paper import (
    HORIZON,
    N_SEEDS,
    Tuned,
    available_environments,
    beyond_studies,
    comparison_studies,
    shipped_parameters,
    tuning_study,
)
from albatross.studies.reproducing.protocols import Standing, protocol_studies, stand
from albatross.studies.runner import finish
from albatross.studies.tuning import best_parameters, write_parameters


@dataclass(frozen=True)
class Reproduction:
    """The setting, the results, and the verdict on each of the paper's claims."""

    horizon: int
    n_seeds: int
    full: bool
    real: bool
    """Whether real data sets were requested."""
    missing: dict[str, str]
    """Data sets that were left out, with the reason."""
    tuned: Tuned
    outcomes: Outcomes
    contenders: Contenders
    standings: list[Standing]
    verdicts: list[Verdict]


def reproduce(
    folder: Path,
    *,
    full: bool = False,
    real: bool = True,
    horizon: int = HORIZON,
    n_seeds: int = N_SEEDS,
    engine: str = "local",
    jobs: int | None = None,
    observer: Observer = NOBODY,
) -> Reproduction:
    """Run the missing trials of the evaluation in a folder, and judge every claim that the available data sets allow.

    With `full`, every policy is tuned on every data set first; otherwise parameters are taken as shipped. Intervals need two seeds.
    """
    check_engine(engine)
    environments, missing = available_environments(real)
    for name, reason in missing.items():
        observer.tell(f"{name} is left out: {reason}\n")
    journal = Journal(folder)
    tuned = _tune(environments, horizon, journal, engine, jobs, observer) if full else shipped_parameters()
    studies = comparison_studies(environments, tuned, horizon, n_seeds)
    beyond = beyond_studies(environments, horizon, n_seeds)
    protocols = protocol_studies(environments, horizon, n_seeds)
    planned = [*studies, *beyond, *protocols.values()]
    n_trials = len({trial for study in planned for trial in study.trials()})
    observer.tell(f"{n_trials:,} trials: {len(environments)} data sets, {n_seeds} seeds, {horizon:,} steps each.")
    finish(planned, journal, engine, jobs, observer)
    outcomes = collect(studies, journal)
    contenders = collect_beyond(beyond, journal, outcomes, horizon)
    standings = stand(protocols, journal)
    return Reproduction(horizon, n_seeds, full, real, missing, tuned, outcomes, contenders, standings, judge(weigh(outcomes, horizon)))


def _tune(environments: dict[str, Environment], horizon: int, journal: Journal, engine: str, jobs: int | None, observer: Observer) -> Tuned:
    """The best parameters of the paper's grids, written beside the journal."""
    grid = tuning_study(environments, horizon)
    waiting = [trial for trial in grid.trials() if trial not in journal]
    if waiting:
        cores = usable_cores() if jobs is None else jobs
        hours = sum(rehearse(waiting)) / cores / 3600
        observer.tell(f"Tuning: {len(waiting):,} trials, about {hours:.1f} hours on {cores} cores. Interrupt and resume at will.")
    finish([grid], journal, engine, jobs, observer)
    tuned = best_parameters(grid, journal)
    write_parameters(tuned, journal.folder / "tuned.toml")
    return tuned
