"""`albatross study`: many trials from one file, interrupted and resumed at will."""

from pathlib import Path

import numpy as np
from cyclopts import App
from rich import box
from rich.console import Console
from rich.table import Table

from albatross.cli.study_comparison import print_comparison
from albatross.cli.study_figure import draw_study
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import check_whole
from albatross.core.streams import stream
from albatross.studies.journal import RESULTS, TIMINGS, Journal
from albatross.studies.plan import Cell, Study, read_study
from albatross.studies.runner import finish
from albatross.studies.showing import label, show_interval, show_number
from albatross.studies.statistics import mean_over_seeds

study = App(name="study", help="Many trials from one TOML file: run, resume, show, compare, export.", help_format="plaintext")


@study.command
def run(file: Path, *, folder: Path | None = None, engine: str = "local", jobs: int | None = None) -> None:
    """Run the trials of a study that are not finished yet. Interrupt it as you like: the next call goes on from there.

    Parameters
    ----------
    file
        The study, a TOML file.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    engine
        local, ray (a cluster on this machine) or ray://host:port (a cluster that runs already).
    jobs
        Processes to use on this machine; if not given, one per core.
    """
    if jobs is not None:
        check_whole("--jobs", jobs, 1)
    planned = read_study(file)
    target = _folder(file, folder)
    finish([planned], Journal(target), engine, jobs, TERMINAL)
    _show(planned, Journal(target))
    print(f"Curves: {target / RESULTS}   Times: {target / TIMINGS}")


@study.command
def show(file: Path, *, folder: Path | None = None) -> None:
    """The finished part of a study as a table.

    Parameters
    ----------
    file
        The study, a TOML file.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    _show(read_study(file), Journal(_folder(file, folder)))


@study.command
def compare(file: Path, policy: str, *, at: list[int] | None = None, folder: Path | None = None) -> None:
    """One policy of a study against whoever else does best on each data set, paired by seed.

    Parameters
    ----------
    file
        The study, a TOML file.
    policy
        Its name; where the study varies its parameters, with these, as `albatross study show` has it.
    at
        The steps at which regret is compared; if not given, the horizon.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    print_comparison(read_study(file), Journal(_folder(file, folder)), policy, at or [])


@study.command
def export(file: Path, target: Path, *, folder: Path | None = None) -> None:
    """Write the finished part of a study to one .parquet or .csv file, one row per trial and checkpoint.

    Parameters
    ----------
    file
        The study, a TOML file.
    target
        The file to write.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    Journal(_folder(file, folder)).export(read_study(file).trials(), target)


@study.command
def figure(file: Path, target: Path, *, along: str | None = None, folder: Path | None = None) -> None:
    """Draw the finished part of a study to a .png, .svg or .pdf file: cumulative regret over time, one panel per data set.

    Parameters
    ----------
    file
        The study, a TOML file.
    target
        The file to write.
    along
        Draw instead what this parameter buys and costs: regret and time for each of its values.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    draw_study(read_study(file), Journal(_folder(file, folder)), target, along)


def _folder(file: Path, folder: Path | None) -> Path:
    return Path("out") / file.stem if folder is None else folder


def _show(planned: Study, journal: Journal) -> None:
    """A block of lines per data set, a line per policy."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("policy", overflow="fold")
    headings = ["seeds", "regret", "95 % interval", *(["NDCG"] if planned.ndcg else []), "s/trial"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for dataset in dict.fromkeys(cell.dataset for cell in planned.cells):
        table.add_row(dataset, *[""] * len(headings), style="bold")
        for cell in planned.cells:
            if cell.dataset == dataset:
                table.add_row(f"  {label(cell.policy)}", *_row(planned, cell, journal))
    console = Console(highlight=False)
    protocols = sorted({trial.protocol() for trial in planned.trials()})
    console.print(f"{planned.title}: {planned.horizon:,} steps {'; '.join(protocols)}", markup=False)
    console.print(table)


def _row(planned: Study, cell: Cell, journal: Journal) -> list[str]:
    trials = planned.trials_of(cell)
    results = list(journal.finished(trials).values())
    done = f"{len(results)}/{len(trials)}"
    if not results:
        return [done, *["–"] * (4 if planned.ndcg else 3)]
    regret = mean_over_seeds([result.regret[-1] for result in results], stream(0, "bootstrap"))
    ndcg = [f"{np.mean([result.ndcg[-1] for result in results]):.4f}"] if planned.ndcg else []
    return [done, show_number(regret.mean), show_interval(regret), *ndcg, f"{np.mean([result.seconds for result in results]):.2f}"]
