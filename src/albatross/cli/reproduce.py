"""`albatross reproduce`: the paper's evaluation, and a verdict on each of its claims."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross.cli.beyond_report import beyond_blocks, beyond_results
from albatross.cli.document import as_html, as_markdown
from albatross.cli.paper_report import draw_figures, write_report
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import check_whole
from albatross.studies.claims import Verdict, judge
from albatross.studies.evidence import collect, weigh
from albatross.studies.execution import available_cores, rehearse
from albatross.studies.files import whole_file
from albatross.studies.journal import Journal
from albatross.studies.paper import (
    HORIZON,
    N_SEEDS,
    available_environments,
    beyond_studies,
    comparison_studies,
    shipped_parameters,
    tuning_study,
)
from albatross.studies.runner import finish
from albatross.studies.tuning import best_parameters, write_parameters

TITLE = "Alternating Linear Bandits, reproduced"


def reproduce(
    *,
    full: Annotated[bool, Parameter(negative="--quick")] = False,
    folder: Path = Path("out") / "reproduce",
    synthetic: Annotated[bool, Parameter(negative=())] = False,
    horizon: int = HORIZON,
    seeds: int = N_SEEDS,
    engine: str = "local",
    jobs: int | None = None,
) -> None:
    """Do what the paper's evaluation does: its data sets, policies, figures and tables, and a verdict on each of its claims.

    Interrupt it as you like: the next call goes on from there.

    Parameters
    ----------
    full
        Tune every policy on every data set first, over the paper's grids. Quick, which is the default, takes parameters as found.
    folder
        Where the report, its figures and all results go.
    synthetic
        Leave the real data sets out.
    horizon
        Steps per trial.
    seeds
        Trials per policy and data set.
    engine
        local, ray (a cluster on this machine) or ray://host:port (a cluster that runs already).
    jobs
        Processes to use on this machine; if not given, one per core.
    """
    check_whole("--horizon", horizon, 100)
    check_whole("--seeds", seeds, 2)
    if jobs is not None:
        check_whole("--jobs", jobs, 1)
    environments, missing = available_environments(real=not synthetic)
    for name, reason in missing.items():
        print(f"{name} is left out: {reason}\n", flush=True)
    journal = Journal(folder)
    tuned = shipped_parameters()
    if full:
        grid = tuning_study(environments, horizon)
        waiting = [trial for trial in grid.trials() if trial not in journal]
        if waiting:
            cores = available_cores() if jobs is None else jobs
            hours = sum(rehearse(waiting)) / cores / 3600
            print(f"Tuning: {len(waiting):,} trials, about {hours:.1f} hours on {cores} cores. Interrupt and resume at will.", flush=True)
        finish([grid], journal, engine, jobs, TERMINAL)
        tuned = best_parameters(grid, journal)
        write_parameters(tuned, folder / "tuned.toml")
    studies = comparison_studies(environments, tuned, horizon, seeds)
    beyond = beyond_studies(environments, horizon, seeds)
    n_trials = len({trial for study in (*studies, *beyond) for trial in study.trials()})
    print(f"{n_trials:,} trials: {len(environments)} data sets, {seeds} seeds, {horizon:,} steps each.", flush=True)
    began = time.monotonic()
    finish([*studies, *beyond], journal, engine, jobs, TERMINAL)
    outcomes = collect(studies, journal)
    verdicts = judge(weigh(outcomes, horizon))
    pictures = draw_figures(outcomes, horizon, folder)
    blocks = write_report(TITLE, outcomes, verdicts, tuned, missing, pictures, horizon, seeds, full)
    blocks += beyond_blocks(beyond_results(beyond, journal, outcomes, horizon), horizon)
    for name, text in (("report.md", as_markdown(blocks)), ("report.html", as_html(TITLE, blocks))):
        with whole_file(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
    _print_verdicts(verdicts)
    print(f"Took {time.monotonic() - began:.0f} s. Report: {folder / 'report.html'}")


def _print_verdicts(verdicts: list[Verdict]) -> None:
    """Claim by claim; under each, where it was looked at, the word, and the numbers behind it."""
    width = max(len(verdict.where) for verdict in verdicts)
    claim = ""
    for verdict in verdicts:
        if verdict.claim != claim:
            claim = verdict.claim
            print(f"\n{claim}")
        print(f"  {verdict.word:14}  {verdict.where:{width}}  {verdict.measured}")
    print()
