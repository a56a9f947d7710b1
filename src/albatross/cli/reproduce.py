"""`albatross reproduce`: the paper's evaluation, and a verdict on each of its claims."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross.cli.drawing import save_paper_figure, save_protocols
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import check_whole
from albatross.studies.report.paper import write_report
from albatross.studies.reproducing import reproduction
from albatross.studies.reproducing.claims import Verdict
from albatross.studies.reproducing.paper import HORIZON, N_SEEDS


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
    """Run the paper's evaluation: its data sets, policies, figures and tables, with a verdict on each of its claims.

    It can be interrupted: the next call continues from there.

    Parameters
    ----------
    full
        Tune every policy on every data set first, over the paper's grids. Without it, the parameters found by a full run are used.
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
    began = time.monotonic()
    found = reproduction.reproduce(
        folder, full=full, real=not synthetic, horizon=horizon, n_seeds=seeds, engine=engine, jobs=jobs, observer=TERMINAL
    )
    page = write_report(found, folder, save_paper_figure, save_protocols)
    _print_verdicts(found.verdicts)
    print(f"Took {time.monotonic() - began:.0f} s. Report: {page}")


def _print_verdicts(verdicts: list[Verdict]) -> None:
    """Claim by claim; under each the data set, the verdict, and the numbers behind it."""
    width = max(len(verdict.where) for verdict in verdicts)
    claim = ""
    for verdict in verdicts:
        if verdict.claim != claim:
            claim = verdict.claim
            print(f"\n{claim}")
        print(f"  {verdict.word:14}  {verdict.where:{width}}  {verdict.measured}")
    print()
